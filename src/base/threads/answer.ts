import type { Worker } from 'node:worker_threads';

/** Why a thread ended before it had answered: it took too long, too much memory, or failed. */
export type ThreadFailure = 'late' | 'memory' | 'failed';

/**
 * What `read` finds in a message of `worker`, in time. What `read` throws rejects it, and so does `ended` where the
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
