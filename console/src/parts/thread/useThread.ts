import { useEffect, useState } from 'react';
import { QueryableThread, type ThreadQuestions } from './asked-thread.js';

/** A thread for as long as a screen is open; null until it has begun. `begin` must be the same function each time. */
export function useThread<Q extends ThreadQuestions>(begin: () => Worker): QueryableThread<Q> | null {
  const [thread, setThread] = useState<QueryableThread<Q> | null>(null);
  useEffect(() => {
    const begun = new QueryableThread<Q>(begin());
    setThread(begun);
    return () => begun.stop();
  }, [begin]);
  return thread;
}
