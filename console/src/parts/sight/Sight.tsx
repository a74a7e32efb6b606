import './sight.css';
import type { Sight } from '../../api/admin-types.js';

interface SightWords {
  readonly sign: string;
  readonly word: string;
  /** After “sees it”. */
  readonly how: string;
}

/** Each way to see something, told apart by its sign as by its colour. */
export const SIGHT_WORDS: Readonly<Record<Sight, SightWords>> = {
  clear: { sign: '●', word: 'clear', how: 'in the clear' },
  partly_masked: { sign: '◐', word: 'partly masked', how: 'masked in some rows' },
  masked: { sign: '▨', word: 'masked', how: 'masked' },
  aggregates: { sign: 'Σ', word: 'aggregates', how: 'in aggregates only' },
  nothing: { sign: '·', word: 'nothing', how: 'not at all' },
};

/** From the widest to none. */
export const SIGHTS = Object.keys(SIGHT_WORDS) as readonly Sight[]; // its own keys, all of them

/** How somebody sees something, as a sign with its word. */
export function SightPill({ sight }: { readonly sight: Sight }) {
  const { sign, word } = SIGHT_WORDS[sight];
  return (
    <span className={`sight sight-${sight}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
