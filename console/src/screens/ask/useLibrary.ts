import { useCallback, useState } from 'react';
import {
  type Library,
  type LibraryEntry,
  readLibrary,
  type SavedQuery,
  withAsked,
  withoutSaved,
  withSaved,
  writeLibrary,
} from './library.js';

export interface LibraryState {
  readonly library: Library;
  asked(kept: LibraryEntry): void;
  /** False where the browser keeps nothing. */
  save(saved: SavedQuery): boolean;
  forget(name: string): void;
  forgetHistory(): void;
}

/** The questions of one caller in this browser. */
export function useLibrary(caller: string): LibraryState {
  const [library, setLibrary] = useState(() => readLibrary(localStorage, caller));
  const change = useCallback(
    (make: (now: Library) => Library): boolean => {
      // Another tab may have written since.
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
