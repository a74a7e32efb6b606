import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import { version } from '../../src/base/package-root.js';
import { type AnswerNotes, notesOn } from '../answer.js';
import { batchesOf, bytesOf, openArrow, refuseTerminal } from '../arrow.js';
import type { QueryCall } from '../ndjson.js';
import { note } from '../output.js';
import { type ParquetColumn, parquetColumn } from './columns.js';

/** Batches per row group, each of at most 8,192 rows or one megabyte: bounds the memory. */
const GROUP_BATCHES = 8;

/**
 * Requests an answer in Arrow and writes it to standard output as a Parquet file, row group by row group. The trailer
 * is in the file's metadata as `osl.trailer`. A broken stream leaves no footer, so that the file is unreadable rather
 * than incomplete.
 *
 * @throws Failure if the query is refused, the stream breaks off, or standard output is a terminal
 */
export async function printParquet(asking: QueryCall): Promise<AnswerNotes> {
  refuseTerminal('parquet');
  const response = await openArrow(asking);
  const file = new ParquetFile();
  const answer = await batchesOf(bytesOf(response), asking, (batch) => file.add(batch));
  await file.end(answer);
  for (const line of notesOn(answer)) note(line);
  return answer;
}

class ParquetFile {
  readonly #out = new StandardOutput();
  #columns: readonly ParquetColumn[] = [];
  #writer: ParquetWriter | null = null;
  #held: RecordBatch[] = [];

  async add(batch: RecordBatch): Promise<void> {
    this.#writer ??= this.#begin(batch);
    if (batch.numRows > 0) this.#held.push(batch);
    if (this.#held.length >= GROUP_BATCHES) await this.#writeGroup(this.#writer);
  }

  /** Every answer has at least one batch, which started the file. */
  async end(answer: AnswerNotes): Promise<void> {
    if (this.#writer === null) return;
    await this.#writeGroup(this.#writer);
    this.#writer.kvMetadata = [{ key: 'osl.trailer', value: JSON.stringify(answer) }];
    await this.#writer.finish();
  }

  #begin({ schema: { fields } }: RecordBatch): ParquetWriter {
    this.#columns = fields.map(parquetColumn);
    const root = { name: 'schema', num_children: fields.length };
    return new ParquetWriter({
      writer: this.#out,
      schema: [root, ...this.#columns.flatMap(({ schema }) => schema)],
      createdBy: `osl-gateway version ${version()}`,
    });
  }

  async #writeGroup(writer: ParquetWriter): Promise<void> {
    const batches = this.#held;
    this.#held = [];
    const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
    if (rows === 0) return;
    const columnData = this.#columns.map(
      ({ name, value }, i): ColumnSource => ({ name, data: valuesOf(batches, i, value) }),
    );
    await writer.write({ columnData, rowGroupSize: rows });
  }
}

function valuesOf(batches: readonly RecordBatch[], column: number, value: ParquetColumn['value']): unknown[] {
  return batches.flatMap((batch) => {
    const data = batch.data.children[column];
    return Array.from({ length: batch.numRows }, (_, row) => (data === undefined ? null : value(data, row)));
  });
}

class StandardOutput extends ByteWriter {
  async flush(): Promise<void> {
    const chunk = Buffer.from(this.buffer.slice(0, this.index));
    this.index = 0;
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
  }

  override finish(): Promise<void> {
    return this.flush();
  }
}
