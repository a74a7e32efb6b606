import { type KeyboardEvent, type RefObject, useEffect, useId, useState } from 'react';
import type { MapSearchResult, SearchHit } from './graph/search.js';
import { Shape } from './picture/Legend.js';
import { KIND_WORDS } from './words.js';

interface SearchBoxProps {
  readonly search: (term: string) => Promise<MapSearchResult>;
  readonly onPick: (found: SearchHit) => void;
  readonly input: RefObject<HTMLInputElement | null>;
}

const NONE: MapSearchResult = { found: [], total: 0 };

/**
 * Combobox that finds objects (such as entities) by name, synonym or description, and columns by name or synonym. It can
 * be used by keyboard alone.
 */
export function SearchBox({ search, onPick, input }: SearchBoxProps) {
  const id = useId();
  const [term, setTerm] = useState('');
  const [result, setResult] = useState(NONE);
  const [at, setAt] = useState(0);
  useEffect(() => {
    let isLatest = true;
    const take = (found: MapSearchResult): void => {
      if (!isLatest) return;
      setResult(found);
      setAt(0);
    };
    if (term.trim() === '') take(NONE);
    else search(term).then(take, () => take(NONE));
    return () => {
      isLatest = false;
    };
  }, [search, term]);
  const pick = (found: SearchHit | undefined): void => {
    if (found === undefined) return;
    setTerm('');
    onPick(found);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const last = result.found.length - 1;
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, last));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter') pick(result.found[at]);
    else if (event.key === 'Escape') setTerm('');
    else return;
    event.preventDefault();
  };
  const isOpen = term.trim() !== '';
  return (
    <div className="map-search">
      <label htmlFor={id} className="hidden">
        Search the map
      </label>
      <input
        id={id}
        ref={input}
        type="search"
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={isOpen && result.found.length > 0 ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        placeholder="Search: entity, column, metric …"
        autoComplete="off"
        spellCheck={false}
        value={term}
        onChange={(event) => setTerm(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isOpen && (
        <div className="map-found">
          <div id={`${id}-list`} role="listbox" aria-label="Found">
            {result.found.map((found, i) => (
              <FoundRow
                key={`${found.id} ${found.column ?? ''}`}
                id={`${id}-${i}`}
                found={found}
                isAt={i === at}
                onPick={() => pick(found)}
              />
            ))}
          </div>
          <p className="map-found-count" role="status">
            {totalWords(result)}
          </p>
        </div>
      )}
    </div>
  );
}

function totalWords({ found, total }: MapSearchResult): string {
  if (total === 0) return 'Nothing of that name is on your map.';
  return total > found.length
    ? `${found.length} of ${total.toLocaleString('en')}: type more to narrow it`
    : `${total} found`;
}

interface FoundRowProps {
  readonly id: string;
  readonly found: SearchHit;
  readonly isAt: boolean;
  readonly onPick: () => void;
}

function FoundRow({ id, found, isAt, onPick }: FoundRowProps) {
  const { kind, name, column, via } = found;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the combobox keeps the focus and handles keys for its options
    <div id={id} role="option" aria-selected={isAt} className="map-found-row" onClick={onPick}>
      <Shape kind={kind} />
      <span className="map-found-name">{column === null ? name : `${name}.${column}`}</span>
      <span className="map-found-kind">
        {column === null ? KIND_WORDS[kind].one : 'column'}
        {via !== null && ` · ${via}`}
      </span>
    </div>
  );
}
