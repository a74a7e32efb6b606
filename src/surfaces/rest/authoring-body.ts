import type { FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import type { Proposal } from '../../publishing/authoring/index.js';
import type { Wish } from '../../publishing/propose.js';
import { jsonFields, malformed, noField, onlyOf } from './json-body.js';

const WISHES = ['candidate', 'table', 'term'] as const;
/** Code points: three names of 63 characters and their dots, or a business word. */
const LONGEST = 200;

/** Reads `{candidate}`, `{table}` or `{term}`. @throws QueryError E4150, E0511 */
export function readWish(request: FastifyRequest): Wish {
  const [kind, value] = onlyField(request, WISHES);
  if (typeof value !== 'string' || value.trim() === '')
    throw malformed(`\`${kind}\` must be a string, and not empty`);
  const name = value.trim();
  if ([...name].length > LONGEST)
    throw queryError('tooLarge', { what: `the length of \`${kind}\``, limit: LONGEST });
  if (/[\p{Cc}\p{Cs}]/u.test(name)) throw malformed(`\`${kind}\` holds a control character`);
  return { kind, name };
}

/** Reads `{fragment}` or `{manifest}`, YAML text or a JSON object, or `{draft}`. @throws QueryError E4150, E0511 */
export function readProposal(
  request: FastifyRequest,
): Proposal | { readonly kind: 'draft'; readonly id: string } {
  const [kind, value] = onlyField(request, ['fragment', 'manifest', 'draft'] as const);
  if (kind === 'draft') {
    if (typeof value !== 'string' || value === '' || value.length > LONGEST)
      throw malformed('`draft` is the id of one');
    return { kind, id: value };
  }
  return { kind, ...documentIn(kind, value) };
}

/** What a field holds as YAML text or as a JSON object. @throws QueryError E0511 */
export function documentIn(
  field: string,
  value: unknown,
): { readonly text: string; readonly placed: boolean } {
  if (typeof value === 'string') return { text: value, placed: true };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(`\`${field}\` must be YAML text or a JSON object`);
  // Of JSON within JSON the sender has no lines to look at.
  return { text: JSON.stringify(value), placed: false };
}

/** The one member of a body that has one of these names. */
function onlyField<N extends string>(request: FastifyRequest, names: readonly N[]): readonly [N, unknown] {
  const fields = jsonFields(request);
  for (const field of fields.keys()) if (!names.some((n) => n === field)) throw noField(field);
  const only = onlyOf(fields, names);
  return [only, fields.get(only)];
}
