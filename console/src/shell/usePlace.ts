import { useSyncExternalStore } from 'react';
import { type PageAddress, placeOf } from './routes.js';

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

/** The place that the address names now. */
export function usePlace(): PageAddress {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return placeOf(hash);
}
