import { randomUUID } from 'node:crypto';
import type { PolicyDocument, ServiceAccountDocument } from './document.js';
import type { Identity } from './identity.js';
import type { NameResolver } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';
import { checkTime, readClaims } from './tokens/claims.js';
import { DEFAULT_ISSUER, isName, MAX_LIFETIME_SECONDS, TOKEN_VERSION } from './tokens/token-fault.js';

/** A password login for the Postgres port. It acts for one subject, within that subject's ceiling. */
export interface ServiceAccount {
  readonly login: string;
  readonly subject: string;
  readonly aclRoles: readonly string[];
  /** The SCRAM verifier from the policy. */
  readonly scram: string;
}

export function compileServiceAccount(
  login: string,
  { subject, scram, acl_roles: declaredRoles }: ServiceAccountDocument,
  document: PolicyDocument,
  names: NameResolver,
  problems: ProblemList,
): ServiceAccount {
  const path: DocumentPath = ['service_accounts', login];
  if (!isName(login)) problems.add('name', path, { message: 'nobody can log in under this name' });
  if (Object.hasOwn(document.subjects, login))
    problems.add('serviceAccount', path, {
      message: 'a subject has this name',
      hint: 'subjects log in with a token; give the account a name of its own',
    });
  const owner = Object.hasOwn(document.subjects, subject) ? document.subjects[subject] : undefined;
  if (owner === undefined)
    problems.add('serviceAccount', [...path, 'subject'], { message: `there is no subject \`${subject}\`` });
  const aclRoles = [...names.roles(declaredRoles ?? owner?.ceiling ?? [], [...path, 'acl_roles'])];
  return Object.freeze({ login, subject, aclRoles: Object.freeze(aclRoles), scram });
}

/**
 * Creates the identity after password or certificate authentication. Its claims are those of an actor token for the
 * account's subject, valid for 300 s from `now` (ms since the epoch), and pass the same checks.
 *
 * @throws QueryError E3001
 */
export function accountIdentity(
  account: Pick<ServiceAccount, 'subject' | 'aclRoles'>,
  tenant: string,
  now: number,
): Identity {
  const issuedAt = Math.floor(now / 1_000);
  const claims = readClaims(
    new Map<string, unknown>(
      Object.entries({
        version: TOKEN_VERSION,
        tenant_id: tenant,
        chain: [account.subject],
        sub: account.subject,
        roles: [],
        acl_roles: [...account.aclRoles],
        iss: DEFAULT_ISSUER,
        iat: issuedAt,
        exp: issuedAt + MAX_LIFETIME_SECONDS,
        jti: randomUUID(),
      }),
    ),
    { tenant },
  );
  checkTime(claims, now);
  return claims.identity;
}
