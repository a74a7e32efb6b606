import { queryError } from 'osl-compiler';
import type { ClientCertificate, Identity, PasswordGuesses } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import { NO_ANSWER_STEPS, SurfaceFault } from './calls-without-data.js';
import {
  type AccountSession,
  type CertificateSession,
  callerIfAllowed,
  currentAccountSession,
  currentCertificateSession,
  requireNotRevoked,
} from './identify.js';
import type { DecidingParts, RequestParts } from './parts.js';
import { recordBrokenConnection, refuseUnauthenticated } from './refusals.js';
import { respond } from './respond.js';
import { SealedValue } from './sealed.js';

/**
 * Authenticates a session by a valid token of `user`. Success and failure are both recorded.
 *
 * @throws QueryError E2102, E3001, E2001, E4290, E5030
 */
export function login(parts: RequestParts, call: RequestCall, user: string): Promise<Identity> {
  return respond<Identity, Identity>(parts, call, {
    action: 'login',
    bucket: null,
    readsNoRows: true,
    decide: ({ identity }) => {
      if (identity.subject !== user)
        throw queryError('invalidToken', { reason: 'its subject is not the user that logs in' });
      return identity;
    },
    answer: (identity) => identity,
  });
}

/** Thrown for a correct password that is refused because there were too many wrong guesses before it. */
export class TooManyGuesses extends Error {}

/**
 * Opens a session of a service account whose password was verified. Success and failure are both recorded.
 *
 * @throws QueryError E2001, E3001, E5030; TooManyGuesses
 */
export async function accountLogin(
  parts: RequestParts,
  call: RequestCall,
  user: string,
): Promise<AccountSession> {
  const { credentials } = call;
  if (
    credentials.kind === 'bearer' &&
    !(await SealedValue.open(parts.controls).limiter.guesses.acceptsRight(user, credentials.address))
  ) {
    // Not awaited, since the timing must not differ from that of a wrong password.
    void recordBrokenConnection(parts, call, 'login', new SurfaceFault('E4290', '28P01'));
    throw new TooManyGuesses();
  }
  const session = currentAccountSession(parts, user, null);
  if (session === null) {
    const reason = queryError('invalidToken', { reason: 'there is no such service account' });
    throw await refuseUnauthenticated(parts, call, 'login', reason);
  }
  const identified: RequestCall = { ...call, credentials: { kind: 'session', identity: session.identity } };
  await respond(parts, identified, { action: 'login', bucket: null, ...NO_ANSWER_STEPS });
  return session;
}

/**
 * Opens a session of `user` by client certificate. Success and failure are both recorded.
 *
 * @throws QueryError E2001, E3001, E4290, E5030
 */
export async function certificateLogin(
  parts: RequestParts,
  call: RequestCall,
  user: string,
  certificate: ClientCertificate,
): Promise<CertificateSession> {
  const session = currentCertificateSession(parts, certificate, null);
  if (session === null || session.rule.subject !== user) {
    const reason = queryError('invalidCertificate', { reason: 'no rule of the policy is for it alone' });
    throw await refuseUnauthenticated(parts, call, 'login', reason);
  }
  const identified: RequestCall = { ...call, credentials: { kind: 'session', identity: session.identity } };
  await respond(parts, identified, { action: 'login', bucket: null, ...NO_ANSWER_STEPS });
  return session;
}

/**
 * Replaces the token of an open session by one with the same tenant and chain. Success and failure are both recorded.
 *
 * @throws QueryError E3001, E2001, E4290, E5030
 */
export function renew(
  parts: RequestParts,
  call: RequestCall,
  current: Identity,
  token: string,
): Promise<Identity> {
  return respond<Identity, Identity>(parts, call, {
    action: 'renew',
    bucket: 'catalog',
    readsNoRows: true,
    decide: async () => {
      const next = await parts.verifier.verify(token);
      requireNotRevoked(parts, next);
      if (next.tenant !== current.tenant || next.chain.join('\n') !== current.chain.join('\n'))
        throw queryError('invalidToken', { reason: "it is not a token of this session's caller" });
      return next;
    },
    answer: (next) => next,
  });
}

/** Returns a key for the current rights of `identity`, equal for equal rights. Empty if `identity` has no access. */
export function currentRightsKey(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals'>,
  identity: Identity,
  call: RequestCall,
): string {
  const { manifest } = parts.model();
  const caller = callerIfAllowed(parts, identity, call);
  return caller === null
    ? ''
    : `${manifest.catalog.version} ${caller.access.signature} ${caller.access.attributesKey}`;
}

export function countWrongPassword(
  { controls }: Pick<RequestParts, 'controls'>,
  ...guess: Parameters<PasswordGuesses['countWrong']>
): ReturnType<PasswordGuesses['countWrong']> {
  return SealedValue.open(controls).limiter.guesses.countWrong(...guess);
}
