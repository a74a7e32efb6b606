/** Lengths of time that are kept, and the length and number of their steps. */
export const SPANS = Object.freeze({
  hour: { everyMs: 10_000, count: 360 },
  day: { everyMs: 300_000, count: 288 },
});
export const SPAN_NAMES = ['hour', 'day'] as const;
export type SpanName = (typeof SPAN_NAMES)[number];

/** Numbers of one thing: `width` of them for each step. */
interface Row {
  readonly width: number;
  readonly cells: Uint32Array;
}

/** The steps of a ring as sent between processes: steps are counted since 1970. */
export interface RingCopy {
  /** The step that each place of the ring holds; -1 if none. */
  readonly steps: Float64Array;
  readonly rows: ReadonlyMap<string, Row>;
}

/** Figures of the newest steps of equal length, in 4 bytes for each number and step. */
export class StepRing {
  readonly #everyMs: number;
  readonly #count: number;
  readonly #steps: Float64Array;
  readonly #rows = new Map<string, Row>();
  #place = 0;

  constructor({ everyMs, count }: (typeof SPANS)[SpanName]) {
    this.#everyMs = everyMs;
    this.#count = count;
    this.#steps = new Float64Array(count).fill(-1);
  }

  /** Moves to the step of `now`, in ms since 1970. */
  turn(now: number): void {
    const step = Math.floor(now / this.#everyMs);
    this.#place = step % this.#count;
    if (this.#steps[this.#place] === step) return;
    this.#steps[this.#place] = step;
    for (const { width, cells } of this.#rows.values())
      cells.fill(0, this.#place * width, (this.#place + 1) * width);
  }

  /** Adds to the numbers of this step. */
  add(name: string, values: ArrayLike<number>): void {
    const { width, cells } = this.#row(name, values.length);
    const from = this.#place * width;
    for (let i = 0; i < width; i += 1) cells[from + i] = (cells[from + i] ?? 0) + (values[i] ?? 0);
  }

  /** Raises the numbers of this step to `values`, where they are lower. */
  raise(name: string, values: ArrayLike<number>): void {
    const { width, cells } = this.#row(name, values.length);
    const from = this.#place * width;
    for (let i = 0; i < width; i += 1) cells[from + i] = Math.max(cells[from + i] ?? 0, values[i] ?? 0);
  }

  copy(): RingCopy {
    return { steps: this.#steps, rows: this.#rows };
  }

  #row(name: string, width: number): Row {
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const row = { width, cells: new Uint32Array(width * this.#count) };
    this.#rows.set(name, row);
    return row;
  }
}
