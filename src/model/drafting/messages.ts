import type { QueryErrorFields } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/index.js';
import type { Difference, Finding, Judgement, Proposal, Step, Suggestion } from '../authoring/index.js';
import type { AdoptionCandidate } from '../discovery/index.js';
import type { FragmentDocument, Manifest, ManifestDocument, Overlay } from '../manifest/index.js';

/** What is served: the thread compiles it for itself, and keeps it for the tasks that follow. */
export interface Ground {
  readonly kind: 'ground';
  /** Of the manifest that serves. */
  readonly version: string;
  /** The manifest file's document. */
  readonly base: ManifestDocument;
  /** What is published over it. */
  readonly objects: FragmentDocument;
  /** Null while there is none. */
  readonly policy: PolicyDocument | null;
}

/** One thing to do with a draft. */
export type Task =
  | { readonly kind: 'judge'; readonly proposal: Proposal }
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'relation'; readonly candidate: AdoptionCandidate }
  | { readonly kind: 'term'; readonly term: string };

/** What each task comes to. */
export interface Results {
  readonly judge: Judgement;
  readonly step: Stepped;
  readonly relation: Suggestion;
  readonly term: Suggestion | null;
}

/** A step worked out, with all that is written of it; the policy is compiled where it is used. */
export type Stepped =
  | {
      readonly ok: true;
      readonly objects: FragmentDocument;
      readonly over: Overlay['over'];
      readonly manifest: Manifest;
      readonly diff: Difference;
      /** Just this is published already. */
      readonly published: boolean;
    }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** An answer, or the error of the catalogue that the author is told. */
export type Told<T> =
  | { readonly told: T }
  | { readonly error: QueryErrorFields & { readonly entry: string } };

/** A portion of a `Ground` or a `Task`, or the wish for the next portion of the answer. */
export type ToDrafter =
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'more' };

/** A portion of a `Told`. */
export type FromDrafter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'failed'; readonly reason: string };
