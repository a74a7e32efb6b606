import type { FastifyRequest } from 'fastify';
import type { ChangeRequest } from '../../publishing/publish.js';
import { documentIn } from './authoring-body.js';
import { type Fields, jsonFields, malformed, noField, onlyOf } from './json-body.js';

/** What `POST /osl/objects` asks for. */
export type ObjectsRequest =
  | ChangeRequest
  | { readonly keep: { readonly text: string; readonly placed: boolean } }
  | { readonly discard: string };

const CHANGES = ['fragment', 'draft', 'deprecate', 'withdraw', 'rollback', 'discard'] as const;
/** UTF-16 units of a version, a draft's id, an object's name. */
const LONGEST = 300;

/**
 * Reads one of `{fragment, state?}`, `{draft}`, `{deprecate}`, `{withdraw}`, `{rollback}`, `{discard}`, with the version
 * that it was made for as `base_version` or `If-Match`.
 *
 * @throws QueryError E4150, E0511
 */
export function readObjectsRequest(request: FastifyRequest): ObjectsRequest {
  const fields = jsonFields(request);
  for (const field of fields.keys()) if (!FIELDS.has(field)) throw noField(field);
  const kind = onlyOf(fields, CHANGES);
  const state = fields.get('state') ?? 'published';
  if (state !== 'draft' && state !== 'published') throw malformed('`state` is draft or published');
  if (fields.has('state') && kind !== 'fragment') throw malformed('`state` goes with `fragment` only');
  const base = baseOf(fields, request.headers['if-match']);
  const text = JSON.stringify([...fields]);
  const value = fields.get(kind);
  switch (kind) {
    case 'fragment': {
      const fragment = documentIn(kind, value);
      return state === 'draft'
        ? { keep: fragment }
        : { change: { action: 'publish', ...fragment }, base, text };
    }
    case 'draft':
      return { change: { action: 'publish', draft: textOf(kind, value) }, base, text };
    case 'deprecate':
      return { change: { action: 'deprecate', reasons: reasonsOf(value) }, base, text };
    case 'withdraw':
      return { change: { action: 'withdraw', paths: pathsOf(value) }, base, text };
    case 'rollback':
      return { change: { action: 'rollback', to: versionOf(value) }, base, text };
    case 'discard':
      return { discard: textOf(kind, value) };
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

const FIELDS: ReadonlySet<string> = new Set([...CHANGES, 'base_version', 'state']);

/** Both say the same where both are given. @throws QueryError E0511 */
function baseOf(fields: Fields, ifMatch: string | undefined): string | null {
  const given = fields.has('base_version') ? textOf('base_version', fields.get('base_version')) : null;
  if (ifMatch === undefined) return given;
  // A weak tag, `*` and a list of tags name no one version.
  const tag = /^\s*"([^",]{1,300})"\s*$/.exec(ifMatch)?.[1];
  if (tag === undefined) throw malformed('If-Match names one version, in quotes');
  if (given !== null && given !== tag) throw malformed('`base_version` and If-Match name different versions');
  return tag;
}

function reasonsOf(value: unknown): ReadonlyMap<string, string | null> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0)
    throw malformed('`deprecate` maps names of objects to reasons, or to null');
  return new Map(
    Object.entries(value).map(([path, reason]) => [
      textOf('deprecate', path),
      reason === null ? null : reasonOf(reason),
    ]),
  );
}

function reasonOf(value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '' || value.length > 4_000)
    throw malformed('a reason is a text of 1 to 4,000 characters');
  return value;
}

function pathsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0)
    throw malformed('`withdraw` is a list of names of objects');
  return value.map((path) => textOf('withdraw', path));
}

function versionOf(value: unknown): number | string {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  return textOf('rollback', value);
}

function textOf(field: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST)
    throw malformed(`\`${field}\` takes texts of 1 to ${LONGEST} characters`);
  return value;
}
