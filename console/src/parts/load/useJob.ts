import { useState } from 'react';
import { adminGet, adminPost } from '../../api/admin.js';
import type { Job } from '../../api/admin-types.js';
import type { Caller } from '../../api/caller.js';
import { useLoad } from './useLoad.js';
import { usePolling } from './usePolling.js';

export interface JobState<T> {
  readonly job: Job<T> | null;
  readonly error: unknown;
  readonly begin: () => void;
  readonly again: () => void;
}

/** A job of the server: how it stands, looked at while it runs, and what begins it. */
export function useJob<T>(caller: Caller, path: string): JobState<T> {
  const { value, error, again } = useLoad(path, (signal) => adminGet<Job<T>>(caller, path, {}, signal));
  const [fault, setFault] = useState<unknown>(null);
  usePolling(again, value?.state === 'running' ? 1_000 : null);
  const begin = (): void => {
    setFault(null);
    adminPost(caller, path, null).then(again, setFault);
  };
  return { job: value, error: fault ?? error, begin, again };
}
