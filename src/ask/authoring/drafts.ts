import { queryError, SURFACE_PHRASES } from 'osl-compiler';
import type { Judgement, Proposal, Suggestion } from '../../model/authoring/index.js';
import {
  type AdoptionCandidate,
  candidateFor,
  candidatesIn,
  candidatesInAll,
  tableKey,
  type UpstreamSchema,
} from '../../model/discovery/index.js';
import { shortName } from '../../model/graph/index.js';
import { type Manifest, memberAt, pathsIn } from '../../model/manifest/index.js';
import {
  draftId,
  MAX_DRAFTS,
  type StoredDraft,
  type Version,
  type VersionSummary,
} from '../../model/versions/versions.js';
import { type Unread, upstreamOf, upstreamsOf } from '../graph/describe.js';
import { type RequestCall, respond, versionsOf } from '../index.js';
import {
  AUTHORING,
  type AuthoringBaseline,
  authored,
  baselineOf,
  draftNamed,
  type PublishingParts,
  type WithVersions,
} from './publish.js';

/** Database relations that the manifest does not use yet. */
export interface Candidates {
  readonly candidates: readonly AdoptionCandidate[];
  readonly unread: readonly Unread[];
  readonly truncated: boolean;
}

/** The object to draft. Tables and candidates are named `connector.schema.table`. */
export interface SuggestionTarget {
  readonly kind: 'candidate' | 'table' | 'term';
  readonly name: string;
}

/** Lists relations that the manifest lacks. @throws QueryError E2101 without an admin role, and those of `respond` */
export async function candidates(parts: PublishingParts, call: RequestCall): Promise<Candidates> {
  return authored(parts, call, 'candidates', null, async (caller) => {
    const { read, unread, truncated } = await upstreamsOf(parts, call.requestId);
    return { candidates: candidatesInAll(read, caller.manifest), unread, truncated };
  });
}

/** Drafts a fragment; stores nothing. @throws QueryError E1001 if nothing can be drafted, and those of `candidates` */
export async function suggest(
  parts: PublishingParts,
  call: RequestCall,
  wish: SuggestionTarget,
): Promise<WithVersions<Suggestion>> {
  return authored(parts, call, 'suggest', JSON.stringify(wish), async ({ identity: { subject } }) => {
    const served = baselineOf(parts.model());
    return { ...(await suggestion(parts, call, served, subject, wish)), versions: versionsOf(served) };
  });
}

/**
 * Validates a fragment or a whole manifest; stores nothing. Errors in the text are part of the result.
 * @throws the errors of `candidates`
 */
export async function validate(
  parts: PublishingParts,
  call: RequestCall,
  proposal: Proposal,
): Promise<WithVersions<Judgement>> {
  return authored(parts, call, 'validate', proposal.text, async ({ identity: { subject } }) => {
    const served = baselineOf(parts.model());
    const judgement = await parts.drafting.judge(proposal, served, subject);
    return { ...judgement, versions: versionsOf(served) };
  });
}

async function suggestion(
  parts: PublishingParts,
  call: RequestCall,
  served: AuthoringBaseline,
  author: string,
  wish: SuggestionTarget,
): Promise<Suggestion> {
  if (wish.kind === 'term')
    return (await parts.drafting.suggestTerm(shortName(wish.name), served, author)) ?? nothingFor(wish);
  const connector = [...parts.engines.keys()].find((name) => wish.name.startsWith(`${name}.`));
  if (connector === undefined) return nothingFor(wish);
  const read = await upstreamOf(parts, call.requestId, connector);
  if (typeof read === 'string')
    throw queryError('unresolvable', { detail: `connector \`${connector}\`: ${read}`, hint: null });
  const found = findCandidate(wish, read, connector, served.manifest);
  if (found === undefined) return nothingFor(wish);
  return parts.drafting.suggestRelation(found, served, author);
}

/** Finds the relation to draft: a candidate must not be in the manifest yet, but a table may be. */
function findCandidate(
  { kind, name }: SuggestionTarget,
  read: UpstreamSchema,
  connector: string,
  manifest: Manifest,
): AdoptionCandidate | undefined {
  if (kind === 'candidate') return candidatesIn(read, connector, manifest).find((c) => c.id === name);
  const relation = read.relations.find((r) => `${connector}.${tableKey(r)}` === name);
  return relation === undefined ? undefined : candidateFor(relation, read, connector, manifest);
}

function nothingFor({ kind, name }: SuggestionTarget): never {
  const what = {
    candidate: 'is not a candidate',
    table: 'is not a table',
    term: 'meets nothing in the graph',
  }[kind];
  const hint = kind === 'term' ? null : `${SURFACE_PHRASES.candidates.rest}, as \`connector.schema.table\``;
  throw queryError('unresolvable', { detail: `\`${name}\` ${what}`, hint });
}

/** A draft in one of three states, as shown to authors. */
export type DraftSummary = Omit<StoredDraft, 'text' | 'placed'> & {
  readonly state: 'draft' | 'validated' | 'published';
  /** Id of the version that this draft was published as; null if it was not published. */
  readonly published_as: string | null;
};

/** Published objects, version history and drafts. */
export interface Publications {
  /** The manifest version being served, on which a change must be based. */
  readonly version: string;
  /** Version of the manifest file alone, without published objects. */
  readonly base: string;
  readonly objects: readonly PublishedObject[];
  readonly history: readonly VersionSummary[];
  readonly drafts: readonly DraftSummary[];
  readonly truncated: boolean;
}

interface PublishedObject {
  /** `section.name`, as in a manifest. */
  readonly name: string;
  readonly state: 'published' | 'deprecated';
  /** True if the manifest file declares the same object and this one overrides it. */
  readonly over_file: boolean;
}

const LISTED = 200;

/** Stores a fragment, valid or not, once per text. @throws QueryError E0511, and the errors of `candidates` */
export async function storeDraft(
  parts: PublishingParts,
  call: RequestCall,
  fragment: { readonly text: string; readonly placed: boolean },
): Promise<DraftSummary> {
  const { drafts, exclusively } = parts.publishing;
  return authored(parts, call, 'draft', fragment.text, ({ identity: { subject, chain } }) =>
    exclusively(async () => {
      const id = draftId(fragment.text);
      const at = new Date().toISOString();
      const draft = drafts.get(id) ?? { id, at, author: { subject, chain }, ...fragment, validated: null };
      if (drafts.get(id) === null) {
        if (drafts.size >= MAX_DRAFTS)
          throw queryError('tooLarge', { what: 'the number of drafts', limit: MAX_DRAFTS });
        await drafts.put(draft);
      }
      return summaryOf(parts, draft);
    }),
  );
}

/** Deletes a draft; versions published from it remain. @throws QueryError E1001, and the errors of `candidates` */
export async function discardDraft(
  parts: PublishingParts,
  call: RequestCall,
  id: string,
): Promise<DraftSummary> {
  return authored(parts, call, 'discard', id, () =>
    parts.publishing.exclusively(async () => {
      const draft = draftNamed(parts, id);
      await parts.publishing.drafts.discard(draft.id);
      return summaryOf(parts, draft);
    }),
  );
}

/** Validates a draft as `publish` would; records the result. @throws QueryError E2101, and those of `discardDraft` */
export async function validateDraft(
  parts: PublishingParts,
  call: RequestCall,
  id: string,
): Promise<WithVersions<Judgement & { readonly draft: DraftSummary }>> {
  return respond(parts, call, {
    action: 'validate',
    target: { kind: 'draft', text: id },
    ...AUTHORING,
    inTurn: (work) => parts.publishing.exclusively(work),
    decide: async (caller) => {
      const draft = draftNamed(parts, id);
      const step = { action: 'publish', text: draft.text, placed: draft.placed } as const;
      const { subject } = caller.identity;
      return { draft, stepped: await parts.drafting.workOut(step, baselineOf(caller.model), subject) };
    },
    answer: async ({ draft, stepped }, caller) => {
      const versions = versionsOf(caller);
      const by = caller.identity.subject;
      const validated = stepped.ok ? { at: new Date().toISOString(), by, ...versions } : null;
      await parts.publishing.drafts.put({ ...draft, validated });
      return {
        ok: stepped.ok,
        diagnostics: stepped.ok ? [] : stepped.findings,
        diff: stepped.ok ? stepped.diff : null,
        draft: summaryOf(parts, draftNamed(parts, id)),
        versions,
      };
    },
  });
}

/** Lists the published objects, the newest versions, and all drafts. @throws the errors of `candidates` */
export async function publications(parts: PublishingParts, call: RequestCall): Promise<Publications> {
  return authored(parts, call, 'objects', null, ({ manifest, model: { file, published } }) => {
    const { versions, drafts } = parts.publishing;
    const objects = pathsIn(published?.objects ?? {}).map((name): PublishedObject => {
      const over_file = memberAt(file.document, name) !== undefined;
      return { name, state: manifest.deprecated.has(name) ? 'deprecated' : 'published', over_file };
    });
    return {
      version: manifest.version,
      base: file.version,
      objects,
      history: versions.history.slice(-LISTED).reverse(),
      drafts: drafts.all().map((draft) => summaryOf(parts, draft)),
      truncated: versions.history.length > LISTED,
    };
  });
}

export type VersionOrDraft =
  | { readonly kind: 'version'; readonly version: Version }
  | { readonly kind: 'draft'; readonly draft: DraftSummary & Pick<StoredDraft, 'text'> };

/** Returns a version (by number or id) or a draft, in full. @throws QueryError E4040, and those of `candidates` */
export async function publication(
  parts: PublishingParts,
  call: RequestCall,
  id: string,
): Promise<VersionOrDraft> {
  const { versions, drafts } = parts.publishing;
  return authored(parts, call, 'objects', id, async (): Promise<VersionOrDraft> => {
    const draft = drafts.get(id);
    if (draft !== null) return { kind: 'draft', draft: { ...summaryOf(parts, draft), text: draft.text } };
    const version = await versions.find((v) => v.id === id || String(v.number) === id);
    if (version === null) throw queryError('notFound', {});
    return { kind: 'version', version };
  });
}

function summaryOf(
  { publishing }: Pick<PublishingParts, 'publishing'>,
  { text: _, placed: __, ...draft }: StoredDraft,
): DraftSummary {
  const version = publishing.versions.history.findLast((v) => v.draft === draft.id);
  const state = version !== undefined ? 'published' : draft.validated === null ? 'draft' : 'validated';
  return { ...draft, state, published_as: version?.id ?? null };
}
