import { mentionedNames, type Relation } from 'osl-compiler';
import { type PolicySnapshot, roleAccess } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import {
  type CatalogName,
  isMore,
  objectName,
  objectNamed,
  type Visibility,
  widestVisibility,
} from '../../model/graph/index.js';
import { grantsToApprove } from '../data/approval-refusal.js';
import type { AnswerParts } from '../data/parts.js';
import {
  type ApprovalRequest,
  approvalRequest,
  type OpenApproval,
  openRequest,
} from '../request/approval-requests.js';
import type { RequestCall } from '../request/call.js';
import { type Caller, versionsOf } from '../request/caller.js';
import { respond } from '../request/respond.js';

export interface AccessRequest {
  /** The object's name as the caller wrote it, declared or not; null if a statement is given. */
  readonly object: string | null;
  /** A statement that was refused because it needs an approval; null if an object is given. */
  readonly statement: string | null;
  readonly reason: string;
}

/** Result of an access request. It reveals nothing about the object, not even whether the object exists. */
export interface AccessRequested {
  /** False if no receiver is configured, so that nobody is notified. */
  readonly delivered: boolean;
  /** The request for approval; null if no grant of the caller lacks only an approval. */
  readonly approval: OpenApproval | null;
}

export interface AccessRequestParts extends AnswerParts {
  readonly owner: Owner;
}

/**
 * Records a request for access and notifies the policy's owner. For an object, the notice lists the roles and the grant
 * that would give access. For grants that lack only an approval, opens an approval request. Changes no rights.
 *
 * @throws QueryError E5034 if the receiver does not accept the notice, E4290, E5036, and the errors of `respond`
 */
export function requestAccess(
  parts: AccessRequestParts,
  call: RequestCall,
  request: AccessRequest,
): Promise<AccessRequested> {
  const { object, statement, reason } = request;
  return respond<ApprovalRequest | null, AccessRequested>(parts, call, {
    action: 'request_access',
    target: { kind: 'draft', text: JSON.stringify([object ?? statement, reason]) },
    bucket: 'authoring',
    decide: async (caller, record) => {
      const { relation, column } = objectNamed(object ?? '');
      const declared = object === null ? undefined : caller.manifest.catalog.relations.get(relation);
      if (declared !== undefined) record.setObjects({ form: null, objects: namesOf(declared, column) });
      if (statement !== null) {
        const { declared: objects } = mentionedNames(statement, 'either', caller.manifest.catalog);
        record.setObjects({ form: null, objects });
      }
      const grants = await grantsToApprove(parts, caller, { relation, statement }, record);
      if (grants.length === 0) return null;
      const made = await approvalRequest(parts, caller, { grants, reason, statement });
      record.setDetail(JSON.stringify({ approval: made.id, reason, purpose: made.purpose, task: made.task }));
      return made;
    },
    answer: async (made, caller) => {
      const approval = made === null ? null : await openRequest(parts, made);
      const { tell } = parts.owner;
      if (tell === null) return { delivered: false, approval };
      const body = { ...(await noticeOf(caller, request)), approval };
      await tell({ type: 'osl.access_request', id: call.requestId, body });
      return { delivered: true, approval };
    },
  });
}

/** Returns the names for the log: the relation, followed by the column if it exists. */
function namesOf(relation: Relation, column: string | null): readonly string[] {
  const all = [...relation.columns, ...(relation.computed ?? [])];
  const is = column !== null && all.some(({ name }) => name === column);
  return is ? [objectName(relation), objectName(relation, column)] : [objectName(relation)];
}

/**
 * A role that would show more of the object to a subject with this role alone and all attributes that its filters use.
 */
interface RoleOffer {
  readonly role: string;
  readonly sees: Visibility;
  /** Other objects that the role grants, and on which the subject has no grant yet. */
  readonly also: { readonly count: number; readonly first: readonly string[] };
}

/** Maximum number of roles listed, and of other objects listed for each. */
const OFFERS = 20;

/** Roles and a grant that would give access to an object. */
export interface AccessOffer {
  readonly declared: boolean;
  readonly sees: Visibility;
  readonly roles: readonly RoleOffer[];
  /** The smallest grant that would show the object unmasked, in policy syntax; null if the object is not declared. */
  readonly grant: Readonly<Record<string, unknown>> | null;
}

/** Returns the access that the current policy could offer to `caller`. */
export async function offerOf(
  caller: Pick<Caller, 'access' | 'manifest' | 'snapshot'>,
  object: string,
): Promise<AccessOffer> {
  const { access, manifest } = caller;
  const named = objectNamed(object);
  const relation = manifest.catalog.relations.get(named.relation);
  if (relation === undefined) return { declared: false, sees: 'nothing', roles: [], grant: null };
  const now = widestVisibility(relation, named.column, manifest.catalog, access);
  const roles = await inTurns(offersFor(named, relation, now, caller));
  return { declared: true, sees: now, roles, grant: grantFor(named, relation) };
}

async function noticeOf(
  caller: Caller,
  { object, reason }: AccessRequest,
): Promise<Readonly<Record<string, unknown>>> {
  const { identity } = caller;
  const about = {
    tenant: identity.tenant,
    subject: identity.subject,
    chain: identity.chain,
    object,
    reason,
    at: new Date().toISOString(),
    versions: versionsOf(caller),
  };
  return object === null ? about : { ...about, ...(await offerOf(caller, object)) };
}

/** Returns the roles that would show more of the object. Yields before each role, since roles may be many and large. */
function* offersFor(
  named: CatalogName,
  relation: Relation,
  now: Visibility,
  { access, manifest: { catalog }, snapshot }: Pick<Caller, 'access' | 'manifest' | 'snapshot'>,
): Generator<void, readonly RoleOffer[]> {
  const offers: RoleOffer[] = [];
  for (const [role, { grants }] of snapshot.roles) {
    if (offers.length === OFFERS) break;
    if (!grants.has(relation.name) || access.dataRoles.has(role)) continue;
    yield;
    const would = widestVisibility(relation, named.column, catalog, roleAccess(role, snapshot, catalog));
    if (isMore(would, now))
      offers.push({ role, sees: would, also: alsoOf(role, relation.name, snapshot, access) });
  }
  return offers;
}

function alsoOf(
  role: string,
  relation: string,
  { roles }: PolicySnapshot,
  { relations }: Caller['access'],
): RoleOffer['also'] {
  const others = [...(roles.get(role)?.grants.keys() ?? [])].filter(
    (n) => n !== relation && !relations.has(n),
  );
  return { count: others.length, first: others.slice(0, OFFERS) };
}

function grantFor(named: CatalogName, relation: Relation): Readonly<Record<string, unknown>> {
  const columns = named.column === null ? relation.columns.map((c) => c.name) : [named.column];
  const labels = relation.columns.filter((c) => columns.includes(c.name)).flatMap((c) => c.sensitivity ?? []);
  const unmask = [...new Set(labels)].sort();
  return { on: relation.name, columns, ...(unmask.length > 0 && { unmask }) };
}

export interface OwnerNotice {
  readonly type: string;
  /** A unique id by which the receiver can detect duplicates. */
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Notifies the owner of the policy. */
export interface Owner {
  /** Delivers a notice; resolves once it is accepted. Null if no receiver is configured. @throws QueryError E5034 */
  readonly tell: ((notice: OwnerNotice) => Promise<void>) | null;
}
