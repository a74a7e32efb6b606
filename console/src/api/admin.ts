import type { SignedInCaller } from './caller.js';
import { getJson, ProblemError, postJson } from './http.js';

/** Requests of admins. The server limits them per second: they are sent one after another, and wait when told to. */

const TRIES = 5;
const PAUSE_MS = 60;

let last: Promise<unknown> = Promise.resolve();

/** GET with these parameters; empty ones are left out. Throws as `getJson`. */
export function adminGet<T>(
  caller: SignedInCaller,
  path: string,
  parameters: Readonly<Record<string, string | number | null>> = {},
  signal?: AbortSignal,
): Promise<T> {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== '');
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const url = query === '' ? path : `${path}?${query}`;
  return inTurn(() => getJson<T>(caller, url, signal === undefined ? {} : { signal }), signal);
}

/** POST. A request that `changes` something uses a fresh token. Throws as `getJson`. */
export function adminPost<T>(
  caller: SignedInCaller,
  path: string,
  body: unknown,
  changes = false,
): Promise<T> {
  return inTurn(() => postJson<T>(caller, path, body, { changes }));
}

function inTurn<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const asked = last.then(() => patient(ask, signal));
  last = asked.catch(() => undefined).then(() => wait(PAUSE_MS));
  return asked;
}

/** Retries a request refused by the rate limit (E4290), up to `TRIES` attempts, while each wait is at most 3 s. */
async function patient<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    signal?.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      const isFull = error instanceof ProblemError && error.problem.code === 'E4290';
      if (!isFull || tries === TRIES || (error.retryAfter ?? 1) > 3) throw error;
      await wait(1_000 * (error.retryAfter ?? 1));
    }
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
