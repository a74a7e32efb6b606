import type { QueryAnswer } from '../../ask/index.js';
import { type AnswerHead, tailOf } from './answer-members.js';
import type { RowEncoding } from './encoding.js';
import { JsonBytes } from './json-bytes.js';
import type { ProblemDocument } from './problem.js';
import { answerColumns, JsonRowWriter, type RowStyle, shapeOf } from './rows.js';

function headOf({ requestId, plan, redacted }: AnswerHead): string {
  return `"request_id":"${requestId}","form":"${plan.form}","columns":${answerColumns(plan, redacted)}`;
}

function rowsOf(head: AnswerHead | null, style: RowStyle): JsonRowWriter | null {
  return head === null ? null : new JsonRowWriter(shapeOf(head.plan), style);
}

const TEXT: readonly (0 | 1)[] = Object.freeze([0]);

/** One JSON object. A failed answer is cut off, since JSON cannot express it. */
export class JsonAnswer implements RowEncoding {
  readonly contentType = 'application/json';
  readonly copies = 0;
  readonly #out = new JsonBytes();
  #rows: JsonRowWriter | null = null;

  get pending(): number {
    return this.#out.length;
  }

  formats(): readonly (0 | 1)[] {
    return TEXT;
  }

  begin(head: AnswerHead): void {
    this.#rows = rowsOf(head, 'elements');
    this.#out.text(`{${headOf(head)},"rows":[`);
  }

  rows(dataRows: Uint8Array): void {
    this.#rows?.write(dataRows, this.#out);
  }

  *portions(dataRows: Uint8Array): Generator<void> {
    if (this.#rows !== null) yield* this.#rows.portions(dataRows, this.#out);
  }

  end(answer: QueryAnswer): void {
    this.#out.text(`],${JSON.stringify(tailOf(answer)).slice(1)}`);
  }

  fail(): 'cut' {
    this.#out.take();
    return 'cut';
  }

  take(): Buffer {
    return this.#out.take();
  }
}

/** One row per line, then a line with the trailer, which reports success or failure. */
export class NdjsonAnswer implements RowEncoding {
  readonly contentType = 'application/x-ndjson';
  readonly copies = 0;
  readonly #out = new JsonBytes();
  #head: AnswerHead | null = null;
  /** True while a row is incomplete. */
  #inRow = false;
  #rows: JsonRowWriter | null = null;

  get pending(): number {
    return this.#out.length;
  }

  formats(): readonly (0 | 1)[] {
    return TEXT;
  }

  begin(head: AnswerHead): void {
    this.#head = head;
    this.#rows = rowsOf(head, 'lines');
  }

  rows(dataRows: Uint8Array): void {
    this.#rows?.write(dataRows, this.#out);
  }

  *portions(dataRows: Uint8Array): Generator<void> {
    this.#inRow = true;
    if (this.#rows !== null) yield* this.#rows.portions(dataRows, this.#out);
    this.#inRow = false;
  }

  end(answer: QueryAnswer): void {
    const head = this.#head === null ? '' : `${headOf(this.#head)},`;
    this.#out.text(`{"trailer":{${head}${JSON.stringify(tailOf(answer)).slice(1)}}\n`);
  }

  fail(problem: ProblemDocument): 'ended' | 'cut' {
    if (this.#inRow) this.#out.text('\n');
    this.#out.text(`${JSON.stringify({ trailer: { request_id: problem.request_id, problem } })}\n`);
    return this.#inRow ? 'cut' : 'ended';
  }

  take(): Buffer {
    return this.#out.take();
  }
}
