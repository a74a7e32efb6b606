import { useEffect, useState } from 'react';
import { QueryableThread, type ThreadQuestions } from './asked-thread.js';

/** Worker thread of an open screen; null until it has started. `begin` must be the same function each time. */
export function useThread<Q extends ThreadQuestions>(begin: () => Worker): QueryableThread<Q> | null {
  const [thread, setThread] = useState<QueryableThread<Q> | null>(null);
  useEffect(() => {
    const begun = new QueryableThread<Q>(begin());
    setThread(begun);
    return () => begun.stop();
  }, [begin]);
  return thread;
}

/** Last answer to an asynchronous question; null before the first. Answers to superseded questions are dropped. */
export function useAnswer<T>(ask: (() => Promise<T>) | null): {
  readonly answer: T | null;
  readonly fault: unknown;
} {
  const [state, setState] = useState<{ readonly answer: T | null; readonly fault: unknown }>({
    answer: null,
    fault: null,
  });
  useEffect(() => {
    if (ask === null) return;
    let isLatest = true;
    ask().then(
      (answer) => {
        if (isLatest) setState({ answer, fault: null });
      },
      (fault: unknown) => {
        if (isLatest) setState({ answer: null, fault });
      },
    );
    return () => {
      isLatest = false;
    };
  }, [ask]);
  return state;
}
