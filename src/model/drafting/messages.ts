import type { QueryErrorFields } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/index.js';
import type {
  DraftFinding,
  Judgement,
  ManifestDifference,
  Proposal,
  PublishStep,
  Suggestion,
} from '../authoring/index.js';
import type { AdoptionCandidate } from '../discovery/index.js';
import type { FragmentDocument, Manifest, ManifestDocument, Overlay } from '../manifest/index.js';

/** Source documents of the served model: the thread compiles them itself, and keeps the result for later tasks. */
export interface BaselineMessage {
  readonly kind: 'ground';
  /** Version of the manifest that is served. */
  readonly version: string;
  /** The manifest file's document. */
  readonly base: ManifestDocument;
  /** Objects published over it. */
  readonly objects: FragmentDocument;
  /** Null while there is none. */
  readonly policy: PolicyDocument | null;
}

/** One operation on a draft. */
export type DraftTask =
  | { readonly kind: 'judge'; readonly proposal: Proposal }
  | { readonly kind: 'step'; readonly step: PublishStep }
  | { readonly kind: 'relation'; readonly candidate: AdoptionCandidate }
  | { readonly kind: 'term'; readonly term: string };

/** Result types, by kind of task. */
export interface DraftTaskResults {
  readonly judge: Judgement;
  readonly step: StepResult;
  readonly relation: Suggestion;
  readonly term: Suggestion | null;
}

/** Result of a step, with all that is written for it; the policy is compiled where it is used. */
export type StepResult =
  | {
      readonly ok: true;
      readonly objects: FragmentDocument;
      readonly over: Overlay['over'];
      readonly manifest: Manifest;
      readonly diff: ManifestDifference;
      /** Just this is published already. */
      readonly published: boolean;
    }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/** A result, or the catalogue error for the author. */
export type DraftReply<T> =
  | { readonly told: T }
  | { readonly error: QueryErrorFields & { readonly entry: string } };

/** A portion of a `BaselineMessage` or a `DraftTask`, or the request for the next portion of the answer. */
export type ToDrafter =
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'more' };

/** Ready signal, a portion of a `DraftReply`, or a failure. */
export type FromDrafter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'failed'; readonly reason: string };
