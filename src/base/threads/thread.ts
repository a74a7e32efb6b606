import { type ResourceLimits, Worker } from 'node:worker_threads';

/**
 * Starts a thread, which keeps no process open. What it throws ends the thread and never the process: `exit` follows, and
 * who waits for an answer listens to `error` too.
 *
 * @param resourceLimits of its memory, MiB
 * @throws Error where the system gives no thread
 */
export function startThread(
  file: URL | string,
  resourceLimits: ResourceLimits,
  workerData?: unknown,
): Worker {
  const worker = new Worker(file, { execArgv: [], resourceLimits, workerData }); // flags such as --eval are not for it
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}
