import type { Form } from 'osl-compiler';
import type { AuditDecision, AuditOutcome, AuditSurface } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { RedactedStatement } from './redacted-statement.js';

/** A completed request as shown to operators: without literals, rows or undeclared names. */
export interface EndedRequest {
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly decision: AuditDecision;
  readonly outcome: AuditOutcome | null;
  readonly code: string | null;
  readonly rows: number;
  /** Returns the redacted statement; null if the request has no text. */
  statement(): RedactedStatement | null;
  /** Durations in µs; always includes `total`. */
  readonly stages: ReadonlyMap<RequestStage, number>;
  readonly traceparent: string | null;
}

/** Receives completed requests. Must not throw. */
export interface TraceSink {
  record(request: EndedRequest, endedAt: number): void;
}

/** Reports requests to the operator: metrics, slow query log and traces. */
export class RequestObserver {
  readonly meters = new Meters();
  readonly slowest = new SlowestStatements();
  slow = 0;
  readonly #log: ServiceLog;
  readonly #slowUs: number;
  readonly #tracing: TraceSink | null;

  /** @param slowMs threshold of the slow query log; 0 turns it off */
  constructor(log: ServiceLog, slowMs: number, tracing: TraceSink | null = null) {
    this.#log = log;
    this.#slowUs = slowMs === 0 ? Number.POSITIVE_INFINITY : 1_000 * slowMs;
    this.#tracing = tracing;
  }

  get traces(): boolean {
    return this.#tracing !== null;
  }

  /** True if a request that took `us` microseconds must be passed to `report`. */
  needsReport(us: number): boolean {
    return us >= this.#slowUs || us >= this.slowest.fromUs || this.#tracing !== null;
  }

  report(request: EndedRequest): void {
    const now = Date.now();
    this.#tracing?.record(request, now);
    const us = request.stages.get('total') ?? 0;
    if (us < this.#slowUs && us < this.slowest.fromUs) return;
    const statement = request.statement();
    if (statement === null) return;
    const { requestId, surface, action, form, objects, code, rows } = request;
    const outcome = request.outcome ?? ('refused' as const);
    const entry = {
      ...statement,
      request_id: requestId,
      surface,
      action,
      form,
      objects,
      outcome,
      code,
      rows,
    };
    this.slowest.add(entry, us, now);
    if (us >= this.#slowUs) this.#write(request, statement);
  }

  #write(
    { requestId, surface, action, form, objects, outcome, code, rows, stages }: EndedRequest,
    { fingerprint }: RedactedStatement,
  ): void {
    this.slow += 1;
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
      ...Object.fromEntries([...stages].map(([stage, us]) => [`${stage}_ms`, Math.round(us) / 1_000])),
    });
  }
}

/** The stages in order; `record` and `answer` may overlap. */
const STAGES = ['identify', 'limit', 'decide', 'record', 'answer', 'total'] as const;
export type RequestStage = (typeof STAGES)[number];

const STAGE_INDEX: Readonly<Record<RequestStage, number>> = {
  identify: 0,
  limit: 1,
  decide: 2,
  record: 3,
  answer: 4,
  total: 5,
};
const UNSET = -1;

/** Stage durations of one request, in µs. */
export class StageTimes {
  readonly us: number[] = STAGES.map(() => UNSET);

  get(stage: RequestStage): number | undefined {
    const us = this.us[STAGE_INDEX[stage]] ?? UNSET;
    return us < 0 ? undefined : us;
  }

  set(stage: RequestStage, us: number): void {
    this.us[STAGE_INDEX[stage]] = Math.max(0, us);
  }

  asMap(): ReadonlyMap<RequestStage, number> {
    return new Map(
      STAGES.flatMap((stage) => {
        const us = this.get(stage);
        return us === undefined ? [] : [[stage, us]];
      }),
    );
  }
}

/** Upper bounds of the histogram buckets, in µs. An additional bucket counts longer durations. */
export const BOUNDS_US: readonly number[] = Object.freeze([
  100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
  5_000_000, 10_000_000, 30_000_000,
]);

/** Histogram of durations in µs. */
export class Durations {
  readonly counts: number[] = new Array(BOUNDS_US.length + 1).fill(0);
  sumUs = 0;

  add(us: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_US.length && us > (BOUNDS_US[bucket] ?? 0)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumUs += us;
  }

  /** Adds all durations of another histogram. */
  include({ counts, sumUs }: Durations): void {
    for (const [bucket, count] of counts.entries()) this.counts[bucket] = (this.counts[bucket] ?? 0) + count;
    this.sumUs += sumUs;
  }
}

/** `none`: the request was refused. */
export type MeteredOutcome = AuditOutcome | 'none';

export interface MeterLabels {
  readonly surface: AuditSurface;
  /** `other`: the request is not a data query. */
  readonly form: Form | 'other';
  readonly decision: AuditDecision;
  /**
   * Connector that the query reads; null if it reads none or the connector is unknown. Only for admins: `/metrics`
   * names no connectors.
   */
  readonly connector: string | null;
}

/** Metrics for requests with the same labels. */
export class Meter {
  readonly labels: MeterLabels;
  readonly outcomes = new Map<MeteredOutcome, number>();
  readonly #byStage: (Durations | null)[] = STAGES.map(() => null);

  constructor(labels: MeterLabels) {
    this.labels = labels;
  }

  add({ us: times }: StageTimes): void {
    for (let index = 0; index < times.length; index++) {
      const us = times[index] ?? UNSET;
      if (us < 0) continue;
      let durations = this.#byStage[index];
      if (durations === null || durations === undefined) {
        durations = new Durations();
        this.#byStage[index] = durations;
      }
      durations.add(us);
    }
  }

  /** Durations of whole requests; null if none was recorded. */
  get total(): Durations | null {
    return this.#byStage[STAGE_INDEX.total] ?? null;
  }

  get stages(): readonly (readonly [RequestStage, Durations])[] {
    return STAGES.flatMap((stage) => {
      const durations = this.#byStage[STAGE_INDEX[stage]] ?? null;
      return durations === null ? [] : [[stage, durations] as const];
    });
  }

  count(outcome: MeteredOutcome): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }
}

/** The request metrics of a process. Labels take values fixed by the gateway or manifest, never a caller's text. */
export class Meters {
  readonly codes = new Map<string, number>();
  readonly #meters = new Map<string, Meter>();

  meterFor(labels: MeterLabels): Meter {
    const key = `${labels.surface} ${labels.form} ${labels.decision} ${labels.connector ?? ''}`;
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

/** One of the slowest statements of its minute, without literals. */
export interface SlowStatement extends RedactedStatement {
  readonly request_id: string;
  /** End of the statement, RFC 3339. */
  readonly at: string;
  readonly duration_ms: number;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly outcome: AuditOutcome | 'refused';
  readonly code: string | null;
  readonly rows: number;
}

export const MINUTE_MS = 60_000;
/** Number of statements stored for each minute of the last hour. */
const MAX_PER_MINUTE = 5;
const RECENT_MINUTES = 60;
const MAX_MINUTES = 1_440;
const MAX_OBJECTS = 16;

/**
 * The slowest statements of each minute: five for each minute of the last hour, and one for each older minute of the
 * last day. That is at most 1,680 statements, each with up to 1,024 characters of redacted text.
 */
class SlowestStatements {
  /**
   * Duration in µs below which a request is not among the slowest of this minute. Infinite until `startMinute` is
   * first called.
   */
  fromUs = Number.POSITIVE_INFINITY;
  #minute = -1;
  /** Keyed by minute since 1970, oldest first; each list has the slowest statement first. */
  readonly #byMinute = new Map<number, SlowStatement[]>();

  /**
   * Starts the minute of `now`, if it is not the current one. Called whenever the charts begin a new step, so that
   * statements are stored under the minute in which the charts show them.
   *
   * @param now ms since 1970
   */
  startMinute(now: number): void {
    const minute = Math.floor(now / MINUTE_MS);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.fromUs = 0;
    for (const [past, statements] of this.#byMinute) {
      if (past <= minute - MAX_MINUTES) this.#byMinute.delete(past);
      else if (past <= minute - RECENT_MINUTES) statements.length = 1;
    }
  }

  /** Stores a statement if it is among the slowest of its minute. @param now its end in ms since 1970 */
  add(statement: Omit<SlowStatement, 'at' | 'duration_ms'>, us: number, now: number): void {
    if (this.#minute < 0) return;
    if (us < this.fromUs) return;
    const statements = this.#byMinute.get(this.#minute) ?? [];
    this.#byMinute.set(this.#minute, statements);
    statements.push({
      ...statement,
      objects: statement.objects.slice(0, MAX_OBJECTS),
      at: new Date(now).toISOString(),
      duration_ms: Math.round(us) / 1_000,
    });
    statements.sort((a, b) => b.duration_ms - a.duration_ms);
    statements.length = Math.min(statements.length, MAX_PER_MINUTE);
    const last = statements[MAX_PER_MINUTE - 1];
    if (last !== undefined) this.fromUs = 1_000 * last.duration_ms;
  }

  /** Returns the statements of all minutes that overlap a time range, given in ms since 1970. */
  between(from: number, until: number): readonly SlowStatement[] {
    const [first, end] = [Math.floor(from / MINUTE_MS), Math.ceil(until / MINUTE_MS)];
    return [...this.#byMinute].flatMap(([minute, statements]) =>
      minute >= first && minute < end ? statements : [],
    );
  }
}
