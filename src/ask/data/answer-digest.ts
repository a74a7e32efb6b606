import { createHash, createHmac } from 'node:crypto';
import type { GovernedPlan } from 'osl-compiler';
import { eachDataRow, type RowSink, rowScheduler } from '../../engine/index.js';

/** Bytes that are hashed in one turn of the event loop. */
const AT_ONCE = 65_536;
/** Cost of one row by itself, as bytes. */
const ROW_COST = 128;

/**
 * Keyed digest of the columns and rows of an answer, whatever the order of its rows, in constant memory. Each row is
 * hashed with the key, and the hashes are added up: without the key nobody can make two sets of rows with one sum.
 */
export class AnswerDigest implements RowSink {
  readonly #key: Uint8Array;
  readonly #sums = new Uint32Array(8);
  #rows = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param dataRows whole DataRow messages with values in text format */
  write(dataRows: Uint8Array): void | Promise<void> {
    if (dataRows.length > AT_ONCE / 8) return this.#addInTurns(dataRows);
    for (const row of eachDataRow(dataRows)) this.#add(createHash('sha256').update(this.#key).update(row));
  }

  async #addInTurns(dataRows: Uint8Array): Promise<void> {
    let due = AT_ONCE;
    for (const row of eachDataRow(dataRows)) {
      const hash = createHash('sha256').update(this.#key);
      due -= ROW_COST;
      for (let at = 0; at < row.length; at += AT_ONCE) {
        const piece = row.subarray(at, at + AT_ONCE);
        hash.update(piece);
        due -= piece.length;
        if (due > 0) continue;
        due = AT_ONCE;
        await rowScheduler.wait();
      }
      this.#add(hash);
    }
  }

  #add(hash: ReturnType<typeof createHash>): void {
    const digest = hash.digest();
    for (let i = 0; i < this.#sums.length; i++)
      this.#sums[i] = (this.#sums[i] ?? 0) + digest.readUInt32LE(4 * i);
    this.#rows += 1;
  }

  /** Returns an opaque text of 22 characters, equal for equal answers under one key. */
  tag({ outputs }: Pick<GovernedPlan, 'outputs'>): string {
    const columns = outputs.map(({ name, type }) => [name, type]);
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([columns, this.#rows, [...this.#sums]]))
      .digest()
      .toString('base64url', 0, 16);
  }
}
