import './sight.css';
import type { Sight } from '../../api/admin-types.js';

interface SightWords {
  readonly sign: string;
  readonly word: string;
  /** Words that follow “sees it”. */
  readonly how: string;
}

/** Sign and words of each visibility; the signs distinguish them without colour. */
export const SIGHT_WORDS: Readonly<Record<Sight, SightWords>> = {
  clear: { sign: '●', word: 'clear', how: 'in the clear' },
  partly_masked: { sign: '◐', word: 'partly masked', how: 'masked in some rows' },
  masked: { sign: '▨', word: 'masked', how: 'masked' },
  aggregates: { sign: 'Σ', word: 'aggregates', how: 'in aggregates only' },
  nothing: { sign: '·', word: 'nothing', how: 'not at all' },
};

/** Widest first. */
export const SIGHTS = Object.keys(SIGHT_WORDS) as readonly Sight[]; // exactly its own keys

/** Visibility, as a sign and a word. */
export function SightPill({ sight }: { readonly sight: Sight }) {
  const { sign, word } = SIGHT_WORDS[sight];
  return (
    <span className={`sight sight-${sight}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
