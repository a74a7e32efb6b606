import './parts.css';
import type { Sight } from '../api/admin-types.js';

interface VisibilityWords {
  readonly sign: string;
  readonly word: string;
  /** CSS class that sets the colours. */
  readonly tone: 'good' | 'masked' | 'warn' | 'neutral';
  /** Wording for use after “sees it”. */
  readonly how: string;
}

/** Sign and wording for each visibility. The signs distinguish the visibilities without colour. */
export const VISIBILITY_WORDS: Readonly<Record<Sight, VisibilityWords>> = {
  clear: { sign: '●', word: 'clear', tone: 'good', how: 'in the clear' },
  partly_masked: { sign: '◐', word: 'partly masked', tone: 'masked', how: 'masked in some rows' },
  masked: { sign: '▨', word: 'masked', tone: 'masked', how: 'masked' },
  aggregates: { sign: 'Σ', word: 'aggregates', tone: 'warn', how: 'in aggregates only' },
  nothing: { sign: '·', word: 'nothing', tone: 'neutral', how: 'not at all' },
};

export const VISIBILITIES = Object.keys(VISIBILITY_WORDS) as readonly Sight[]; // the object has no other keys

export function VisibilityPill({ sight }: { readonly sight: Sight }) {
  const { sign, word, tone } = VISIBILITY_WORDS[sight];
  return (
    <span className={`pill sight ${tone}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
