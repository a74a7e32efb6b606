import { queryError } from 'osl-compiler';
import type { PolicySnapshot } from '../../../policy/index.js';
import type { DraftBaseline, DraftCompiler } from '../../model/drafting/index.js';
import { EMPTY_OVERLAY } from '../../model/manifest/index.js';
import type { PublicationStore } from '../../model/versions/index.js';
import type { UpstreamParts } from '../graph/describe.js';
import {
  type Caller,
  type Decision,
  type RequestCall,
  type RequestParts,
  type RunningParts,
  respond,
  type ServedVersions,
  type SingleUse,
} from '../index.js';

/** What answers authors, beside what every request needs. */
export interface PublishingParts
  extends RequestParts,
    SingleUse,
    UpstreamParts,
    Pick<RunningParts, 'engines' | 'rowRights'> {
  readonly publishing: PublicationStore;
  readonly drafting: DraftCompiler;
}

/** An answer about drafts, with the versions that it rests on. */
export type WithVersions<T> = T & { readonly versions: ServedVersions };

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
  call: RequestCall,
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
export type PolicyBaseline = DraftBaseline & { readonly snapshot: PolicySnapshot };

/** @throws QueryError E2001 */
export function groundOf({ manifest, snapshot, file, published }: Caller['model']): PolicyBaseline {
  if (snapshot === null) throw queryError('noSnapshot', {});
  const { objects } = published ?? EMPTY_OVERLAY;
  return { base: file.document, objects, manifest, snapshot };
}
