import { queryError } from 'osl-compiler/errors';

/** The reasons for refusing an identity token. They name the rule and contain nothing from the token. */
const EXCHANGE_FAULTS = Object.freeze({
  type: 'header `typ` is not that of an ID or access token',
  secretAlgorithm: 'it must be signed with a key of its issuer: RS256, ES256 or EdDSA',
  kind: 'it is not a token of the kind that it is given as',
  issuer: 'claim `iss` is no issuer whose tokens are exchanged here',
  audience: 'claim `aud` does not name this service',
  party: 'claim `azp` does not name a client of this service',
  subject: 'claim `sub` must be a name',
  issuedAt: 'claim `iat` must be a whole number of seconds',
  expiry: 'claim `exp` must be a whole number of seconds',
  notBefore: 'claim `nbf` must be a whole number of seconds',
  order: 'claim `exp` must be later than `iat`',
  lifetime: 'it lives longer than its issuer may have it',
  rule: 'no rule of the policy takes it',
  name: 'the rule that takes it finds no subject in its claims',
  attribute: 'a claim has a value that is not of the type which policy compares it with',
  chain: 'the chain of the two tokens is too long, or names somebody twice',
  mayAct: 'its claim `may_act` names another actor',
  direct: 'the rule that takes it wants it exchanged first',
  large: 'what it would become is larger than a token may be',
});

const HINT =
  'the file of OSL_ISSUERS says whose tokens are accepted, and `exchange` in policy.yaml what they become';

export type ExchangeFault = keyof typeof EXCHANGE_FAULTS;

/** Refuses an identity token. @throws QueryError E3001 */
export function refuseExchange(fault: ExchangeFault): never {
  throw queryError('invalidToken', { reason: EXCHANGE_FAULTS[fault], hint: HINT });
}
