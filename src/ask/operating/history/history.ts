import type { AuditStats } from '../../../../audit/index.js';
import type { EnginePool } from '../../../engine/index.js';
import { BOUNDS_US, type Meter, type RequestObserver } from '../../request/meters.js';

/** Periods covered by the history: each has `count` steps of `everyMs` milliseconds. */
export const SPANS = Object.freeze({
  hour: { everyMs: 10_000, count: 360 },
  day: { everyMs: 300_000, count: 288 },
});
export const SPAN_NAMES = ['hour', 'day'] as const;
export type SpanName = (typeof SPAN_NAMES)[number];

/** A series of figures, with `width` numbers for each step. */
interface RingRow {
  readonly width: number;
  readonly cells: Uint32Array;
}

/** The contents of a ring, for other processes. Steps are numbered by counting steps of the same length since 1970. */
export interface RingCopy {
  /** Number of the step at each place of the ring; -1 if the place is empty. */
  readonly steps: Float64Array;
  readonly rows: ReadonlyMap<string, RingRow>;
}

/** Ring buffer with the figures of the newest steps, which are equally long. Each number takes 4 bytes per step. */
class StepRing {
  readonly #everyMs: number;
  readonly #count: number;
  readonly #steps: Float64Array;
  readonly #rows = new Map<string, RingRow>();
  #place = 0;

  constructor({ everyMs, count }: (typeof SPANS)[SpanName]) {
    this.#everyMs = everyMs;
    this.#count = count;
    this.#steps = new Float64Array(count).fill(-1);
  }

  /** Moves to the step that contains `now`, in ms since 1970. */
  turn(now: number): void {
    const step = Math.floor(now / this.#everyMs);
    this.#place = step % this.#count;
    if (this.#steps[this.#place] === step) return;
    this.#steps[this.#place] = step;
    for (const { width, cells } of this.#rows.values())
      cells.fill(0, this.#place * width, (this.#place + 1) * width);
  }

  /** Adds `values` to the numbers of the current step. */
  add(name: string, values: ArrayLike<number>): void {
    const { width, cells } = this.#row(name, values.length);
    const from = this.#place * width;
    for (let i = 0; i < width; i += 1) cells[from + i] = (cells[from + i] ?? 0) + (values[i] ?? 0);
  }

  /** Raises the numbers of the current step to `values` where they are lower. */
  raise(name: string, values: ArrayLike<number>): void {
    const { width, cells } = this.#row(name, values.length);
    const from = this.#place * width;
    for (let i = 0; i < width; i += 1) cells[from + i] = Math.max(cells[from + i] ?? 0, values[i] ?? 0);
  }

  copy(): RingCopy {
    return { steps: this.#steps, rows: this.#rows };
  }

  #row(name: string, width: number): RingRow {
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const row = { width, cells: new Uint32Array(width * this.#count) };
    this.#rows.set(name, row);
    return row;
  }
}

/** Parts of a process that are sampled. */
interface HistorySources {
  readonly observing: RequestObserver;
  readonly engines: ReadonlyMap<string, { pools(): readonly EnginePool[] }>;
  readonly audit: { stats(): AuditStats };
  /** Returns the number of open sessions on the Postgres port. */
  readonly wireSessions: () => number;
}

/** Positions of the numbers in a row of questions, followed by a histogram of durations. */
export const REFUSED = 0;
export const FAILED = 1;
export const CANCELLED = 2;
export const FIRST_BUCKET = 3;
export const QUESTION_WIDTH = FIRST_BUCKET + BOUNDS_US.length + 1;

/** Kinds of rows; the name of a row begins with its kind. */
export const QUESTIONS = 'q';
export const POOL = 'p';
export const STATE = 's';

/**
 * Maximum number of connectors with separate rows; the others share rows. A row of questions takes 54 KB and a row of a
 * pool 8 KB, so that all take at most 7 MB, and 230 KB with one connector and two surfaces.
 */
const MOST_CONNECTORS = 24;
const OTHER_CONNECTORS = 'other connectors';
const TICK_MS = 1_000;
const KIB = 1_024;

/** Separates the parts of a row's name; the name of a connector cannot contain it. */
const SEPARATOR = '\n';

export function rowName(...parts: readonly string[]): string {
  return parts.join(SEPARATOR);
}

export function rowParts(name: string): readonly string[] {
  return name.split(SEPARATOR);
}

/**
 * Figures of a process over the last hour and the last day, sampled each second from counters and pools. Questions are
 * summed within a step; for pools, audit log, memory and sessions, a step keeps the highest sample.
 */
export class ProcessHistory {
  readonly #sources: HistorySources;
  readonly #rings = { hour: new StepRing(SPANS.hour), day: new StepRing(SPANS.day) };
  readonly #before = new Map<Meter, Float64Array>();
  readonly #more = new Float64Array(QUESTION_WIDTH);
  readonly #connectors = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #hasBegun = false;

  constructor(sources: HistorySources) {
    this.#sources = sources;
  }

  /** Samples once a second until `stop`. */
  start(): void {
    this.sample(Date.now());
    this.#timer ??= setInterval(() => this.sample(Date.now()), TICK_MS).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  read(span: SpanName): RingCopy {
    return this.#rings[span].copy();
  }

  /**
   * Takes a sample. Requests and slow statements that ended since the last sample count in the step of that last one.
   *
   * @param now ms since 1970
   */
  sample(now: number): void {
    const { observing, engines, audit, wireSessions } = this.#sources;
    const rings = Object.values(this.#rings);
    const turn = (): void => {
      for (const ring of rings) ring.turn(now);
      observing.slowest.startMinute(now);
    };
    if (!this.#hasBegun) turn();
    this.#hasBegun = true;
    for (const meter of observing.meters.all) this.#count(meter, rings);
    turn();
    const { records, durable } = audit.stats();
    const memory = Math.round(process.memoryUsage.rss() / KIB);
    const pools = [...engines].map(([connector, engine]) => ({
      name: rowName(POOL, this.#connector(connector)),
      use: useOf(engine.pools()),
    }));
    for (const ring of rings) {
      ring.raise(STATE, [records - durable, memory, wireSessions()]);
      for (const { name, use } of pools) ring.raise(name, use);
    }
  }

  /** Adds the counts of a meter since the last sample. */
  #count(meter: Meter, rings: readonly StepRing[]): void {
    const before = this.#before.get(meter) ?? new Float64Array(QUESTION_WIDTH);
    this.#before.set(meter, before);
    if (!countSince(meter, before, this.#more)) return;
    const { surface, connector } = meter.labels;
    const name = rowName(QUESTIONS, surface, connector === null ? '' : this.#connector(connector));
    for (const ring of rings) ring.add(name, this.#more);
  }

  #connector(name: string): string {
    if (this.#connectors.size < MOST_CONNECTORS) this.#connectors.add(name);
    return this.#connectors.has(name) ? name : OTHER_CONNECTORS;
  }
}

/**
 * Sets `more` to the counts of `meter` since `before`, and updates `before`. Returns false if all are 0. Durations are
 * counted only for queries that were allowed; refusals, failures and cancels for all requests.
 */
function countSince(
  { labels: { form, decision }, outcomes, total }: Meter,
  before: Float64Array,
  more: Float64Array,
): boolean {
  let some = false;
  const take = (place: number, now: number): void => {
    const was = before[place] ?? 0;
    more[place] = now - was;
    before[place] = now;
    some ||= now > was;
  };
  take(REFUSED, outcomes.get('none') ?? 0);
  take(FAILED, outcomes.get('error') ?? 0);
  take(CANCELLED, outcomes.get('cancelled') ?? 0);
  const counts = decision === 'allow' && form !== 'other' ? total?.counts : undefined;
  for (let i = FIRST_BUCKET; i < QUESTION_WIDTH; i += 1) take(i, counts?.[i - FIRST_BUCKET] ?? 0);
  return some;
}

/** Returns the numbers of running statements, of requests waiting for a session, and of sessions for queries. */
function useOf(pools: readonly EnginePool[]): readonly [running: number, waiting: number, size: number] {
  let [running, waiting, size] = [0, 0, 0];
  for (const pool of pools) {
    if (pool.purpose === 'system') continue;
    running += pool.running;
    waiting += pool.waiting;
    size += pool.size;
  }
  return [running, waiting, size];
}
