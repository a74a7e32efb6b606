import { EngineRefusal, objectIn, type ToolAnswer, unreachable } from './engine.js';

/** UTF-16 units. No trailer is longer, nor is a row that anybody is shown. */
const MOST_LINE = 1_048_576;

/**
 * Reads an NDJSON answer as it comes: rows as long as they fit into `maxBytes`, then the trailer, which is the last
 * line. What does not fit is dropped; the trailer's count is that of the engine.
 */
export class AnswerReader {
  readonly #rows: unknown[] = [];
  #left: number;
  /** The last line that is whole: a row, or the trailer. */
  #last: string | null = null;
  /** What came of the line after it. */
  #rest = '';
  #isOverlong = false;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  /** No further row fits: none needs to be written. */
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

  /** @param line null for one that is too long for any use */
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

  /** @throws EngineRefusal where the answer broke off, or its trailer says that the execution failed */
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

/** The answer had begun when the execution failed: its status was 200, its problem says what it is. */
function refusalIn(problem: Readonly<Record<string, unknown>>): EngineRefusal {
  const { status, request_id: id, detail } = problem;
  return new EngineRefusal(
    typeof status === 'number' ? status : null,
    problem,
    typeof id === 'string' ? id : null,
    typeof detail === 'string' ? detail : 'the execution failed',
  );
}
