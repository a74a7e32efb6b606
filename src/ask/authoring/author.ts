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

/** Dependencies of authoring requests, beyond those of every request. */
export interface PublishingParts
  extends RequestParts,
    SingleUse,
    UpstreamParts,
    Pick<RunningParts, 'engines' | 'rowRights'> {
  readonly publishing: PublicationStore;
  readonly drafting: DraftCompiler;
}

/** An answer with the versions that it is based on. */
export type WithVersions<T> = T & { readonly versions: ServedVersions };

/** Settings shared by all authoring requests: their own rate-limit bucket, and an admin role over the whole chain. */
export const AUTHORING = {
  bucket: 'authoring',
  permits: ({ access }: Caller): void => {
    if (access.adminRoles.size === 0) throw queryError('authorsOnly', {});
  },
} as const satisfies Partial<Decision<unknown>>;

/**
 * Handles an authoring request that changes nothing.
 *
 * @param text logged by its fingerprint; null: none
 * @throws QueryError E2101 without an admin role, and as `respond`
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

/** The served model together with the documents that it was compiled from. */
export type PolicyBaseline = DraftBaseline & { readonly snapshot: PolicySnapshot };

/** @throws QueryError E2001 */
export function groundOf({ manifest, snapshot, file, published }: Caller['model']): PolicyBaseline {
  if (snapshot === null) throw queryError('noSnapshot', {});
  const { objects } = published ?? EMPTY_OVERLAY;
  return { base: file.document, objects, manifest, snapshot };
}
