import type { GovernedPlan, OutputColumn } from 'osl-compiler';
import type { QueryAnswer } from '../../ask/index.js';
import { columnsOf, type IssuedReceipt } from '../../ask/receipts/receipt-request.js';
import { DataRowReader } from '../../engine/index.js';
import { type AnswerHead, columnDescription, type RowEncoding, trailerOf } from './answer.js';
import { JsonBytes, keyWriter, PORTION_BYTES, type ValueWriter, valueWriter } from './json-values.js';
import type { ProblemDocument } from './problem.js';

function headMembers({ requestId, plan, redacted }: AnswerHead): string {
  return `"request_id":"${requestId}","form":"${plan.form}","columns":${answerColumns(plan, redacted)}`;
}

const TEXT: readonly (0 | 1)[] = Object.freeze([0]);

/** Base class of the two JSON encodings. */
abstract class JsonEncoding {
  readonly copies = 0;
  protected readonly out = new JsonBytes();
  protected writer: JsonRowWriter | null = null;

  get pending(): number {
    return this.out.length;
  }

  formats(): readonly (0 | 1)[] {
    return TEXT;
  }

  rows(dataRows: Uint8Array): void {
    this.writer?.write(dataRows, this.out);
  }

  *portions(dataRows: Uint8Array): Generator<void> {
    if (this.writer !== null) yield* this.writer.portions(dataRows, this.out);
  }

  take(): Buffer {
    return this.out.take();
  }
}

/**
 * Encodes the answer as one JSON object. A failed answer is cut off, since JSON cannot express a failure partway
 * through.
 */
export class JsonAnswer extends JsonEncoding implements RowEncoding {
  readonly contentType = 'application/json';

  begin(head: AnswerHead): void {
    this.writer = new JsonRowWriter(shapeOf(head.plan), 'elements');
    this.out.text(`{${headMembers(head)},"rows":[`);
  }

  end(answer: QueryAnswer, receipt: IssuedReceipt | null): void {
    this.out.text(`],${JSON.stringify(trailerOf(answer, receipt)).slice(1)}`);
  }

  fail(): 'cut' {
    this.out.take();
    return 'cut';
  }
}

/** Encodes one row per line, then a line with the trailer, which reports success or failure. */
export class NdjsonAnswer extends JsonEncoding implements RowEncoding {
  readonly contentType = 'application/x-ndjson';
  #head: AnswerHead | null = null;
  #inRow = false;

  begin(head: AnswerHead): void {
    this.#head = head;
    this.writer = new JsonRowWriter(shapeOf(head.plan), 'lines');
  }

  override *portions(dataRows: Uint8Array): Generator<void> {
    this.#inRow = true;
    yield* super.portions(dataRows);
    this.#inRow = false;
  }

  end(answer: QueryAnswer, receipt: IssuedReceipt | null): void {
    const head = this.#head === null ? '' : `${headMembers(this.#head)},`;
    this.out.text(`{"trailer":{${head}${JSON.stringify(trailerOf(answer, receipt)).slice(1)}}\n`);
  }

  fail(problem: ProblemDocument): 'ended' | 'cut' {
    if (this.#inRow) this.out.text('\n');
    this.out.text(`${JSON.stringify({ trailer: { request_id: problem.request_id, problem } })}\n`);
    return this.#inRow ? 'cut' : 'ended';
  }
}

/** JSON format of a plan's rows. */
export interface RowShape {
  /** The answer's `columns` as JSON; null if the `redacted` flags depend on the rows. */
  readonly columns: string | null;
  readonly fields: readonly RowField[];
}

interface RowField {
  readonly prefix: Uint8Array;
  readonly value: ValueWriter;
}

/** Allocates a separate array per text: a small Buffer would keep its 8 KiB pool alive as long as the plan. */
const UTF8 = new TextEncoder();

const SHAPES = new WeakMap<GovernedPlan['outputs'], RowShape>();

export function shapeOf(plan: GovernedPlan): RowShape {
  const cached = SHAPES.get(plan.outputs);
  if (cached !== undefined) return cached;
  const columns = columnsOf(plan);
  const dependsOnRows = columns.some((c) => c.redactable.length > 0);
  const shape: RowShape = {
    columns: dependsOnRows ? null : columnsJson(columns, (c) => c.redacted),
    fields: columns.map(({ name, type, passageKey }, i) => ({
      prefix: UTF8.encode(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      value: passageKey ? keyWriter(type) : valueWriter(type),
    })),
  };
  SHAPES.set(plan.outputs, shape);
  return shape;
}

/** Returns the answer's `columns` as JSON. @param redacted for each column, true if it is redacted in any row */
function answerColumns(plan: GovernedPlan, redacted: readonly boolean[]): string {
  return shapeOf(plan).columns ?? columnsJson(columnsOf(plan), (_, i) => redacted[i] === true);
}

function columnsJson(
  columns: readonly OutputColumn[],
  isRedacted: (column: OutputColumn, index: number) => boolean,
): string {
  return JSON.stringify(columns.map((c, i) => columnDescription(c, isRedacted(c, i))));
}

const COMMA = 0x2c;
const NEWLINE = 0x0a;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const NULL = Buffer.from('null');

/** Placement of rows: elements of one array, or separate lines (NDJSON). */
type RowStyle = 'elements' | 'lines';

/** Converts DataRow messages to JSON objects, directly from their bytes. */
class JsonRowWriter {
  readonly #fields: readonly RowField[];
  readonly #style: RowStyle;
  #isFirstRow = true;

  constructor(shape: RowShape, style: RowStyle) {
    this.#fields = shape.fields;
    this.#style = style;
  }

  /** Writes rows; `dataRows` are whole messages with values in text format. */
  write(dataRows: Uint8Array, out: JsonBytes): void {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      if (this.#style === 'elements' && !this.#isFirstRow) out.byte(COMMA);
      this.#isFirstRow = false;
      this.#writeRow(rows, out);
      if (this.#style === 'lines') out.byte(NEWLINE);
    }
  }

  /** Like `write`, but for large rows: yields after each portion. */
  *portions(dataRows: Uint8Array, out: JsonBytes): Generator<void> {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      if (this.#style === 'elements' && !this.#isFirstRow) out.byte(COMMA);
      this.#isFirstRow = false;
      yield* this.#writeLargeRow(rows, out);
      if (this.#style === 'lines') out.byte(NEWLINE);
    }
  }

  *#writeLargeRow(row: DataRowReader, out: JsonBytes): Generator<void> {
    let nextYield = row.rowStart + PORTION_BYTES;
    for (const { prefix, value } of this.#fields) {
      out.copy(prefix, 0, prefix.length);
      if (!row.value()) out.copy(NULL, 0, NULL.length);
      else if (row.end - row.start > PORTION_BYTES)
        yield* value.portions(row.source, row.start, row.end, out);
      else value.write(row.source, row.start, row.end, out);
      if (row.end < nextYield) continue;
      nextYield = row.end + PORTION_BYTES;
      yield;
    }
    if (this.#fields.length === 0) out.byte(OPEN);
    out.byte(CLOSE);
  }

  #writeRow(row: DataRowReader, out: JsonBytes): void {
    for (const { prefix, value } of this.#fields) {
      out.copy(prefix, 0, prefix.length);
      if (row.value()) value.write(row.source, row.start, row.end, out);
      else out.copy(NULL, 0, NULL.length);
    }
    if (this.#fields.length === 0) out.byte(OPEN);
    out.byte(CLOSE);
  }
}
