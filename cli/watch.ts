import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure } from './exit.js';
import type { FreshToken } from './fresh-token.js';
import { note } from './output.js';
import { ServerRefusal } from './reply.js';

/** How a question is asked again and again. */
export interface WatchOptions {
  readonly everySeconds: number;
  /** After so many answers it ends; null: when it is told to. */
  readonly times: number | null;
  readonly tokens: FreshToken;
  /** Asks once, and writes the answer. */
  readonly ask: (token: string, signal: AbortSignal) => Promise<void>;
}

/** Between two attempts, where the server does not say how long. */
const LONGEST_PAUSE_SECONDS = 60;

/**
 * Asks until it has been answered so many times, or until SIGINT or SIGTERM, which end it in order: the question that is
 * on its way is cancelled. A server that has too much to do is asked again when it says; one that is away after it has
 * answered, is waited for, ever longer.
 *
 * @throws Failure where the question is refused, and where no server answered the first one
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

/** Once more with another token where the server does not take this one any more: keys and policies change. */
async function askFreshly(tokens: FreshToken, ask: WatchOptions['ask'], signal: AbortSignal): Promise<void> {
  try {
    await ask(await tokens.current(), signal);
  } catch (error) {
    const another = error instanceof ServerRefusal && error.status === 401 ? await tokens.another() : null;
    if (another === null) throw error;
    await ask(another, signal);
  }
}

/** Seconds until it is worth asking again. @throws what went wrong where it is not */
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
