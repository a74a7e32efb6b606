import { queryError, SURFACE_PHRASES } from 'osl-compiler';
import type { Judgement, Proposal, Suggestion } from '../../model/authoring/index.js';
import {
  type AdoptionCandidate,
  candidateFor,
  candidatesIn,
  tableKey,
  type UpstreamSchema,
} from '../../model/discovery/index.js';
import { shortName } from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import { type Unread, upstreamOf, upstreamsOf } from '../graph/describe.js';
import { type RequestCall, versionsOf } from '../index.js';
import {
  type AuthoringBaseline,
  authored,
  baselineOf,
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
    const found = [...read].flatMap(([connector, schema]) =>
      candidatesIn(schema, connector, caller.manifest),
    );
    return { candidates: found, unread, truncated };
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

/** Candidates are searched among relations not adopted yet; a table may already be adopted. */
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
  const what = { candidate: 'is no candidate', table: 'is no table', term: 'meets nothing in the graph' }[
    kind
  ];
  const hint = kind === 'term' ? null : `${SURFACE_PHRASES.candidates.rest}, as \`connector.schema.table\``;
  throw queryError('unresolvable', { detail: `\`${name}\` ${what}`, hint });
}
