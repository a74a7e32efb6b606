import { useCallback, useEffect, useState } from 'react';
import type { Query } from '../../../../clients/typescript/types.js';
import { usePlace } from '../../shell/routes.js';

/** Language of a query: OSL-SQL, or SQL over tables. */
export type QuestionLanguage = 'osql' | 'sql';

export interface QuestionDraft {
  readonly text: string;
  readonly kind: QuestionLanguage;
}

/** Builds the request body of a query. */
export function bodyOf({ text, kind }: QuestionDraft): Query {
  return kind === 'sql' ? { sql: text } : { osql: text };
}

const KEY = 'osl.draft';

function stored(): QuestionDraft {
  try {
    const read: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    if (typeof read !== 'object' || read === null || !('text' in read)) return { text: '', kind: 'osql' };
    const kind = 'kind' in read && read.kind === 'sql' ? 'sql' : 'osql';
    return { text: String(read.text), kind };
  } catch {
    return { text: '', kind: 'osql' };
  }
}

/**
 * The query being edited. It is stored in the tab, so it survives a reload and a sign-in. A link (`#/ask?q=…`)
 * replaces it but does not run it.
 */
export function useDraft(taken: (text: string) => void) {
  const [draft, setDraft] = useState<QuestionDraft>(() => linked(location.hash) ?? stored());
  const { parameters } = usePlace();
  const query = parameters.get('q');
  const change = useCallback((next: Partial<QuestionDraft>) => setDraft((now) => ({ ...now, ...next })), []);
  useEffect(() => sessionStorage.setItem(KEY, JSON.stringify(draft)), [draft]);
  useEffect(() => {
    if (query === null) return;
    const next = linked(location.hash);
    if (next === null) return;
    setDraft(next);
    taken(next.text);
    // Removes the link, so that a reload restores the text typed since then.
    history.replaceState(null, '', '#/ask');
  }, [query, taken]);
  return { draft, change };
}

/** Reads the query from a link; returns null if the link contains no query. */
export function linked(hash: string): QuestionDraft | null {
  const parameters = new URLSearchParams(hash.split('?', 2)[1] ?? '');
  const text = parameters.get('q');
  return text === null ? null : { text, kind: parameters.get('kind') === 'sql' ? 'sql' : 'osql' };
}

/** Builds a link to a query. The query follows `#`, so the browser does not send it to any server. */
export function linkTo({ text, kind }: QuestionDraft, origin: string): string {
  const parameters = new URLSearchParams({ q: text, ...(kind === 'sql' && { kind }) });
  return `${origin}/console/#/ask?${parameters}`;
}

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

interface Library {
  /** Newest first. */
  readonly history: readonly LibraryEntry[];
  /** Sorted by name. */
  readonly saved: readonly SavedQuery[];
}

/** Storage for the library: the browser's `Storage`, or a substitute. */
type LibraryStorage = Pick<Storage, 'getItem' | 'setItem'>;

const MOST_HISTORY = 100;
const MOST_SAVED = 500;
const EMPTY: Library = { history: [], saved: [] };

/** Storage key for a caller. Browsers already separate the storage of different servers. */
function shelfKey(caller: string): string {
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

/** Adds a saved query, replacing any with the same name; null if the library is full. */
export function withSaved(library: Library, saved: SavedQuery): Library | null {
  const others = library.saved.filter(({ name }) => name !== saved.name);
  if (others.length >= MOST_SAVED) return null;
  return { ...library, saved: [...others, saved].toSorted((a, b) => a.name.localeCompare(b.name)) };
}

function withoutSaved(library: Library, name: string): Library {
  return { ...library, saved: library.saved.filter((one) => one.name !== name) };
}

export interface LibraryState {
  readonly library: Library;
  asked(kept: LibraryEntry): void;
  /** Saves a query. Returns why it could not, in a sentence for the user; null if it is saved. */
  save(saved: SavedQuery): string | null;
  forget(name: string): void;
  forgetHistory(): void;
}

/** The caller's query history and saved queries, stored in this browser. */
export function useLibrary(caller: string): LibraryState {
  const [library, setLibrary] = useState(() => readLibrary(localStorage, caller));
  const change = useCallback(
    (make: (now: Library) => Library | null): string | null => {
      // Another tab may have changed the library in the meantime.
      const next = make(readLibrary(localStorage, caller));
      if (next === null) return `This browser keeps at most ${MOST_SAVED} queries: delete one first.`;
      setLibrary(next);
      return writeLibrary(localStorage, caller, next)
        ? null
        : 'This browser blocks storage, so the query could not be saved.';
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
