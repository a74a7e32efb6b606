import { setTimeout as sleep } from 'node:timers/promises';
import type { FreshToken } from './caller.js';
import { EXIT, Failure } from './exit.js';
import { note } from './output.js';
import { ServerRefusal } from './reply.js';

export interface WatchOptions {
  readonly everySeconds: number;
  readonly times: number | null;
  readonly tokens: FreshToken;
  readonly ask: (token: string, signal: AbortSignal) => Promise<void>;
}

/** Maximum pause before a retry if the server does not specify one. */
const LONGEST_PAUSE_SECONDS = 60;

/**
 * Repeats a query until it has been answered `times` times, or until SIGINT or SIGTERM, which cancel the running
 * query. An overloaded server is retried at the time it specifies; an unreachable one with growing pauses.
 *
 * @throws Failure if the query is refused, or the first one gets no answer
 */
export async function watch({ everySeconds, times, tokens, ask }: WatchOptions): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  const { signal } = ending;
  let answers = 0;
  let failures = 0;
  try {
    while (!signal.aborted && (times === null || answers < times)) {
      let pause = everySeconds;
      try {
        await askFreshly(tokens, ask, signal);
        answers += 1;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        pause = Math.max(everySeconds, pauseAfter(error, failures, answers > 0));
        note(`${headline(error)}: asking again in ${pause} s`);
      }
      if (times === null || answers < times) await sleep(1_000 * pause, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/** Runs `ask`, and retries it with another token after a 401, because keys and policies may have changed. */
async function askFreshly(tokens: FreshToken, ask: WatchOptions['ask'], signal: AbortSignal): Promise<void> {
  try {
    await ask(await tokens.current(), signal);
  } catch (error) {
    const another = error instanceof ServerRefusal && error.status === 401 ? await tokens.another() : null;
    if (another === null) throw error;
    await ask(another, signal);
  }
}

/** Returns the seconds until the next attempt. @throws `error` itself if it must not be retried */
function pauseAfter(error: unknown, failures: number, answeredBefore: boolean): number {
  const longer = Math.min(LONGEST_PAUSE_SECONDS, 2 ** Math.min(failures, 10));
  if (error instanceof ServerRefusal) {
    if (error.status === 429) return error.retryAfterSeconds ?? longer;
    if (error.status === 503 && error.retryAfterSeconds !== null) return error.retryAfterSeconds;
    throw error;
  }
  if (error instanceof Failure && error.exit === EXIT.unreachable && answeredBefore) return longer;
  throw error;
}

function headline(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}
