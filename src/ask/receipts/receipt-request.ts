import { randomBytes } from 'node:crypto';
import { type GovernedPlan, InternalError, type OutputColumn, queryError, type TypeName } from 'osl-compiler';
import { type AuditRecord, type RowOrder, recordOfProof } from '../../../audit/index.js';
import { type BoundValue, type RowSink, rowScheduler } from '../../engine/index.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import type { RequestParts } from '../request/parts.js';
import type { QuestionBody } from '../request/request-target.js';
import { type RequestedReceipt, respond } from '../request/respond.js';
import { CanonicalRows } from './canonical-rows.js';
import { MOST_UNORDERED, questionDigest, type RowDigest, rowDigest, SALT_BYTES } from './digests.js';

/** A receipt, and the salt that only its caller gets. */
export interface IssuedReceipt {
  /** C2SP tlog-proof of the outcome's record. */
  readonly proof: string;
  /** Salt of the digests in the record, in base64url. */
  readonly salt: string;
}

/** Properties of an answer that go into its receipt, in addition to the rows. */
interface ReceiptedAnswer {
  readonly plan: GovernedPlan;
  readonly redactedFields: readonly string[];
  readonly truncated: boolean;
  readonly clipped: boolean;
  /**
   * Source of the answer and the time that it reflects; null if the query ran on the primary and used neither the
   * answer cache nor a rollup.
   */
  readonly freshness: { readonly from: string; readonly asOf: number } | null;
}

/** Bytes digested in one turn of the event loop if the rows need no conversion and are not digested one by one. */
const AT_ONCE_BYTES = 262_144;
/** Bytes digested in one turn of the event loop if rows are converted or digested one by one. */
const AT_ONCE_ROWS = 8_192;
/** Fixed cost of digesting one row by itself, expressed as bytes of converted rows. */
const ROW_COST = 64;
/** Maximum size in bytes of a row that is digested by itself. */
const MOST_ROW = 1_048_576;
/** Maximum number of names of masked columns in a record. */
const MOST_MASKED = 64;

/** A client's request for a receipt of one answer. */
export class ReceiptRequest {
  readonly #order: RowOrder;
  readonly #salt = randomBytes(SALT_BYTES);
  #digest: RowDigest | null = null;
  #proof: Promise<string> | null = null;

  constructor(order: RowOrder) {
    this.#order = order;
  }

  /**
   * Returns a sink that digests rows before it passes them on. @throws QueryError E1001 if the rows cannot be digested
   */
  digesting(plan: GovernedPlan, formats: readonly (0 | 1)[], sink: RowSink): RowSink {
    const columns = columnsOf(plan).map((column) => ({ name: column.name, type: shownType(column) }));
    const digest = rowDigest(this.#order, this.#salt, columns);
    this.#digest = digest;
    const canonical = new CanonicalRows(plan.outputs, formats);
    const atOnce = digest.byRow || !canonical.unchanged ? AT_ONCE_ROWS : AT_ONCE_BYTES;
    let total = 0;
    const { rowsSent: left } = sink;
    return {
      write: (dataRows, rows) => {
        total += rows;
        if (digest.byRow && total > MOST_UNORDERED) throw tooManyRows();
        const pieces = digest.byRow ? smallRows(canonical.rows(dataRows)) : canonical.pieces(dataRows);
        if (dataRows.length > atOnce)
          return addInTurns(digest, pieces, atOnce).then(() => sink.write(dataRows, rows));
        for (const piece of pieces) digest.add(piece);
        return sink.write(dataRows, rows);
      },
      ...(left !== undefined && { rowsSent: () => left.call(sink) }),
    };
  }

  /** Returns the receipt request for `respond`, which computes the digests once, after the last row. */
  requestedFor(body: QuestionBody, parameters: readonly BoundValue[]): RequestedReceipt<ReceiptedAnswer> {
    return {
      digests: (answer) => {
        if (this.#digest === null) throw new InternalError('the rows of a receipt were not digested');
        const { redactedColumns, maskedColumns } = answer.plan;
        const all = [...new Set([...redactedColumns, ...maskedColumns, ...answer.redactedFields])];
        const masked = all.slice(0, MOST_MASKED);
        return {
          as_of: answer.freshness === null ? null : new Date(answer.freshness.asOf).toISOString(),
          masked,
          masked_omitted: all.length - masked.length,
          order: this.#order,
          question: questionDigest(this.#salt, body, parameters),
          rows: this.#digest.digest(),
          truncated: answer.truncated || answer.clipped,
        };
      },
      issue: (proof) => {
        proof.catch(() => undefined); // `issued` reports the error
        this.#proof = proof;
      },
    };
  }

  /** Returns the receipt once it is in the log. @throws QueryError E5030 if the outcome could not be recorded */
  async issued(): Promise<IssuedReceipt> {
    if (this.#proof === null) throw new InternalError('the answer of a receipt is not complete');
    return { proof: await this.#proof, salt: this.#salt.toString('base64url') };
  }
}

async function addInTurns(digest: RowDigest, pieces: Iterable<Uint8Array>, atOnce: number): Promise<void> {
  let due = atOnce;
  for (const piece of pieces) {
    digest.add(piece);
    due -= piece.length + (digest.byRow ? ROW_COST : 0);
    if (due > 0) continue;
    due = atOnce;
    await rowScheduler.wait();
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

function tooManyRows(): Error {
  return queryError('unresolvable', {
    detail: `a receipt that does not depend on the order takes at most ${MOST_UNORDERED} rows, and there are more`,
    hint: 'ask for a receipt that depends on the order, with ORDER BY',
  });
}

/**
 * Returns an answer's columns with unique names, usable as keys of a JSON object: the second of several equal names
 * becomes `name_2`, the third `name_3`, skipping names already used by other columns.
 */
export function columnsOf({ outputs }: Pick<GovernedPlan, 'outputs'>): readonly OutputColumn[] {
  const own = new Set(outputs.map((o) => o.name));
  const taken = new Set<string>();
  // Last suffix used per name; lower ones are taken.
  const last = new Map<string, number>();
  return outputs.map((output) => {
    let name = output.name;
    let n = last.get(name) ?? 1;
    while (taken.has(name)) {
      const next = `${output.name}_${++n}`;
      name = own.has(next) ? name : next;
    }
    last.set(output.name, n);
    taken.add(name);
    return { ...output, name };
  });
}

/** Returns the type that a column has in JSON, where the key of a passage is always a string. */
export function shownType({ type, passageKey }: OutputColumn): TypeName {
  return passageKey ? 'text' : type;
}

/** A receipt read from the log. It has no salt, which only the caller of the question received. */
export interface RecordedReceipt {
  /** C2SP tlog-proof under the newest stored checkpoint. */
  readonly proof: string;
  /** Key that verifies the proof. Do not rely on this copy: use one that was stored elsewhere. */
  readonly verifier_key: string;
}

interface LogProofs {
  /** Returns proofs for all records of a request that a checkpoint covers. */
  prove(
    asker: Pick<Caller['identity'], 'tenant' | 'subject' | 'chain'> & Pick<RequestCall, 'requestId'>,
    requestId: string,
  ): Promise<readonly { readonly text: string; readonly verifier_key: string }[]>;
}

/** Dependencies of requests for recorded receipts. */
export interface ReceiptParts extends RequestParts {
  readonly reading: LogProofs;
}

const REQUEST_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Returns the receipt of an earlier answer to the same caller. With an admin role, returns that of any answer in the
 * tenant.
 *
 * @throws QueryError E4040 if there is no receipt that the caller may see, E5031, and the errors of `respond`
 */
export function recordedReceipt(
  parts: ReceiptParts,
  call: RequestCall,
  requestId: string,
): Promise<RecordedReceipt> {
  return respond<null, RecordedReceipt>(parts, call, {
    action: 'receipt',
    bucket: 'authoring',
    decide: () => null,
    answer: async (_, caller) => {
      if (!REQUEST_ID.test(requestId)) throw queryError('noReceipt', {}); // cannot be an id, so do not read the log
      const { tenant, subject, chain } = caller.identity;
      const asker = { requestId: call.requestId, tenant, subject, chain };
      for (const { text, verifier_key } of await parts.reading.prove(asker, requestId)) {
        const record = recordOfProof(text);
        if (record?.receipt !== undefined && mayRead(caller, record)) return { proof: text, verifier_key };
      }
      throw queryError('noReceipt', {});
    },
  });
}

function mayRead({ identity, access }: Caller, { tenant, subject, chain }: AuditRecord): boolean {
  if (tenant !== identity.tenant) return false;
  const isOwn = subject === identity.subject && chain.join('\n') === identity.chain.join('\n');
  return isOwn || access.adminRoles.size > 0;
}
