import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import { version } from '../../src/base/package-root.js';
import { type AnswerNotes, notesOn } from '../answer.js';
import { batchesOf, bytesOf, openArrow, refuseTerminal } from '../arrow.js';
import type { QueryCall } from '../ndjson.js';
import { note } from '../output.js';
import { type ParquetColumn, parquetColumn } from './columns.js';

/** Batches of a row group, each of 8,192 rows or one megabyte at most: what is held of an answer. */
const GROUP_BATCHES = 8;

/**
 * Asks for an answer in Arrow, and writes it to standard output as a Parquet file, a row group at a time. What the server
 * said of the rows is in the file's metadata, as `osl.trailer`. An answer that breaks off leaves no footer, so that no
 * reader takes the file for whole.
 *
 * @throws Failure where it is refused, breaks off, or would be written to a terminal
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

/** A Parquet file on standard output. */
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

  /** The last batch, which every answer has, has begun the file. */
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

/** Hands on what is written after each row group, and waits until it was taken. */
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
