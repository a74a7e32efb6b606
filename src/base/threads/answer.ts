import { createContext, Script } from 'node:vm';
import type { Worker } from 'node:worker_threads';

/** Reason why a thread ended before it answered: time, memory, or a failure. */
export type ThreadFailure = 'late' | 'memory' | 'failed';

/**
 * Result of `read` on a message of `worker`, within the time limit. What `read` throws rejects it, and so does `ended` where the
 * thread gave no answer; to end a thread that is late is the caller's.
 */
export function answerOf<Message, T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: Message) => { readonly value: T } | null,
  ended: (why: ThreadFailure, detail: string) => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(late);
      worker.off('message', hear);
      worker.off('error', broken);
      worker.off('exit', gone);
      worker.unref();
      settle();
    };
    const hear = (message: Message): void => {
      try {
        const found = read(message);
        if (found !== null) end(() => resolve(found.value));
      } catch (error) {
        end(() => reject(error));
      }
    };
    const broken = (error: Error): void => {
      const memory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      end(() => reject(ended(memory ? 'memory' : 'failed', error.message)));
    };
    const gone = (): void => end(() => reject(ended('failed', 'it is gone')));
    const late = setTimeout(
      () => end(() => reject(ended('late', `no answer in ${deadlineMs} ms`))),
      deadlineMs,
    );
    worker.on('message', hear);
    worker.once('error', broken);
    worker.once('exit', gone);
    worker.ref();
  });
}

/** Work that was stopped, since it took too long. */
export class TimeLimitError extends Error {
  override readonly name = 'Stopped';

  constructor(ms: number) {
    super(`it took more than ${ms} ms`);
  }
}

const script = new Script('work()');
const context = createContext({ work: (): void => undefined }) as { work: () => unknown };

/**
 * Result of `work`, which is synchronous. It is stopped wherever it is after so long, without a `finally` of its own:
 * what it was working on must be dropped. Costs some 40 µs for the clock in a thread of its own.
 *
 * @throws Stopped, and what `work` throws
 */
export function stopAfter<T>(ms: number, work: () => T): T {
  const outer = context.work;
  context.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as T; // what `work` gives
  } catch (error) {
    // It is an error of another context, and so no `Error` of this one.
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
    throw code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? new TimeLimitError(ms) : error;
  } finally {
    context.work = outer;
  }
}
