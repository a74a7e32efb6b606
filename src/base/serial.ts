/** Runs tasks one after another in the order given; a failed task does not prevent the next. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => T | Promise<T>): Promise<T> {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when all tasks given so far have ended; never rejects. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** Rejects after `ms` if `work` has not settled. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts `work` every `everyMs`, but skips a start while the previous run continues. Returns a function that stops the
 * repetition.
 */
export function repeat(everyMs: number, work: (isStopped: () => boolean) => Promise<void>): () => void {
  let running = false;
  let stopped = false;
  const tick = async (): Promise<void> => {
    if (running) return;
    running = true;
    try {
      await work(() => stopped);
    } finally {
      running = false;
    }
  };
  const timer = setInterval(() => void tick(), everyMs).unref();
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}
