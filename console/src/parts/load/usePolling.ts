import { useEffect, useRef } from 'react';

/** Calls `look` every so often while the page is looked at; a tab that is hidden asks nothing. */
export function usePolling(look: () => void, everyMs: number | null): void {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (everyMs === null) return;
    let timer: ReturnType<typeof setInterval> | null = null;
    const begin = (): void => {
      if (timer === null && document.visibilityState === 'visible')
        timer = setInterval(() => latest.current(), everyMs);
    };
    const changed = (): void => {
      if (document.visibilityState === 'visible') {
        latest.current();
        begin();
        return;
      }
      if (timer !== null) clearInterval(timer);
      timer = null;
    };
    begin();
    document.addEventListener('visibilitychange', changed);
    return () => {
      document.removeEventListener('visibilitychange', changed);
      if (timer !== null) clearInterval(timer);
    };
  }, [everyMs]);
}
