import { assertNever, QueryError, queryError, SURFACE_PHRASES } from 'osl-compiler';
import { compileSnapshotInSteps, type PolicySnapshot } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import type { DraftFinding, ManifestDifference, PublishStep } from '../../model/authoring/index.js';
import type { DraftBaseline, DraftCompiler, StepResult } from '../../model/drafting/drafting.js';
import { entityName, facetName, metricName } from '../../model/graph/index.js';
import { EMPTY_OVERLAY, type Manifest } from '../../model/manifest/index.js';
import type {
  NewVersion,
  PublicationStore,
  StoredDraft,
  Version,
  VersionFile,
  VersionSummary,
} from '../../model/versions/versions.js';
import type { UpstreamParts } from '../graph/describe.js';
import {
  adminsOnly,
  type Caller,
  consumeToken,
  type Decision,
  type RequestCall,
  type RequestParts,
  type RunningParts,
  respond,
  type ServedVersions,
  type SingleUse,
  versionsOf,
} from '../index.js';

/** Returns notes for the author about added objects that no role has a grant on. */
function grantNotes({
  diff,
  snapshot,
}: {
  readonly diff: ManifestDifference;
  readonly snapshot: PolicySnapshot;
}): readonly string[] {
  return diff.changes.flatMap(({ change, kind, name }): readonly string[] => {
    const granted = [...snapshot.roles.values()].some((role) => role.grants.has(name));
    if (change !== 'added' || granted || !GRANTED_KINDS.has(kind)) return [];
    return [`${kind} ${name}: no role has a grant on it, so nobody sees it until the policy gives one`];
  });
}

const GRANTED_KINDS: ReadonlySet<string> = new Set(['entity', 'bridge', 'facet']);

/** A requested change to the published objects. */
export interface ChangeRequest {
  readonly change:
    | { readonly action: 'publish'; readonly text: string; readonly placed: boolean }
    | { readonly action: 'publish'; readonly draft: string }
    | { readonly action: 'deprecate'; readonly reasons: ReadonlyMap<string, string | null> }
    | { readonly action: 'withdraw'; readonly paths: readonly string[] }
    /** Number or id of a version; 0 restores the manifest file alone. */
    | { readonly action: 'rollback'; readonly to: number | string };
  readonly base: string | null;
  readonly text: string;
}

export type PublishResult =
  | WithVersions<{
      readonly kind: 'published';
      /** False if everything was already published and nothing had to be written. */
      readonly changed: boolean;
      /** The newest version; null if only the manifest file is served. */
      readonly version: VersionSummary | null;
      readonly diff: ManifestDifference;
      readonly notes: readonly string[];
    }>
  | { readonly kind: 'refused'; readonly error: QueryError; readonly diagnostics: readonly DraftFinding[] };

/**
 * Publishes a change; changes are processed one at a time. The new version is written and then served, between the
 * audit records of the decision and the outcome. At any moment either the old or the new model is served.
 *
 * @throws QueryError E4280, E4120, E4090, E3001, E2101, E1001, E1002, E5036, and the errors of `respond`
 */
export async function publish(
  parts: PublishingParts,
  call: RequestCall,
  request: ChangeRequest,
): Promise<PublishResult> {
  let findings: readonly DraftFinding[] | null = null;
  try {
    return await respond<PublishDecision, PublishResult>(parts, call, {
      action: request.change.action,
      target: { kind: 'draft', text: request.text },
      ...AUTHORING,
      // Changes run one at a time; the served model may have changed while this one waited.
      inTurn: (work) => parts.publishing.exclusively(work),
      decide: async (caller, record) => {
        const { stepped, made } = await computeChange(parts, caller, request);
        if (!stepped.ok) {
          ({ findings } = stepped);
          throw notServable(findings);
        }
        const { manifest, diff } = stepped;
        const { document } = caller.snapshot;
        const snapshot = await inTurns(compileSnapshotInSteps(document, manifest.catalog, manifest.tenant));
        const worked = { ...stepped, snapshot };
        if (made !== null) requireSameRowSecurity(parts, caller, worked);
        record.setObjects({ form: null, objects: objectsOf(diff, manifest) });
        // A no-op does not use up the token, so a client that lost the response can repeat its request.
        if (made !== null) await consumeToken(parts, call, caller.identity);
        return { worked, made };
      },
      answer: async ({ worked, made }, caller) => ({
        kind: 'published',
        changed: made !== null,
        version:
          made === null
            ? (parts.publishing.versions.history.at(-1) ?? null)
            : await commit(parts, call, caller, worked, made),
        diff: worked.diff,
        notes: grantNotes(worked),
        versions: versionsOf(worked),
      }),
    });
  } catch (error) {
    const isRefused = error instanceof QueryError && error.entry === 'notServable';
    if (!isRefused || findings === null) throw error;
    return { kind: 'refused', error, diagnostics: findings };
  }
}

interface PublishDecision {
  readonly worked: PublishableChange;
  readonly made: VersionOrigin | null;
}

type PublishableChange = Extract<StepResult, { ok: true }> & { readonly snapshot: PolicySnapshot };
type VersionOrigin = Pick<NewVersion, 'action' | 'draft' | 'restores'>;

async function computeChange(
  parts: PublishingParts,
  caller: Caller,
  request: ChangeRequest,
): Promise<{ readonly stepped: StepResult; readonly made: VersionOrigin | null }> {
  const { step, draft, restores } = await stepOf(parts, request);
  const stepped = await parts.drafting.workOut(step, baselineOf(caller.model), caller.identity.subject);
  // A repeated request, e.g. after a lost response, succeeds whatever its base version.
  if (stepped.ok && stepped.published) return { stepped, made: null };
  requireCurrentBase(request.base, caller, parts.publishing);
  return { stepped, made: { action: step.action, draft, restores } };
}

/** INVARIANT: the decision record is durable before the version is written, and the version before it is served. */
async function commit(
  { publishing, log }: PublishingParts,
  { requestId }: RequestCall,
  caller: Caller,
  worked: PublishableChange,
  made: VersionOrigin,
): Promise<VersionSummary> {
  const { identity } = caller;
  const { objects, over, manifest, snapshot, diff } = worked;
  const { versions, serve } = publishing;
  const next: VersionFile = versions.next({
    at: new Date().toISOString(),
    author: { subject: identity.subject, chain: identity.chain },
    request_id: requestId,
    ...made,
    base: caller.model.file.version,
    manifest: manifest.version,
    policy: snapshot.version,
    changes: diff.changes,
    access: diff.access,
    objects,
    over,
  });
  await shared(publishing, next, caller);
  const summary = await versions.append(next);
  await serve(caller.model.over({ manifest, snapshot }, next.version));
  const { id, number } = next.version;
  log.info('published', { request_id: requestId, version: id, number, manifest: manifest.version });
  return summary;
}

/** Shares the version with the other gateways. @throws QueryError E4120, E5036 */
async function shared({ share }: PublicationStore, sealed: VersionFile, { manifest }: Caller): Promise<void> {
  const outcome = await share(sealed);
  switch (outcome) {
    case 'shared':
      return;
    case 'outdated':
      throw queryError('baseChanged', { current: manifest.version });
    case 'unavailable':
      throw queryError('controlUnavailable', {});
    default:
      return assertNever(outcome);
  }
}

/** Requires that the change is based on the served version and that this version is the newest. */
function requireCurrentBase(
  base: string | null,
  { manifest, model: { published } }: Caller,
  { versions }: PublicationStore,
): void {
  const current = manifest.version;
  if (base === null) throw queryError('baseRequired', { current });
  if (base !== current || (published?.id ?? null) !== (versions.head?.id ?? null))
    throw queryError('baseChanged', { current });
}

/**
 * Rejects changes that would require different row-security policies in a database: only its owner can install those,
 * so such changes must be made in the manifest file.
 *
 * @throws QueryError E1002
 */
function requireSameRowSecurity(parts: PublishingParts, served: Caller, next: PublishableChange): void {
  for (const { name, rowSecurity } of next.manifest.connectors.values()) {
    if (!rowSecurity) continue;
    const signer = parts.rowRights(name);
    if (signer.version(next) === signer.version(served)) continue;
    const why = 'make it in the manifest file, then `osl row-security --write` and a reload';
    throw queryError('notServable', {
      fault: `connector \`${name}\` needs other row security: ${why}`,
      more: 0,
    });
  }
}

function notServable(findings: readonly DraftFinding[]): QueryError {
  const [first] = findings;
  return queryError('notServable', {
    fault: first === undefined ? 'it does not compile' : `${first.code} ${first.message}`,
    more: Math.max(0, findings.length - 1),
  });
}

/** Returns the full names of the changed objects; a changed column or attribute counts as a change to its owner. */
function objectsOf({ changes }: ManifestDifference, manifest: Manifest): readonly string[] {
  const names = changes.map(({ kind, name }): string => {
    const owner = name.split('.')[0] ?? name;
    switch (kind) {
      case 'entity':
      case 'bridge':
        return entityName(name);
      case 'derived':
        return entityName(owner);
      case 'column':
        return manifest.facets.has(owner) ? facetName(owner) : entityName(owner);
      case 'facet':
        return facetName(name);
      case 'metric':
        return metricName(name);
      case 'relationship':
        return `osl.relationships.${name}`;
      case 'term':
        return `osl.lexicon.${name}`;
      case 'connector':
      case 'raw_table':
        return `osl.connectors.${name}`;
      case 'feature':
        return `osl.features.${name}`;
      default:
        return assertNever(kind);
    }
  });
  return [...new Set(names)].sort();
}

interface ResolvedChange {
  readonly step: PublishStep;
  readonly draft: string | null;
  readonly restores: number | null;
}

async function stepOf(parts: PublishingParts, { change }: ChangeRequest): Promise<ResolvedChange> {
  const own = { draft: null, restores: null };
  switch (change.action) {
    case 'publish':
      return 'draft' in change ? draftStep(parts, change.draft) : { step: change, ...own };
    case 'deprecate':
    case 'withdraw':
      return { step: change, ...own };
    case 'rollback': {
      const to = await versionFor(parts, change.to);
      const step = { action: 'rollback', to: to ?? { objects: {}, over: {} } } as const;
      return { step, draft: null, restores: to?.number ?? 0 };
    }
    default:
      return assertNever(change);
  }
}

function draftStep(parts: PublishingParts, id: string): ResolvedChange {
  const draft = draftNamed(parts, id);
  if (draft.validated === null) {
    throw queryError('wrongState', {
      detail: `\`${id}\` has not been validated`,
      hint: SURFACE_PHRASES.validate.rest,
    });
  }
  return { step: { action: 'publish', text: draft.text, placed: draft.placed }, draft: id, restores: null };
}

async function versionFor(
  { publishing: { versions } }: PublishingParts,
  to: number | string,
): Promise<Version | null> {
  if (to === 0) return null;
  const version = await versions.find((v) => v.number === to || v.id === to);
  if (version === null) throw unknownVersion('version', String(to));
  return version;
}

/** Returns the draft with this id. @throws QueryError E1001 if there is no such draft */
export function draftNamed({ publishing }: PublishingParts, id: string): StoredDraft {
  const draft = publishing.drafts.get(id);
  if (draft === null) throw unknownVersion('draft', id);
  return draft;
}

function unknownVersion(what: 'draft' | 'version', name: string): QueryError {
  return queryError('unresolvable', {
    detail: `there is no ${what} \`${name.slice(0, 100)}\``,
    hint: SURFACE_PHRASES.objects.rest,
  });
}

/** Dependencies of authoring requests, in addition to `RequestParts`. */
export interface PublishingParts
  extends RequestParts,
    SingleUse,
    UpstreamParts,
    Pick<RunningParts, 'engines' | 'rowRights'> {
  readonly publishing: PublicationStore;
  readonly drafting: DraftCompiler;
}

/** A response with the versions it is based on. */
export type WithVersions<T> = T & { readonly versions: ServedVersions };

/** Settings of all authoring requests: a separate rate-limit bucket; the whole delegation chain needs an admin role. */
export const AUTHORING = {
  bucket: 'authoring',
  requireAllowed: adminsOnly('authorsOnly'),
} as const satisfies Partial<Decision<unknown>>;

/**
 * Handles an authoring request that the caller's role alone decides, such as storing a draft.
 *
 * @param text logged as a fingerprint; null if the request has no text
 * @throws QueryError E2101 without an admin role, and the errors of `respond`
 */
export function authored<T>(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  text: string | null,
  answer: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  return respond<Caller, T>(parts, call, {
    action,
    ...(text !== null && { target: { kind: 'draft', text } }),
    ...AUTHORING,
    decide: (caller) => caller,
    answer,
  });
}

/** The served model and the documents it was compiled from. */
export type AuthoringBaseline = DraftBaseline & { readonly snapshot: PolicySnapshot };

/** Returns the model that drafts are compiled against. @throws QueryError E2001 if no policy is in force */
export function baselineOf({ manifest, snapshot, file, published }: Caller['model']): AuthoringBaseline {
  if (snapshot === null) throw queryError('noSnapshot', {});
  const { objects } = published ?? EMPTY_OVERLAY;
  return { base: file.document, objects, manifest, snapshot };
}
