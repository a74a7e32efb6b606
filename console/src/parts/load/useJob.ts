import { useState } from 'react';
import { adminGet, adminPost } from '../../api/admin.js';
import type { SignedInCaller } from '../../api/caller.js';
import { useLoad } from './useLoad.js';
import { usePolling } from './usePolling.js';

/** A job as every path of one answers it. */
interface Job {
  readonly state: string;
}

export interface JobState<J extends Job> {
  /** Its state and last result; null before the first answer. */
  readonly job: J | null;
  readonly error: unknown;
  readonly begin: () => void;
  readonly again: () => void;
}

/** Reads the job of the server at `path`, polls it while it runs, and starts it. */
export function useJob<J extends Job>(caller: SignedInCaller, path: string): JobState<J> {
  const { value, error, again } = useLoad(path, (signal) => adminGet<J>(caller, path, {}, signal));
  const [fault, setFault] = useState<unknown>(null);
  usePolling(again, value?.state === 'running' ? 1_000 : null);
  const begin = (): void => {
    setFault(null);
    adminPost(caller, path, null).then(again, setFault);
  };
  return { job: value, error: fault ?? error, begin, again };
}
