import { createContext, Script } from 'node:vm';

/** Synchronous work exceeded its time limit and was stopped. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';

  constructor(ms: number) {
    super(`it took more than ${ms} ms`);
  }
}

const script = new Script('work()');
const context = createContext({ work: (): void => undefined }) as { work: () => unknown };

/**
 * Runs synchronous `work` and interrupts it after `ms` without running its `finally` blocks, so discard whatever it
 * was modifying. Costs about 40 µs.
 *
 * @throws TimeLimitError, and errors of `work`
 */
export function stopAfter<T>(ms: number, work: () => T): T {
  const outer = context.work;
  context.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as T;
  } catch (error) {
    // The error comes from another context, so `instanceof Error` is false.
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
    throw code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? new TimeLimitError(ms) : error;
  } finally {
    context.work = outer;
  }
}
