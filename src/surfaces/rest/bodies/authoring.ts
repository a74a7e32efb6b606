import type { FastifyRequest } from 'fastify';
import type { SuggestionTarget } from '../../../ask/authoring/drafts.js';
import type { ChangeRequest } from '../../../ask/authoring/publish.js';
import type { Proposal } from '../../../model/authoring/index.js';
import { MAX_TERM_LENGTH, malformed, readTerm } from '../problem.js';
import { exactly, type JsonShape, list, oneOf, orNull, text } from '../shape.js';
import { jsonFields } from './json.js';
import { oneOfReader } from './reader.js';

const TABLE_PATH = text('`connector.schema.table`', { minLength: 1, maxLength: MAX_TERM_LENGTH });

const SUGGESTIONS = {
  candidate: exactly({ candidate: TABLE_PATH }),
  table: exactly({ table: TABLE_PATH }),
  term: exactly({
    term: text('Business term for which to draft a lexicon entry.', {
      minLength: 1,
      maxLength: MAX_TERM_LENGTH,
    }),
  }),
};
export const SUGGEST_REQUEST = {
  oneOf: Object.values(SUGGESTIONS),
  description: 'Exactly one of `candidate`, `table` and `term`.',
};
const readSuggestion = oneOfReader(SUGGESTIONS);

export function readSuggestRequest(request: FastifyRequest): SuggestionTarget {
  const { kind, members } = readSuggestion(jsonFields(request));
  const names: Readonly<Partial<Record<SuggestionTarget['kind'], string>>> = members;
  return { kind, name: readTerm(kind, names[kind] ?? '') };
}

type YamlOrJson = string | Readonly<Record<string, unknown>>;
const DOCUMENT: JsonShape<YamlOrJson> = {
  type: ['string', 'object'],
  description: 'YAML as a string, or a JSON object.',
};

const PROPOSALS = {
  fragment: exactly({ fragment: DOCUMENT }),
  manifest: exactly({ manifest: DOCUMENT }),
  draft: exactly({ draft: text('ID of a stored draft.', { minLength: 1, maxLength: MAX_TERM_LENGTH }) }),
};
export const VALIDATE_REQUEST = {
  oneOf: Object.values(PROPOSALS),
  description:
    'Exactly one of `fragment` (members added to the served manifest, replacing those of the same name), `manifest` (a complete manifest) and `draft`.',
};
const readOneProposal = oneOfReader(PROPOSALS);

export function readProposal(
  request: FastifyRequest,
): Proposal | { readonly kind: 'draft'; readonly id: string } {
  const proposal = readOneProposal(jsonFields(request));
  switch (proposal.kind) {
    case 'draft':
      return { kind: 'draft', id: proposal.members.draft };
    case 'fragment':
      return { kind: 'fragment', ...documentOf(proposal.members.fragment) };
    case 'manifest':
      return { kind: 'manifest', ...documentOf(proposal.members.manifest) };
    default: {
      const unknown: never = proposal;
      return unknown;
    }
  }
}

function documentOf(document: YamlOrJson): { readonly text: string; readonly placed: boolean } {
  // JSON nested in JSON has no line numbers that the sender could look up.
  return typeof document === 'string'
    ? { text: document, placed: true }
    : { text: JSON.stringify(document), placed: false };
}

export type ObjectsRequest =
  | ChangeRequest
  | { readonly keep: { readonly text: string; readonly placed: boolean } }
  | { readonly discard: string };

/** Allowed length of a version, draft id or object name, in code points. */
const NAME_LENGTH = { minLength: 1, maxLength: 300 } as const;
const BASE = {
  'base_version?': text(
    'Manifest version on which the change is based: `versions.manifest` in the answer of `/osl/validate`. Can be sent as `If-Match` instead.',
    NAME_LENGTH,
  ),
} as const;
const FRAGMENT: JsonShape<YamlOrJson> = {
  type: ['string', 'object'],
  description: 'Members of a manifest: YAML as a string, or a JSON object.',
};
const REASONS: JsonShape<Readonly<Record<string, string | null>>> = {
  type: 'object',
  minProperties: 1,
  propertyNames: NAME_LENGTH,
  additionalProperties: orNull(
    text('Reason for deprecation; null removes the deprecation.', {
      title: 'reason',
      minLength: 1,
      maxLength: 4_000,
      pattern: '\\S',
    }),
  ),
  description: 'Reasons for deprecation, by object (`section.name`); null removes the deprecation.',
};
const VERSION: JsonShape<number | string> = {
  type: ['integer', 'string'],
  ...NAME_LENGTH,
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Number or ID of the version to restore; 0 for the manifest file alone.',
};

const CHANGES = {
  fragment: exactly({
    fragment: FRAGMENT,
    'state?': {
      ...orNull(oneOf('draft', 'published')),
      description: '`draft`: store the fragment without publishing it. Default: `published`.',
    },
    ...BASE,
  }),
  draft: exactly({ draft: text('ID of a validated draft to publish.', NAME_LENGTH), ...BASE }),
  deprecate: exactly({ deprecate: REASONS, ...BASE }),
  withdraw: exactly({
    withdraw: list(
      text('Path in a manifest: `section.name`, such as `entities.order`.', NAME_LENGTH),
      undefined,
      {
        minItems: 1,
      },
    ),
    ...BASE,
  }),
  rollback: exactly({ rollback: VERSION, ...BASE }),
  discard: exactly({ discard: text('ID of a draft to delete.', NAME_LENGTH), ...BASE }),
};

export const OBJECTS_REQUEST = {
  oneOf: Object.values(CHANGES),
  description:
    'One change. It must state the manifest version on which it is based, unless it stores or deletes a draft.',
  examples: [{ fragment: { lexicon: {} }, state: 'draft' }, { fragment: 'metrics: {}\n' }, { rollback: 0 }],
};

const readOneChange = oneOfReader(CHANGES);

/** Reads a change and its base version, from `base_version` or `If-Match`. @throws QueryError E4150, E0511 */
export function readObjectsRequest(request: FastifyRequest): ObjectsRequest {
  const fields = jsonFields(request);
  const { kind, members } = readOneChange(fields);
  const base = baseVersion(members.base_version ?? null, request.headers['if-match']);
  const text = JSON.stringify(Object.entries(fields));
  switch (kind) {
    case 'fragment': {
      const fragment = documentOf(members.fragment);
      if (members.state === 'draft') return { keep: fragment };
      return { change: { action: 'publish', ...fragment }, base, text };
    }
    case 'draft':
      return { change: { action: 'publish', draft: members.draft }, base, text };
    case 'deprecate':
      return {
        change: { action: 'deprecate', reasons: new Map(Object.entries(members.deprecate)) },
        base,
        text,
      };
    case 'withdraw':
      return { change: { action: 'withdraw', paths: members.withdraw }, base, text };
    case 'rollback':
      return { change: { action: 'rollback', to: members.rollback }, base, text };
    case 'discard':
      return { discard: members.discard };
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

/** Returns the base version; if both are given, they must be equal. @throws QueryError E0511 */
function baseVersion(baseMember: string | null, ifMatch: string | undefined): string | null {
  if (ifMatch === undefined) return baseMember;
  // Weak tags, `*` and lists do not identify one version.
  const tag = /^\s*"([^",]{1,300})"\s*$/.exec(ifMatch)?.[1];
  if (tag === undefined) throw malformed('If-Match names one version, in quotes');
  if (baseMember !== null && baseMember !== tag)
    throw malformed('`base_version` and If-Match name different versions');
  return tag;
}
