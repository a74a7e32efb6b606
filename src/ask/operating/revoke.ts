import { queryError } from 'osl-compiler';
import type { Revocation, RevocationKey, RevocationMade } from '../../../policy/index.js';
import type { RequestCall } from '../index.js';
import { type OperatingParts, operate, simply } from './operate.js';

/** `session`: the token that a session of the wire, or a request, goes on under now. */
export type RevocationAsked = RevocationKey | { readonly kind: 'session'; readonly name: string };

/** A revocation, as admins see it. Times are RFC 3339. */
export interface RevocationView {
  readonly id: string;
  readonly kind: RevocationKey['kind'];
  readonly name: string;
  readonly at: string;
  readonly until: string;
}

/**
 * Revokes a token, that of a session, or all of a subject that were issued by now. Recorded with what was revoked.
 *
 * @param read what is to be revoked
 * @throws QueryError E2101; E4040 for a session that there is none of; E0511 where too many are in force; and as `read`
 */
export function revoke(
  parts: OperatingParts,
  call: RequestCall,
  read: () => RevocationAsked,
): Promise<RevocationView & Pick<RevocationMade, 'shared'>> {
  const about: Record<string, string> = {};
  return operate(parts, call, {
    action: 'admin_revoke',
    about,
    read,
    answer: async (asked) => {
      about[asked.kind] = asked.name;
      const what = asked.kind === 'session' ? await tokenOf(parts, asked.name) : asked;
      about[what.kind] = what.name;
      const { revocation, shared } = await parts.revocations.revoke(what);
      return { ...viewOf(revocation), shared };
    },
  });
}

/** The revocations in force, in the order in which they became known. @throws QueryError E2101 */
export function revocations(parts: OperatingParts, call: RequestCall): Promise<readonly RevocationView[]> {
  return simply(parts, call, 'admin_show', async () => parts.revocations.revoked.all().map(viewOf));
}

async function tokenOf({ operated }: OperatingParts, session: string): Promise<RevocationKey> {
  const views = await operated.views();
  const found = views.flatMap((view) => view.sessions).find(({ id }) => id === session);
  if (found === undefined || found.token_id === null) throw queryError('noSession', {});
  return { kind: 'token', name: found.token_id };
}

function viewOf({ id, kind, name, at, until }: Revocation): RevocationView {
  return { id, kind, name, at: new Date(at).toISOString(), until: new Date(until).toISOString() };
}
