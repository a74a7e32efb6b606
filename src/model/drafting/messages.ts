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

/** Documents of the served model, which the thread compiles and keeps for later tasks. */
export interface BaselineMessage {
  readonly kind: 'ground';
  readonly version: string;
  /** Document of the manifest file. */
  readonly base: ManifestDocument;
  /** Objects published over it. */
  readonly objects: FragmentDocument;
  /** Null while no policy is loaded. */
  readonly policy: PolicyDocument | null;
}

export type DraftTask =
  | { readonly kind: 'judge'; readonly proposal: Proposal }
  | { readonly kind: 'step'; readonly step: PublishStep }
  | { readonly kind: 'relation'; readonly candidate: AdoptionCandidate }
  | { readonly kind: 'term'; readonly term: string };

export interface DraftTaskResults {
  readonly judge: Judgement;
  readonly step: StepResult;
  readonly relation: Suggestion;
  readonly term: Suggestion | null;
}

/** Result of a step, with everything that is written for it; the policy is compiled where it is used. */
export type StepResult =
  | {
      readonly ok: true;
      readonly objects: FragmentDocument;
      readonly over: Overlay['over'];
      readonly manifest: Manifest;
      readonly diff: ManifestDifference;
      /** True if exactly this is already published. */
      readonly published: boolean;
    }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/** A result, or the catalogue error for the author. */
export type DraftReply<T> =
  | { readonly told: T }
  | { readonly error: QueryErrorFields & { readonly entry: string } };

/** A portion of a `BaselineMessage` or a `DraftTask`, or a request for the next portion of the answer. */
export type ToDrafter =
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'more' };

/** Ready signal, a portion of a `DraftReply`, or a failure. */
export type FromDrafter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'failed'; readonly reason: string };
