import { useCallback, useState } from 'react';

/** A query that was run or saved, stored in the browser for one server and one caller. */
export interface LibraryEntry {
  readonly text: string;
  readonly kind: 'osql' | 'sql';
  /** Time at which the query was run or saved, in milliseconds since the epoch. */
  readonly at: number;
}

export interface SavedQuery extends LibraryEntry {
  readonly name: string;
}

export interface Library {
  /** Newest first. */
  readonly history: readonly LibraryEntry[];
  /** Sorted by name. */
  readonly saved: readonly SavedQuery[];
}

/** Storage for the library: the browser's `Storage`, or a substitute. */
export type LibraryStorage = Pick<Storage, 'getItem' | 'setItem'>;

const MOST_HISTORY = 100;
const MOST_SAVED = 500;
const EMPTY: Library = { history: [], saved: [] };

/** Storage key for a caller; browsers already keep storage separate for each server. */
export function shelfKey(caller: string): string {
  return `osl.questions ${caller}`;
}

export function readLibrary(shelf: LibraryStorage, caller: string): Library {
  try {
    const read: unknown = JSON.parse(shelf.getItem(shelfKey(caller)) ?? 'null');
    if (typeof read !== 'object' || read === null) return EMPTY;
    const { history, saved } = read as { readonly history?: unknown; readonly saved?: unknown };
    return {
      history: keptIn(history),
      saved: keptIn(saved).filter((one) => 'name' in one) as readonly SavedQuery[],
    };
  } catch {
    return EMPTY;
  }
}

function keptIn(list: unknown): readonly LibraryEntry[] {
  if (!Array.isArray(list)) return [];
  return list.filter(
    (one: unknown): one is LibraryEntry =>
      typeof one === 'object' && one !== null && 'text' in one && typeof one.text === 'string',
  );
}

/** Stores the library; returns false if the browser cannot store it or has run out of space. */
export function writeLibrary(shelf: LibraryStorage, caller: string, library: Library): boolean {
  try {
    shelf.setItem(shelfKey(caller), JSON.stringify(library));
    return true;
  } catch {
    return false;
  }
}

export function withAsked(library: Library, asked: LibraryEntry): Library {
  const others = library.history.filter(({ text, kind }) => text !== asked.text || kind !== asked.kind);
  return { ...library, history: [asked, ...others].slice(0, MOST_HISTORY) };
}

/** Adds a saved query, replacing any with the same name. */
export function withSaved(library: Library, saved: SavedQuery): Library {
  const others = library.saved.filter(({ name }) => name !== saved.name);
  const all = [...others, saved].toSorted((a, b) => a.name.localeCompare(b.name));
  return { ...library, saved: all.slice(0, MOST_SAVED) };
}

export function withoutSaved(library: Library, name: string): Library {
  return { ...library, saved: library.saved.filter((one) => one.name !== name) };
}

export interface LibraryState {
  readonly library: Library;
  asked(kept: LibraryEntry): void;
  save(saved: SavedQuery): boolean;
  forget(name: string): void;
  forgetHistory(): void;
}

/** Queries of a caller that are stored in this browser. */
export function useLibrary(caller: string): LibraryState {
  const [library, setLibrary] = useState(() => readLibrary(localStorage, caller));
  const change = useCallback(
    (make: (now: Library) => Library): boolean => {
      // Another tab may have changed the library in the meantime.
      const next = make(readLibrary(localStorage, caller));
      setLibrary(next);
      return writeLibrary(localStorage, caller, next);
    },
    [caller],
  );
  return {
    library,
    asked: useCallback((kept) => void change((now) => withAsked(now, kept)), [change]),
    save: (saved) => change((now) => withSaved(now, saved)),
    forget: (name) => void change((now) => withoutSaved(now, name)),
    forgetHistory: () => void change((now) => ({ ...now, history: [] })),
  };
}
