import { queryError } from 'osl-compiler';
import type { ApprovedExchange, ExchangeRequest, PolicySnapshot } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { RequestParts } from './parts.js';
import { publicError } from './public-error.js';
import { refuseUnauthenticated } from './refusals.js';
import { respond } from './respond.js';

/** Exchanges tokens of external issuers for actor tokens. */
export interface TokenExchange {
  /** Determines the subject by the rules of `snapshot`. @throws QueryError E3001, E5033 */
  exchange(request: ExchangeRequest, snapshot: PolicySnapshot): Promise<ApprovedExchange>;
}

export interface ExchangeAnswer {
  readonly token: string;
  readonly lifetime: number;
}

/**
 * Exchanges tokens for an actor token (RFC 8693). Once its subject is known, the exchange counts as a request by that
 * subject and is recorded with the rule, the issuer and the id of the new token.
 *
 * @throws QueryError E2001, E3001, E4290, E5030, E5033
 */
export async function exchangeTokens(
  parts: RequestParts & { readonly exchange: TokenExchange },
  call: RequestCall,
  request: ExchangeRequest,
): Promise<ExchangeAnswer> {
  const approved = await exchangeOrRefuse(parts, call, request);
  const { identity, matchedRule } = approved;
  const identified: RequestCall = { ...call, credentials: { kind: 'session', identity } };
  return respond<string, ExchangeAnswer>(parts, identified, {
    action: 'exchange',
    bucket: 'catalog',
    readsNoRows: true,
    decide: () => approved.mint(),
    answer: (token) => ({ token, lifetime: identity.expiresAt - identity.issuedAt }),
    detail: () =>
      JSON.stringify({ token_id: identity.tokenId, admin: identity.roles.length > 0, ...matchedRule }),
  });
}

async function exchangeOrRefuse(
  parts: RequestParts & { readonly exchange: TokenExchange },
  call: RequestCall,
  request: ExchangeRequest,
): Promise<ApprovedExchange> {
  try {
    const { snapshot } = parts.model();
    if (snapshot === null) throw queryError('noSnapshot', {});
    return await parts.exchange.exchange(request, snapshot);
  } catch (error) {
    throw await refuseUnauthenticated(parts, call, 'exchange', publicError(parts, call.requestId, error));
  }
}

/** Records a malformed exchange request; returns the error for the client. */
export function refuseExchangeRequest(
  parts: RequestParts,
  call: RequestCall,
  detail: string,
): Promise<ReturnType<typeof publicError>> {
  return refuseUnauthenticated(parts, call, 'exchange', queryError('malformedBody', { detail }));
}
