import { randomBytes } from 'node:crypto';
import { type GovernedPlan, InternalError } from 'osl-compiler';
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

/** Rows of at most this many bytes are digested in one turn of the event loop. */
const AT_ONCE_BYTES = 262_144;
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

  /** Returns a sink that digests rows before it passes them on. @throws QueryError E0511 */
  digesting({ outputs }: GovernedPlan, formats: readonly (0 | 1)[], sink: RowSink): RowSink {
    const canonical = new CanonicalRows(outputs, formats);
    const { left } = sink;
    return {
      write: (dataRows, rows) => {
        const pieces = this.#digest.byRow ? canonical.rows(dataRows) : canonical.pieces(dataRows);
        if (dataRows.length > AT_ONCE_BYTES)
          return this.#addInTurns(pieces).then(() => sink.write(dataRows, rows));
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
      due -= piece.length;
      if (due > 0) continue;
      due = AT_ONCE_BYTES;
      await rowScheduler.wait();
    }
  }
}
