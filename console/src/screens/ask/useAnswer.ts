import { useCallback, useEffect, useRef, useState } from 'react';
import type { AnswerColumn, Query } from '../../../../clients/typescript/types.js';
import { type AnswerTrailer, ask, explain } from '../../api/ask.js';
import type { SignedInCaller } from '../../api/caller.js';
import { RowStore } from '../../parts/rows/row-store.js';

/** Maximum number of rows kept in the page; the query is cancelled if it returns more. */
export const MOST_ROWS = 1_000_000;
/** Maximum total size of the rows kept, in characters of JSON; the query is cancelled if it returns more. */
const MOST_CHARACTERS = 300_000_000;

export type AnswerState =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'running';
      readonly text: string;
      readonly store: RowStore;
      readonly rows: number;
      /** Start of the query, on the clock of `performance.now()`. */
      readonly began: number;
    }
  | {
      readonly kind: 'answered';
      readonly text: string;
      readonly store: RowStore;
      /** Trailer of the answer; null if the page stopped reading at its own limit. */
      readonly trailer: AnswerTrailer | null;
      readonly described: AnswerDescription;
      readonly ms: number;
    }
  | {
      readonly kind: 'cancelled';
      readonly text: string;
      readonly store: RowStore;
      readonly described: AnswerDescription;
      readonly ms: number;
    }
  | { readonly kind: 'failed'; readonly text: string; readonly error: unknown };

/** Columns of an answer, and the masked columns on which it depends. */
export interface AnswerDescription {
  readonly columns: readonly AnswerColumn[];
  readonly redacted_columns: readonly string[];
}

const UNDESCRIBED: AnswerDescription = { columns: [], redacted_columns: [] };

interface QuestionRun {
  readonly state: AnswerState;
  /** Runs `body` and cancels the previous query. `text` is what the user typed. */
  run(text: string, body: Query): void;
  cancel(): void;
  clear(): void;
}

/** Interval in ms at which newly received rows are shown. */
const SHOWN_MS = 120;

/** Runs one query at a time and shows its rows as they arrive. */
export function useAnswer(caller: SignedInCaller): QuestionRun {
  const [state, setState] = useState<AnswerState>({ kind: 'idle' });
  const running = useRef<AbortController | null>(null);
  const cancel = useCallback(() => running.current?.abort(), []);
  const run = useCallback(
    (text: string, body: Query) => {
      running.current?.abort();
      const controller = new AbortController();
      running.current = controller;
      const isCurrent = (): boolean => running.current === controller;
      void answer(caller, text, body, controller.signal, (next) => isCurrent() && setState(next));
    },
    [caller],
  );
  const clear = useCallback(() => {
    running.current?.abort();
    running.current = null;
    setState({ kind: 'idle' });
  }, []);
  useEffect(() => () => running.current?.abort(), []);
  return { state, run, cancel, clear };
}

async function answer(
  caller: SignedInCaller,
  text: string,
  body: Query,
  signal: AbortSignal,
  show: (state: AnswerState) => void,
): Promise<void> {
  const store = new RowStore();
  const began = performance.now();
  let shown = began;
  show({ kind: 'running', text, store, rows: 0, began });
  let kept = 0;
  const row = (value: Parameters<RowStore['add']>[0], characters: number): boolean => {
    kept += characters;
    if (store.rows >= MOST_ROWS || kept > MOST_CHARACTERS) return false;
    store.add(value);
    if (performance.now() - shown > SHOWN_MS) {
      shown = performance.now();
      show({ kind: 'running', text, store, rows: store.rows, began });
    }
    return true;
  };
  try {
    const trailer = await ask(caller, body, { signal, row, receipt: true });
    const ms = performance.now() - began;
    const described = trailer ?? (await planned(caller, body));
    show({ kind: 'answered', text, store, trailer, described, ms });
  } catch (error) {
    if (signal.aborted) {
      const ms = performance.now() - began;
      show({ kind: 'cancelled', text, store, described: UNDESCRIBED, ms });
      if (store.rows > 0)
        show({ kind: 'cancelled', text, store, described: await planned(caller, body), ms });
    } else show({ kind: 'failed', text, error });
  }
}

/** Describes an answer without a trailer from the plan of its query, without reading data; empty if that fails. */
function planned(caller: SignedInCaller, body: Query): Promise<AnswerDescription> {
  return explain(caller, body, AbortSignal.timeout(10_000)).catch(() => UNDESCRIBED);
}
