import { type QueryError, queryError } from 'osl-compiler';
import type { AuditSurface, Identity } from '../../policy/index.js';
import { effectiveAccess } from '../../policy/index.js';
import type { Service } from '../service.js';
import { limit, publicError } from './index.js';

/** Someone who wants a session instead of sending a token with each question. */
export interface LoginAttempt {
  readonly requestId: string;
  readonly surface: AuditSurface;
  /** Who the client says it is; must be the token's `sub`. */
  readonly user: string;
  readonly token: string;
}

/**
 * Opens a session: the token is verified, belongs to `user`, and a policy is loaded. Recorded either way.
 *
 * @throws QueryError E3001, E2001, E5030
 */
export async function login(service: Service, attempt: LoginAttempt): Promise<Identity> {
  let identity: Identity | null = null;
  try {
    if (attempt.token === '') throw queryError('missingToken', {});
    identity = await service.verifier.verify(attempt.token);
    if (identity.subject !== attempt.user) {
      throw queryError('invalidToken', { reason: 'its subject is not the user that logs in' });
    }
    const { manifest, snapshot } = service.model();
    if (snapshot === null) throw queryError('noSnapshot', {});
    effectiveAccess(identity, snapshot, manifest.catalog);
    await record(service, attempt, 'login', identity, null);
    return identity;
  } catch (error) {
    const told = publicError(service, attempt.requestId, error);
    if (told.code !== 'E5030') await recordQuietly(service, attempt, identity, told);
    throw told;
  }
}

type InSession = {
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly identity: Identity;
};

/** Records, and counts against the limits, a statement that touches no data: SET, SHOW, BEGIN and their like. */
export async function sessionCommand(service: Service, of: InSession): Promise<void> {
  await inSession(service, of, null);
}

/** The same for a statement that the surface itself refuses with this SQLSTATE. */
export async function refusedCommand(service: Service, of: InSession, sqlstate: string): Promise<void> {
  await inSession(service, of, sqlstate);
}

async function inSession(service: Service, of: InSession, code: string | null): Promise<void> {
  try {
    await limit(service, of.identity, 'catalog', of.surface);
    await service.audit.append(entryOf(service, of, 'session', of.identity, code));
  } catch (error) {
    throw publicError(service, of.requestId, error);
  }
}

/** Records something that was refused before anybody was known. */
export function recordRefusal(
  service: Service,
  of: { readonly requestId: string; readonly surface: AuditSurface },
  action: string,
  code: string | null,
): void {
  service.audit.append(entryOf(service, of, action, null, code), (failure) => {
    if (failure !== null) service.log.error('a refusal could not be recorded', { request_id: of.requestId });
  });
}

type Recorded = { readonly requestId: string; readonly surface: AuditSurface };

async function record(
  service: Service,
  of: Recorded,
  action: string,
  identity: Identity | null,
  told: QueryError | null,
): Promise<void> {
  await service.audit.append(entryOf(service, of, action, identity, told?.code ?? null));
}

/** A refusal stays a refusal when it cannot be recorded; the log says that it is broken. */
async function recordQuietly(
  service: Service,
  of: Recorded,
  identity: Identity | null,
  told: QueryError,
): Promise<void> {
  try {
    await record(service, of, 'login', identity, told);
  } catch (error) {
    publicError(service, of.requestId, error);
  }
}

function entryOf(
  service: Service,
  of: Recorded,
  action: string,
  identity: Identity | null,
  code: string | null,
) {
  const { manifest, snapshot } = service.model();
  return {
    kind: 'decision' as const,
    request_id: of.requestId,
    tenant: service.tenant,
    surface: of.surface,
    action,
    subject: identity?.subject ?? null,
    chain: identity?.chain ?? [],
    decision: code === null ? ('allow' as const) : ('deny' as const),
    code,
    versions: { manifest: manifest.version, policy: snapshot?.version ?? null },
  };
}
