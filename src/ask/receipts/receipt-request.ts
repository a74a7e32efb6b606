import { randomBytes } from 'node:crypto';
import { type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import type { RowOrder } from '../../../audit/index.js';
import { type BoundValue, type RowSink, rowScheduler } from '../../engine/index.js';
import type { QuestionBody } from '../request/request-target.js';
import type { RequestedReceipt } from '../request/respond.js';
import { CanonicalRows } from './canonical-rows.js';
import { questionDigest, type RowDigest, rowDigest, SALT_BYTES } from './digests.js';

/** A receipt and what only its caller gets. */
export interface IssuedReceipt {
  /** C2SP tlog-proof of the outcome's record. */
  readonly proof: string;
  /** Salt of the digests in the record, base64url. */
  readonly salt: string;
}

/** Rows of at most this many bytes are digested in one turn of the event loop, if nothing else is done with them. */
const AT_ONCE_BYTES = 262_144;
/** The same for rows that are converted, or digested one by one. */
const AT_ONCE_ROWS = 16_384;
/** What digesting one row by itself costs, as bytes of a digest in order. */
const ROW_COST = 2_048;
/** Largest row, in bytes, that is digested by itself. */
const MOST_ROW = 1_048_576;
/** Names of masked columns that a record holds at most. */
const MOST_MASKED = 64;

/** A receipt that a client wants for one answer. */
export class ReceiptRequest {
  readonly #salt = randomBytes(SALT_BYTES);
  readonly #digest: RowDigest;
  #proof: Promise<string> | null = null;

  constructor(order: RowOrder) {
    this.#digest = rowDigest(order, this.#salt);
  }

  /** Returns a sink that digests rows before it passes them on. @throws QueryError E1001 */
  digesting({ outputs }: GovernedPlan, formats: readonly (0 | 1)[], sink: RowSink): RowSink {
    const canonical = new CanonicalRows(outputs, formats);
    const { left } = sink;
    const { byRow } = this.#digest;
    const atOnce = byRow || !canonical.unchanged ? AT_ONCE_ROWS : AT_ONCE_BYTES;
    return {
      write: (dataRows, rows) => {
        const pieces = byRow ? smallRows(canonical.rows(dataRows)) : canonical.pieces(dataRows);
        if (dataRows.length > atOnce) return this.#addInTurns(pieces).then(() => sink.write(dataRows, rows));
        for (const piece of pieces) this.#digest.add(piece);
        return sink.write(dataRows, rows);
      },
      ...(left !== undefined && { left: () => left.call(sink) }),
    };
  }

  /** What the recorder needs; the digests are made once, after the last row. */
  requestedFor(
    body: QuestionBody,
    parameters: readonly BoundValue[],
  ): RequestedReceipt<{ readonly plan: GovernedPlan }> {
    return {
      digests: ({ plan: { redactedColumns } }) => {
        const masked = redactedColumns.slice(0, MOST_MASKED);
        return {
          masked,
          masked_omitted: redactedColumns.length - masked.length,
          order: this.#digest.order,
          question: questionDigest(this.#salt, body, parameters),
          rows: this.#digest.digest(),
        };
      },
      issue: (proof) => {
        proof.catch(() => undefined); // thrown by `issued`
        this.#proof = proof;
      },
    };
  }

  /** @throws AuditUnavailable if the outcome could not be recorded */
  async issued(): Promise<IssuedReceipt> {
    if (this.#proof === null) throw new InternalError('the answer of a receipt is not complete');
    return { proof: await this.#proof, salt: this.#salt.toString('base64url') };
  }

  async #addInTurns(pieces: Iterable<Uint8Array>): Promise<void> {
    let due = AT_ONCE_BYTES;
    for (const piece of pieces) {
      this.#digest.add(piece);
      due -= piece.length + (this.#digest.byRow ? ROW_COST : 0);
      if (due > 0) continue;
      due = AT_ONCE_BYTES;
      await rowScheduler.wait();
    }
  }
}

function* smallRows(rows: Iterable<Uint8Array>): Generator<Uint8Array> {
  for (const row of rows) {
    if (row.length > MOST_ROW)
      throw queryError('unresolvable', {
        detail: 'a receipt that does not depend on the order takes rows of at most 1 MiB, and one is larger',
        hint: 'ask for a receipt that depends on the order',
      });
    yield row;
  }
}
