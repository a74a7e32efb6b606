import {
  AsyncByteQueue,
  Data,
  type Field,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
} from 'apache-arrow';
import type { GovernedPlan } from 'osl-compiler';
import type { QueryAnswer } from '../../../ask/index.js';
import { columnsOf } from '../../../ask/receipts/columns.js';
import type { IssuedReceipt } from '../../../ask/receipts/receipt-request.js';
import { DataRowReader } from '../../../engine/index.js';
import { type AnswerHead, ARROW_STREAM, type RowEncoding, trailerOf } from '../answer.js';
import { PORTION_BYTES } from '../json-values.js';
import type { ProblemDocument } from '../problem.js';
import type { ArrowColumn } from './buffers.js';
import { columnOf, fieldOf, formatOf } from './columns.js';

/** A record batch ends when it reaches either of these limits, so that memory does not grow with the answer. */
const BATCH_ROWS = 8_192;
const BATCH_BYTES = 1_048_576;

/**
 * Arrow IPC stream: schema, batches of rows, then an empty batch with the trailer in its metadata. A failed answer
 * ends with an empty batch that has the problem in its metadata, without the end-of-stream marker.
 */
export class ArrowAnswer implements RowEncoding {
  readonly contentType = ARROW_STREAM;
  /** One copy is in the column and one in the batch. */
  readonly copies = 2;
  readonly #sink = new Chunks();
  readonly #writer = new RecordBatchStreamWriter();
  #taken: Buffer[] = [];
  #pending = 0;
  #schema = new Schema();
  #columns: readonly ArrowColumn[] = [];
  #rows = 0;
  #bytes = 0;

  get pending(): number {
    return this.#pending;
  }

  formats({ outputs }: GovernedPlan): readonly (0 | 1)[] {
    return outputs.map(({ type }) => formatOf(type));
  }

  begin({ requestId, plan, versions, redacted }: AnswerHead): void {
    const outputs = columnsOf(plan).map((output) => ({ output, column: columnOf(output) }));
    this.#columns = outputs.map(({ column }) => column);
    const fields: Field[] = outputs.map(({ output, column }, i) =>
      fieldOf(output, redacted[i] === true, column),
    );
    const metadata = new Map([
      ['osl.request_id', requestId],
      ['osl.form', plan.form],
      ['osl.versions', JSON.stringify(versions)],
    ]);
    this.#schema = new Schema(fields, metadata);
    this.#writer.reset(this.#sink, this.#schema);
    this.#collect();
  }

  rows(dataRows: Uint8Array): void {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      for (const column of this.#columns) {
        if (rows.value()) column.value(rows.source, rows.start, rows.end);
        else column.null();
      }
      this.#rowEnded(rows);
    }
  }

  *portions(dataRows: Uint8Array): Generator<void> {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      let due = rows.rowStart + PORTION_BYTES;
      for (const column of this.#columns) {
        if (!rows.value()) column.null();
        else if (column.portions !== undefined && rows.end - rows.start > PORTION_BYTES)
          yield* column.portions(rows.source, rows.start, rows.end);
        else column.value(rows.source, rows.start, rows.end);
        if (rows.end < due) continue;
        due = rows.end + PORTION_BYTES;
        yield;
      }
      this.#rowEnded(rows);
    }
  }

  #rowEnded({ rowLength }: DataRowReader): void {
    this.#rows += 1;
    this.#bytes += rowLength;
    if (this.#rows >= BATCH_ROWS || this.#bytes >= BATCH_BYTES) this.#writeBatch();
  }

  end(answer: QueryAnswer, receipt: IssuedReceipt | null): void {
    if (this.#rows > 0) this.#writeBatch();
    const head = { request_id: answer.requestId, form: answer.plan.form };
    this.#writeBatch(new Map([['osl.trailer', JSON.stringify({ ...head, ...trailerOf(answer, receipt) })]]));
    this.#writer.finish();
    this.#collect();
  }

  fail(problem: ProblemDocument): 'cut' {
    this.#clear();
    this.#writeBatch(new Map([['osl.problem', JSON.stringify(problem)]]));
    return 'cut';
  }

  take(): Buffer {
    const [only, ...others] = this.#taken;
    const bytes = only !== undefined && others.length === 0 ? only : Buffer.concat(this.#taken);
    this.#taken = [];
    this.#pending = 0;
    return bytes;
  }

  #writeBatch(metadata?: Map<string, string>): void {
    const children = this.#columns.map((column) => column.data());
    const data = new Data(new Struct(this.#schema.fields), 0, this.#rows, 0, undefined, children);
    this.#writer.write(new RecordBatch(this.#schema, data, metadata));
    this.#collect();
    this.#clear();
  }

  #clear(): void {
    for (const column of this.#columns) column.clear();
    this.#rows = 0;
    this.#bytes = 0;
  }

  /** Copies the chunks written so far, which are views of buffers that the next batch overwrites. */
  #collect(): void {
    const bytes = Buffer.concat(this.#sink.drain());
    this.#pending += bytes.length;
    this.#taken.push(bytes);
  }
}

/** Collects the Arrow library's output, since its own queue can only be read later. */
class Chunks extends AsyncByteQueue {
  #chunks: Uint8Array[] = [];

  override write(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  drain(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }
}
