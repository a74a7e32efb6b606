import { createContext, Script } from 'node:vm';

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
 * What `work` gives, which waits for nothing. It is stopped wherever it is after so long, without a `finally` of its own:
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
