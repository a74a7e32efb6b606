import { QueryError, queryError } from 'osl-compiler';
import type { ClientCertificate, Identity, PasswordGuesses } from '../../../policy/index.js';
import { CLOCK_SKEW_SECONDS } from '../../../policy/tokens/token-fault.js';
import type { RequestCall } from './call.js';
import {
  type AccountSession,
  accountNow,
  type CertificateSession,
  callerIfAllowed,
  certificateNow,
  requireNotRevoked,
} from './identify.js';
import type { DecidingParts, RequestParts } from './parts.js';
import { ForeignFault } from './public-error.js';
import { recordBrokenConnection, refuseUnauthenticated, respond } from './respond.js';
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

/** The password is correct but refused because there were too many wrong guesses before it. */
export class TooManyGuesses extends Error {}

/**
 * Opens a session of a service account whose password was verified. Recorded either way.
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
    !(await SealedValue.open(parts.means).limiter.guesses.right(user, credentials.address))
  ) {
    // Not awaited, since the timing must not differ from that of a wrong password.
    void recordBrokenConnection(parts, call, 'login', new SurfaceFault('E4290', '28P01'));
    throw new TooManyGuesses();
  }
  const session = accountNow(parts, user, null);
  if (session === null) {
    const reason = queryError('invalidToken', { reason: 'there is no such service account' });
    throw await refuseUnauthenticated(parts, call, 'login', reason);
  }
  const known: RequestCall = { ...call, credentials: { kind: 'session', identity: session.identity } };
  await respond(parts, known, { action: 'login', bucket: null, ...NOTHING_TO_ANSWER });
  return session;
}

/**
 * Opens a session of `user` by client certificate. Recorded either way.
 *
 * @throws QueryError E2001, E3001, E4290, E5030
 */
export async function certificateLogin(
  parts: RequestParts,
  call: RequestCall,
  user: string,
  certificate: ClientCertificate,
): Promise<CertificateSession> {
  const session = certificateNow(parts, certificate, null);
  if (session === null || session.rule.subject !== user) {
    const reason = queryError('invalidCertificate', { reason: 'no rule of the policy is for it alone' });
    throw await refuseUnauthenticated(parts, call, 'login', reason);
  }
  const known: RequestCall = { ...call, credentials: { kind: 'session', identity: session.identity } };
  await respond(parts, known, { action: 'login', bucket: null, ...NOTHING_TO_ANSWER });
  return session;
}

const NOTHING_TO_ANSWER = { readsNoRows: true, decide: () => undefined, answer: () => undefined } as const;

/**
 * Replaces the token of an open session: same tenant, same chain. Recorded either way.
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

/** A key for the current rights of `identity`: equal keys mean equal rights. Empty if it has no access. */
export function rightsNow(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals'>,
  identity: Identity,
  call: RequestCall,
): string {
  const { manifest } = parts.model();
  const caller = callerIfAllowed(parts, identity, call);
  return caller === null
    ? ''
    : `${manifest.catalog.version} ${caller.access.signature} ${caller.access.claimed}`;
}

/**
 * Records and counts a statement that reads no data: SET, SHOW, BEGIN and the like, and catalog queries.
 *
 * @throws QueryError E4290, E5030
 */
export async function sessionCommand(
  parts: RequestParts,
  call: RequestCall,
  action = 'session',
): Promise<void> {
  await respond(parts, call, { action, bucket: 'catalog', ...NOTHING_TO_ANSWER });
}

/**
 * Records and counts a statement that the surface itself refused with this SQLSTATE or error.
 *
 * @throws QueryError E5030 if it could not be recorded. If the caller has lost its access, that is recorded instead.
 */
export async function refusedCommand(
  parts: RequestParts,
  call: RequestCall,
  refusal: string | QueryError,
): Promise<void> {
  const reason = typeof refusal === 'string' ? new SurfaceFault(refusal) : refusal;
  const decide = (): never => {
    throw reason;
  };
  try {
    await respond(parts, call, {
      ...NOTHING_TO_ANSWER,
      action: 'session',
      bucket: 'catalog',
      decide,
    });
  } catch (error) {
    if (error === reason) return;
    if (!(error instanceof QueryError) || error.entry === 'auditUnavailable') throw error;
  }
}

/** Records a failure before a session existed, with the SQLSTATE for the client. */
export function refusedConnection(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  sqlstate: string,
): Promise<void> {
  return recordBrokenConnection(parts, call, action, new SurfaceFault(sqlstate));
}

/** A refusal already sent in the surface's own protocol. */
class SurfaceFault extends ForeignFault {
  override readonly name = 'SurfaceFault';
  readonly code: string;
  override readonly heard: string | null;

  constructor(code: string, heard: string | null = null) {
    super(code);
    this.code = code;
    this.heard = heard;
  }
}

export function noteWrongPassword(
  { means }: Pick<RequestParts, 'means'>,
  ...guess: Parameters<PasswordGuesses['wrong']>
): ReturnType<PasswordGuesses['wrong']> {
  return SealedValue.open(means).limiter.guesses.wrong(...guess);
}

/** Registry of used tokens, shared by all processes of the server. */
export interface SingleUse {
  /** True if this is the token's first use. `issuedAt` in seconds, `endsAt` in ms since the epoch. */
  firstUse(token: string, issuedAt: number, endsAt: number): boolean | Promise<boolean>;
}

/**
 * Uses up the token of a call: it is valid for a single change, so that an intercepted token cannot make another.
 * Sessions of the Postgres protocol are exempt.
 *
 * @throws QueryError E3001
 */
export async function useUp(
  parts: SingleUse,
  { credentials }: RequestCall,
  identity: Identity,
): Promise<void> {
  if (credentials.kind !== 'bearer' || credentials.token === null) return;
  const { chain, tokenId, issuedAt, expiresAt, skewSeconds = CLOCK_SKEW_SECONDS } = identity;
  const name = JSON.stringify([chain, tokenId]);
  if (!(await parts.firstUse(name, issuedAt, (expiresAt + skewSeconds) * 1_000)))
    throw queryError('tokenUsed', {});
}
