import type { RowSink } from '../../engine/index.js';

/** Passes rows on, and counts those that were sent. */
export class CountedSink implements RowSink {
  readonly #sink: RowSink;
  #rows = 0;

  constructor(sink: RowSink) {
    this.#sink = sink;
  }

  write(dataRows: Uint8Array, rows: number): void | Promise<void> {
    this.#rows += rows;
    return this.#sink.write(dataRows, rows);
  }

  left(): number {
    return this.#sink.left?.() ?? this.#rows;
  }
}
