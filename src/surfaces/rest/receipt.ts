import { type IssuedReceipt, ReceiptRequest } from '../../ask/receipts/receipt-request.js';
import { malformed } from './request-errors.js';

/**
 * Reads the preference `receipt` of the header `Prefer` (RFC 7240): `receipt`, or `receipt=multiset` for a digest of
 * the rows that does not depend on their order.
 *
 * @returns null if no receipt is wanted
 * @throws QueryError E0511
 */
export function preferredReceipt(prefer: string | readonly string[] | undefined): ReceiptRequest | null {
  for (const preference of [prefer ?? []].flat().join(',').split(',')) {
    const [token = ''] = preference.split(';');
    const end = token.indexOf('=');
    const name = (end < 0 ? token : token.slice(0, end)).trim();
    if (name.toLowerCase() !== 'receipt') continue;
    const order = end < 0 ? 'sequence' : unquoted(token.slice(end + 1).trim());
    if (order === 'sequence' || order === 'multiset') return new ReceiptRequest(order);
    throw malformed('the preference `receipt` is `sequence` or `multiset`');
  }
  return null;
}

function unquoted(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** The receipt of an answer as a member of its trailer. */
export function receiptMember(receipt: IssuedReceipt | null) {
  return receipt === null ? {} : { receipt };
}
