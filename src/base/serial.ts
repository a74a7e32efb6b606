/** One task at a time, in the order in which they were given; a task that fails holds up none. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `task` when all before it have ended; whoever gave it is told of its end. */
  run<T>(task: () => T | Promise<T>): Promise<T> {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when all tasks given so far have ended, well or not. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** Result of `work` if it comes in time. @throws Error if it does not, and the rejection of `work` */
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
