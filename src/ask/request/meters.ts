import type { Form } from 'osl-compiler';
import type { AuditDecision, AuditOutcome, AuditSurface } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';

/** A completed request as reported to operators: without literals, rows and undeclared names. */
export interface EndedRequest {
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly decision: AuditDecision;
  /** Null if it was refused. */
  readonly outcome: AuditOutcome | null;
  readonly code: string | null;
  readonly rows: number;
  /** Fingerprint of the shape of the request: see `toldShape`; null if it has no text. */
  fingerprint(): string | null;
  /** Durations of the stages that it passed, in µs; always includes `total`. */
  readonly stages: ReadonlyMap<RequestStage, number>;
  /** W3C Trace Context of the client; null if it sent none. */
  readonly traceparent: string | null;
}

/** Takes requests that are over, for traces. Must not throw. */
export interface TraceSink {
  ended(request: EndedRequest, endedAt: number): void;
}

/** Reports requests to the operator: metrics of all, a log line for each slow one, and traces. */
export class RequestObserver {
  readonly meters = new Meters();
  /** Questions that took longer than the setting says. */
  slow = 0;
  readonly #log: ServiceLog;
  readonly #slowUs: number;
  readonly #tracing: TraceSink | null;

  /** @param slowMs threshold of the log for slow questions; 0 turns it off */
  constructor(log: ServiceLog, slowMs: number, tracing: TraceSink | null = null) {
    this.#log = log;
    this.#slowUs = slowMs === 0 ? Number.POSITIVE_INFINITY : 1_000 * slowMs;
    this.#tracing = tracing;
  }

  get traces(): boolean {
    return this.#tracing !== null;
  }

  /** True if a request that took `us` µs must be passed to `tell`. */
  wants(us: number): boolean {
    return us >= this.#slowUs || this.#tracing !== null;
  }

  /** Traces a request, and logs it if it was slow. */
  tell(request: EndedRequest): void {
    this.#tracing?.ended(request, Date.now());
    if ((request.stages.get('total') ?? 0) < this.#slowUs) return;
    const fingerprint = request.fingerprint();
    if (fingerprint === null) return;
    this.slow += 1;
    const { requestId, surface, action, form, objects, outcome, code, rows } = request;
    this.#log.warn('slow question', {
      request_id: requestId,
      surface,
      action,
      form,
      fingerprint,
      objects,
      outcome: outcome ?? 'refused',
      ...(code !== null && { code }),
      rows,
      ...Object.fromEntries(
        [...request.stages].map(([stage, us]) => [`${stage}_ms`, Math.round(us) / 1_000]),
      ),
    });
  }
}

/** Stages of a request in their order; `record` and `answer` may overlap. `total` is from the first to the last. */
const STAGES = ['identify', 'limit', 'decide', 'record', 'answer', 'total'] as const;
export type RequestStage = (typeof STAGES)[number];

const PLACE: Readonly<Record<RequestStage, number>> = {
  identify: 0,
  limit: 1,
  decide: 2,
  record: 3,
  answer: 4,
  total: 5,
};
const NOT_PASSED = -1;

/** Durations of the stages of one request, in µs. */
export class StageTimes {
  readonly us: number[] = STAGES.map(() => NOT_PASSED);

  get(stage: RequestStage): number | undefined {
    const us = this.us[PLACE[stage]] ?? NOT_PASSED;
    return us < 0 ? undefined : us;
  }

  set(stage: RequestStage, us: number): void {
    this.us[PLACE[stage]] = Math.max(0, us);
  }

  /** Durations of the stages that it went through. */
  asMap(): ReadonlyMap<RequestStage, number> {
    return new Map(
      STAGES.flatMap((stage) => {
        const us = this.get(stage);
        return us === undefined ? [] : [[stage, us]];
      }),
    );
  }
}

/** Upper bounds of the buckets, in µs; durations beyond the last have a bucket of their own. */
export const BOUNDS_US: readonly number[] = Object.freeze([
  100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
  5_000_000, 10_000_000, 30_000_000,
]);

/** Histogram of durations, with their sum in µs. */
export class Durations {
  readonly counts: number[] = new Array(BOUNDS_US.length + 1).fill(0);
  sumUs = 0;

  add(us: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_US.length && us > (BOUNDS_US[bucket] ?? 0)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumUs += us;
  }
}

/** Outcome of a request; `none`: it was refused. */
export type MeteredOutcome = AuditOutcome | 'none';

export interface MeterLabels {
  readonly surface: AuditSurface;
  /** `other`: no question about data. */
  readonly form: Form | 'other';
  readonly decision: AuditDecision;
}

/** Metrics of requests of one surface, form and decision. */
export class Meter {
  readonly labels: MeterLabels;
  readonly outcomes = new Map<MeteredOutcome, number>();
  readonly #byPlace: (Durations | null)[] = STAGES.map(() => null);

  constructor(labels: MeterLabels) {
    this.labels = labels;
  }

  add({ us: times }: StageTimes): void {
    for (let place = 0; place < times.length; place++) {
      const us = times[place] ?? NOT_PASSED;
      if (us < 0) continue;
      let durations = this.#byPlace[place];
      if (durations === null || durations === undefined) {
        durations = new Durations();
        this.#byPlace[place] = durations;
      }
      durations.add(us);
    }
  }

  /** Durations of the stages that requests went through. */
  get stages(): readonly (readonly [RequestStage, Durations])[] {
    return STAGES.flatMap((stage) => {
      const durations = this.#byPlace[PLACE[stage]] ?? null;
      return durations === null ? [] : [[stage, durations] as const];
    });
  }

  count(outcome: MeteredOutcome): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }
}

/** Request metrics of a process. Labels come from closed lists: none is text of a caller. */
export class Meters {
  /** Refusals and failures by code of the catalogue. */
  readonly codes = new Map<string, number>();
  readonly #meters = new Map<string, Meter>();

  of(labels: MeterLabels): Meter {
    const key = `${labels.surface} ${labels.form} ${labels.decision}`;
    let meter = this.#meters.get(key);
    if (meter === undefined) {
      meter = new Meter(labels);
      this.#meters.set(key, meter);
    }
    return meter;
  }

  countCode(code: string): void {
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
  }

  get all(): Iterable<Meter> {
    return this.#meters.values();
  }
}
