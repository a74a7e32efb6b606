import type { FastifyRequest } from 'fastify';
import type { Wish } from '../../../ask/authoring/propose.js';
import type { Proposal } from '../../../model/authoring/index.js';
import { LONGEST_TERM, termIn } from '../fault.js';
import { exactly, type JsonShape, text } from '../shape.js';
import { jsonFields } from './json.js';
import { readerOfOne } from './reader.js';

const DOTTED = text('`connector.schema.table`', { minLength: 1, maxLength: LONGEST_TERM });

const WISHES = {
  candidate: exactly({ candidate: DOTTED }),
  table: exactly({ table: DOTTED }),
  term: exactly({ term: text('A business word.', { minLength: 1, maxLength: LONGEST_TERM }) }),
};
export const SUGGEST_REQUEST = { oneOf: Object.values(WISHES), description: 'One of three.' };
const readOneWish = readerOfOne(WISHES);

/** @throws QueryError E4150, E0511 */
export function readWish(request: FastifyRequest): Wish {
  const { kind, read } = readOneWish(jsonFields(request));
  const given: Readonly<Partial<Record<Wish['kind'], string>>> = read;
  return { kind, name: termIn(kind, given[kind] ?? '') };
}

/** YAML text, or the same as JSON. */
export type YamlOrJson = string | Readonly<Record<string, unknown>>;
const WRITTEN: JsonShape<YamlOrJson> = { type: ['string', 'object'], description: 'YAML text, or JSON.' };

const PROPOSALS = {
  fragment: exactly({ fragment: WRITTEN }),
  manifest: exactly({ manifest: WRITTEN }),
  draft: exactly({ draft: text('Its id.', { minLength: 1, maxLength: LONGEST_TERM }) }),
};
export const VALIDATE_REQUEST = {
  oneOf: Object.values(PROPOSALS),
  description: 'Members of a manifest, which replace those of their names; or all of one; or a draft.',
};
const readOneProposal = readerOfOne(PROPOSALS);

/** @throws QueryError E4150, E0511 */
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

export function documentOf(written: YamlOrJson): { readonly text: string; readonly placed: boolean } {
  // JSON inside JSON has no lines that the sender could look up.
  return typeof written === 'string'
    ? { text: written, placed: true }
    : { text: JSON.stringify(written), placed: false };
}
