import { queryError } from 'osl-compiler';
import type { PolicySnapshot } from '../../../policy/index.js';
import type { Drafting, Served } from '../../model/drafting/index.js';
import { EMPTY_OVERLAY } from '../../model/manifest/index.js';
import type { Publishing } from '../../model/versions/index.js';
import type { UpstreamParts } from '../graph/upstream.js';
import {
  type Call,
  type Caller,
  type Decision,
  type RequestParts,
  type RunningParts,
  respond,
  type SingleUse,
  type Versions,
} from '../index.js';

/** What answers authors, beside what every request needs. */
export interface PublishingParts
  extends RequestParts,
    SingleUse,
    UpstreamParts,
    Pick<RunningParts, 'engines' | 'rowRights'> {
  readonly publishing: Publishing;
  readonly drafting: Drafting;
}

/** An answer about drafts, with the versions that it rests on. */
export type Judged<T> = T & { readonly versions: Versions };

/** Of a request of authors: counted in their own bucket, and refused to whoever is no admin over its whole chain. */
export const AUTHORING = {
  bucket: 'authoring',
  permits: ({ access }: Caller): void => {
    if (access.adminRoles.size === 0) throw queryError('authorsOnly', {});
  },
} as const satisfies Partial<Decision<unknown>>;

/**
 * Answers an author; `text` is what is asked, for its fingerprint in the log.
 *
 * @throws QueryError E2101 for who is no admin, and as `respond`
 */
export function authored<T>(
  parts: RequestParts,
  call: Call,
  action: string,
  text: string | null,
  answer: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  return respond<Caller, T>(parts, call, {
    action,
    ...(text !== null && { asked: { kind: 'draft', text } }),
    ...AUTHORING,
    decide: (caller) => caller,
    answer,
  });
}

/** What serves, with what it is made of. */
export type Standing = Served & { readonly snapshot: PolicySnapshot };

/** @throws QueryError E2001 */
export function groundOf({ manifest, snapshot, file, published }: Caller['model']): Standing {
  if (snapshot === null) throw queryError('noSnapshot', {});
  const { objects } = published ?? EMPTY_OVERLAY;
  return { base: file.document, objects, manifest, snapshot };
}
