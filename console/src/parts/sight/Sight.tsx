import type { Sight } from '../../api/admin-types.js';
import './sight.css';
import { SIGHT_WORDS } from './sights.js';

/** How somebody sees something, as a sign with its word. */
export function SightPill({ sight }: { readonly sight: Sight }) {
  const { sign, word } = SIGHT_WORDS[sight];
  return (
    <span className={`sight sight-${sight}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
