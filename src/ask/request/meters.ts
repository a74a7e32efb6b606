import type { Form } from 'osl-compiler';
import type { AuditDecision, AuditOutcome, AuditSurface } from '../../../policy/audit/index.js';

/** What a request spends its time on, in their order; `record` and `answer` may overlap. `total` is from its first to its last. */
export const STAGES = ['identify', 'limit', 'decide', 'record', 'answer', 'total'] as const;
export type Stage = (typeof STAGES)[number];

/** Upper bounds of the buckets, in µs; what is longer than the last has a bucket of its own. */
export const BOUNDS_US: readonly number[] = Object.freeze([
  100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
  5_000_000, 10_000_000, 30_000_000,
]);

/** How many durations fell into each bucket, and their sum. */
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

/** How it ended; `none`: it was refused. */
export type MeteredOutcome = AuditOutcome | 'none';

export interface MeterLabels {
  readonly surface: AuditSurface;
  /** `other`: no question about data. */
  readonly form: Form | 'other';
  readonly decision: AuditDecision;
}

/** What is counted of requests of one surface, form and decision. */
export class Meter {
  readonly labels: MeterLabels;
  readonly stages = new Map<Stage, Durations>();
  readonly outcomes = new Map<MeteredOutcome, number>();
  #record: Durations | null = null;
  #total: Durations | null = null;

  constructor(labels: MeterLabels) {
    this.labels = labels;
  }

  add(stage: Stage, us: number): void {
    this.#of(stage).add(us);
  }

  /** Of a question of the fast lane, which is decided before it comes: with no look-up. */
  addFast(recordUs: number, totalUs: number): void {
    this.#record ??= this.#of('record');
    this.#total ??= this.#of('total');
    this.#record.add(recordUs);
    this.#total.add(totalUs);
  }

  #of(stage: Stage): Durations {
    let durations = this.stages.get(stage);
    if (durations === undefined) {
      durations = new Durations();
      this.stages.set(stage, durations);
    }
    return durations;
  }

  count(outcome: MeteredOutcome): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }
}

/** What a process counts of its requests. Labels are of closed lists: nothing that a caller writes is one. */
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
