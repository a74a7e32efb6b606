import type { SignedInCaller } from './caller.js';
import { getJson, ProblemError, postJson } from './http.js';

/** The server rate-limits admin requests, so the console sends them one by one and retries after the given delay. */

const TRIES = 5;
const PAUSE_MS = 60;

let last: Promise<unknown> = Promise.resolve();

/** Sends a GET with `parameters`, omitting empty ones. Throws like `getJson`. */
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

/** Sends a POST. If the request `changes` something on the server, it uses a fresh token. Throws like `getJson`. */
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

/** Retries a request refused by the rate limit (E4290), up to `TRIES` attempts, unless a wait would exceed 3 s. */
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
