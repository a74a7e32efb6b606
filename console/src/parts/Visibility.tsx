import type { Sight } from '../api/admin-types.js';
import './sight/sight.css';

interface VisibilityWords {
  readonly sign: string;
  readonly word: string;
  /** Wording that follows “sees it”. */
  readonly how: string;
}

/** Sign and wording for each visibility; the signs distinguish them without colour. */
export const VISIBILITY_WORDS: Readonly<Record<Sight, VisibilityWords>> = {
  clear: { sign: '●', word: 'clear', how: 'in the clear' },
  partly_masked: { sign: '◐', word: 'partly masked', how: 'masked in some rows' },
  masked: { sign: '▨', word: 'masked', how: 'masked' },
  aggregates: { sign: 'Σ', word: 'aggregates', how: 'in aggregates only' },
  nothing: { sign: '·', word: 'nothing', how: 'not at all' },
};

export const VISIBILITIES = Object.keys(VISIBILITY_WORDS) as readonly Sight[]; // the object has no other keys

export function VisibilityPill({ sight }: { readonly sight: Sight }) {
  const { sign, word } = VISIBILITY_WORDS[sight];
  return (
    <span className={`sight sight-${sight}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
