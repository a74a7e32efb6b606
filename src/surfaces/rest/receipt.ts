import { type IssuedReceipt, ReceiptRequest } from '../../ask/receipts/receipt-request.js';
import { malformed } from './request-errors.js';

const PREFERENCE = /^receipt(?:\s*=\s*"?([^"]*)"?)?$/i;

/**
 * Reads the preference `receipt` of the header `Prefer` (RFC 7240): `receipt`, or `receipt=multiset` for a digest of
 * the rows that does not depend on their order.
 *
 * @returns null if no receipt is wanted
 * @throws QueryError E0511
 */
export function preferredReceipt(prefer: string | readonly string[] | undefined): ReceiptRequest | null {
  for (const part of [prefer ?? []].flat().join(',').split(',')) {
    const match = PREFERENCE.exec(part.split(';')[0]?.trim() ?? '');
    if (match === null) continue;
    const order = match[1] ?? 'sequence';
    if (order === 'sequence' || order === 'multiset') return new ReceiptRequest(order);
    throw malformed('the preference `receipt` is `sequence` or `multiset`');
  }
  return null;
}

/** The receipt of an answer as a member of its trailer. */
export function receiptMember(receipt: IssuedReceipt | null) {
  return receipt === null ? {} : { receipt };
}
