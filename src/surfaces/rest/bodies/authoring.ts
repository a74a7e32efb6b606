import type { FastifyRequest } from 'fastify';
import type { SuggestionTarget } from '../../../ask/authoring/drafts.js';
import type { ChangeRequest } from '../../../ask/authoring/publish.js';
import type { Proposal } from '../../../model/authoring/index.js';
import { LONGEST_TERM, malformed, termIn } from '../problem.js';
import { exactly, type JsonShape, list, oneOf, orNull, text } from '../shape.js';
import { jsonFields } from './json.js';
import { readerOfOne } from './reader.js';

const DOTTED = text('`connector.schema.table`', { minLength: 1, maxLength: LONGEST_TERM });

const SUGGESTIONS = {
  candidate: exactly({ candidate: DOTTED }),
  table: exactly({ table: DOTTED }),
  term: exactly({
    term: text('Business term for which to draft a lexicon entry.', {
      minLength: 1,
      maxLength: LONGEST_TERM,
    }),
  }),
};
export const SUGGEST_REQUEST = {
  oneOf: Object.values(SUGGESTIONS),
  description: 'Exactly one of `candidate`, `table` and `term`.',
};
const readSuggestion = readerOfOne(SUGGESTIONS);

export function readSuggestRequest(request: FastifyRequest): SuggestionTarget {
  const { kind, read } = readSuggestion(jsonFields(request));
  const members: Readonly<Partial<Record<SuggestionTarget['kind'], string>>> = read;
  return { kind, name: termIn(kind, members[kind] ?? '') };
}

type YamlOrJson = string | Readonly<Record<string, unknown>>;
const WRITTEN: JsonShape<YamlOrJson> = {
  type: ['string', 'object'],
  description: 'YAML as a string, or a JSON object.',
};

const PROPOSALS = {
  fragment: exactly({ fragment: WRITTEN }),
  manifest: exactly({ manifest: WRITTEN }),
  draft: exactly({ draft: text('ID of a stored draft.', { minLength: 1, maxLength: LONGEST_TERM }) }),
};
export const VALIDATE_REQUEST = {
  oneOf: Object.values(PROPOSALS),
  description:
    'Exactly one of `fragment` (members added to the served manifest, replacing those of the same name), `manifest` (a complete manifest) and `draft`.',
};
const readOneProposal = readerOfOne(PROPOSALS);

export function readProposal(
  request: FastifyRequest,
): Proposal | { readonly kind: 'draft'; readonly id: string } {
  const proposal = readOneProposal(jsonFields(request));
  switch (proposal.kind) {
    case 'draft':
      return { kind: 'draft', id: proposal.read.draft };
    case 'fragment':
      return { kind: 'fragment', ...documentOf(proposal.read.fragment) };
    case 'manifest':
      return { kind: 'manifest', ...documentOf(proposal.read.manifest) };
    default: {
      const unknown: never = proposal;
      return unknown;
    }
  }
}

function documentOf(written: YamlOrJson): { readonly text: string; readonly placed: boolean } {
  // JSON nested in JSON has no line numbers that the sender could look up.
  return typeof written === 'string'
    ? { text: written, placed: true }
    : { text: JSON.stringify(written), placed: false };
}

export type ObjectsRequest =
  | ChangeRequest
  | { readonly keep: { readonly text: string; readonly placed: boolean } }
  | { readonly discard: string };

/** Allowed length of a version, draft id or object name, in code points. */
const NAMED = { minLength: 1, maxLength: 300 } as const;
const BASE = {
  'base_version?': text(
    'Manifest version on which the change is based: `versions.manifest` in the answer of `/osl/validate`. Can be sent as `If-Match` instead.',
    NAMED,
  ),
} as const;
const FRAGMENT: JsonShape<YamlOrJson> = {
  type: ['string', 'object'],
  description: 'Members of a manifest: YAML as a string, or a JSON object.',
};
const REASONS: JsonShape<Readonly<Record<string, string | null>>> = {
  type: 'object',
  minProperties: 1,
  propertyNames: NAMED,
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
  ...NAMED,
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
  draft: exactly({ draft: text('ID of a validated draft to publish.', NAMED), ...BASE }),
  deprecate: exactly({ deprecate: REASONS, ...BASE }),
  withdraw: exactly({
    withdraw: list(text('Path in a manifest: `section.name`, such as `entities.order`.', NAMED), undefined, {
      minItems: 1,
    }),
    ...BASE,
  }),
  rollback: exactly({ rollback: VERSION, ...BASE }),
  discard: exactly({ discard: text('ID of a draft to delete.', NAMED), ...BASE }),
};

export const OBJECTS_REQUEST = {
  oneOf: Object.values(CHANGES),
  description:
    'One change. It must state the manifest version on which it is based, unless it stores or deletes a draft.',
  examples: [{ fragment: { lexicon: {} }, state: 'draft' }, { fragment: 'metrics: {}\n' }, { rollback: 0 }],
};

const readOne = readerOfOne(CHANGES);

/** Reads a change and its base version, from `base_version` or `If-Match`. @throws QueryError E4150, E0511 */
export function readObjectsRequest(request: FastifyRequest): ObjectsRequest {
  const fields = jsonFields(request);
  const { kind, read } = readOne(fields);
  const base = baseOf(read.base_version ?? null, request.headers['if-match']);
  const text = JSON.stringify(Object.entries(fields));
  switch (kind) {
    case 'fragment': {
      const fragment = documentOf(read.fragment);
      if (read.state === 'draft') return { keep: fragment };
      return { change: { action: 'publish', ...fragment }, base, text };
    }
    case 'draft':
      return { change: { action: 'publish', draft: read.draft }, base, text };
    case 'deprecate':
      return {
        change: { action: 'deprecate', reasons: new Map(Object.entries(read.deprecate)) },
        base,
        text,
      };
    case 'withdraw':
      return { change: { action: 'withdraw', paths: read.withdraw }, base, text };
    case 'rollback':
      return { change: { action: 'rollback', to: read.rollback }, base, text };
    case 'discard':
      return { discard: read.discard };
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

/** Returns the base version; if both are given, they must be equal. @throws QueryError E0511 */
function baseOf(given: string | null, ifMatch: string | undefined): string | null {
  if (ifMatch === undefined) return given;
  // Weak tags, `*` and lists do not identify one version.
  const tag = /^\s*"([^",]{1,300})"\s*$/.exec(ifMatch)?.[1];
  if (tag === undefined) throw malformed('If-Match names one version, in quotes');
  if (given !== null && given !== tag) throw malformed('`base_version` and If-Match name different versions');
  return tag;
}
