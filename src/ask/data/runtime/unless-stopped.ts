import { stopError } from '../../../engine/index.js';

/** What `work` gives, unless `signal` stops the statement before: then it is not waited for. It must have no effect. */
export function unlessStopped<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(stopError(signal));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
