import type { StoredPassage } from '../content-plane.js';

/** A passage that was searched for. */
export interface FoundPassage extends StoredPassage {
  readonly why: Why;
}

/** What the score of a passage is made of. */
type Why =
  | ByWords
  | { readonly by: 'dense' }
  | { readonly by: 'hybrid'; readonly fuse: 'rank' | 'score'; readonly legs: readonly LegShare[] }
  /** `found`: the passage as the search had it, and its place there, from 1. */
  | {
      readonly by: 'reranker';
      readonly reranker: string;
      readonly found: { readonly passage: FoundPassage; readonly rank: number };
    };

export interface ByWords {
  readonly by: 'lexical';
  /** The words of the query that any passage has which the caller may see. */
  readonly words: readonly WeighedTerm[];
  /** What words weigh in this passage, as its store has it; null where nobody asked. */
  readonly weights: string | null;
}

interface WeighedTerm {
  readonly term: number;
  /** How rare it is among the passages that the caller may see. */
  readonly rarity: number;
}

/** What one leg gave a passage. */
export interface LegShare {
  readonly leg: 'lexical' | 'dense';
  /** How much the leg counts. */
  readonly weight: number;
  /** The passage as the leg found it, or another one of a document that counts once; null where it found none. */
  readonly found: { readonly passage: FoundPassage; readonly rank: number } | null;
  readonly share: number;
}
