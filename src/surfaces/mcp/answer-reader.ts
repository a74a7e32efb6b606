import { EngineRefusal, objectIn, type ToolAnswer, unreachable } from './engine.js';

/** UTF-16 units; longer than any trailer or displayable row. */
const MOST_LINE = 1_048_576;

/**
 * Incremental reader of an NDJSON answer: rows up to `maxBytes`, then the trailer in the last line. Further rows are
 * dropped; the trailer has the engine's row count.
 */
export class AnswerReader {
  readonly #rows: unknown[] = [];
  #left: number;
  /** Last complete line: a row, or the trailer. */
  #last: string | null = null;
  /** Incomplete line after it. */
  #rest = '';
  #isOverlong = false;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  /** True if no further row fits. */
  get full(): boolean {
    return this.#left <= 0;
  }

  read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.#line(this.#isOverlong ? null : line);
      this.#isOverlong = false;
    }
    if (this.#rest.length > MOST_LINE) this.#isOverlong = true;
    if (this.#isOverlong) this.#rest = '';
  }

  /** @param line null if it was too long */
  #line(line: string | null): void {
    const row = this.#last;
    this.#last = line;
    if (row !== null && !this.full) this.#row(row);
    if (line === null) this.#left = 0;
  }

  #row(row: string): void {
    this.#left -= Buffer.byteLength(row) + 1;
    if (this.#left >= 0) this.#rows.push(JSON.parse(row));
  }

  /** @throws EngineRefusal if the answer broke off, or its trailer reports a failure */
  end(): ToolAnswer {
    if (this.#rest !== '') this.read('\n');
    const trailer = this.#last === null ? null : objectIn(this.#last)?.['trailer'];
    if (typeof trailer !== 'object' || trailer === null) throw unreachable();
    const members: Readonly<Record<string, unknown>> = { ...trailer };
    const problem = members['problem'];
    if (typeof problem === 'object' && problem !== null) throw refusalIn({ ...problem });
    return { rows: this.#rows, trailer: members };
  }
}

/** Failure after the answer had begun: its HTTP status was 200, the problem has the real one. */
function refusalIn(problem: Readonly<Record<string, unknown>>): EngineRefusal {
  const { status, request_id: id, detail } = problem;
  return new EngineRefusal(
    typeof status === 'number' ? status : null,
    problem,
    typeof id === 'string' ? id : null,
    typeof detail === 'string' ? detail : 'the execution failed',
  );
}
