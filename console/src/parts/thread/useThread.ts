import { useEffect, useState } from 'react';
import { AskedThread, type Questions } from './asked-thread.js';

/** A thread for as long as a screen is open; null until it has begun. `begin` must be the same function each time. */
export function useThread<Q extends Questions>(begin: () => Worker): AskedThread<Q> | null {
  const [thread, setThread] = useState<AskedThread<Q> | null>(null);
  useEffect(() => {
    const begun = new AskedThread<Q>(begin());
    setThread(begun);
    return () => begun.stop();
  }, [begin]);
  return thread;
}
