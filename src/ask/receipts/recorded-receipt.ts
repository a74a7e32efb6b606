import { queryError } from 'osl-compiler';
import { type AuditRecord, recordOfProof } from '../../../audit/index.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import type { RequestParts } from '../request/parts.js';
import { respond } from '../request/respond.js';

/** A receipt from the log. Its salt is not there: only the caller of the question got it. */
export interface RecordedReceipt {
  /** C2SP tlog-proof under the newest stored checkpoint. */
  readonly proof: string;
  /** Key that checks it; trust a copy that was kept elsewhere. */
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
 * Returns the receipt of an answer that the caller got, or, with an admin role, of any answer.
 *
 * @throws QueryError E4040 if there is none that the caller may see, E5031, and the errors of `respond`
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
      if (!REQUEST_ID.test(requestId)) throw queryError('noReceipt', {}); // without reading the log
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
