import { setTimeout as sleep } from 'node:timers/promises';
import { ContentError } from './content-error.js';

/** A server with a JSON API. */
export interface HttpEndpoint {
  /** Base URL including the API version: `https://api.openai.com/v1`. */
  readonly url: string;
  /** Environment variable that holds the API key; null if the server needs none. */
  readonly keyEnv: string | null;
  /** Time limit per attempt, in ms. Default: 30,000. */
  readonly timeoutMs?: number;
  /** Number of retries after a 429, a 5xx or a broken connection. Default: 3. */
  readonly retries?: number;
  /** First pause before a retry, in ms. The pause doubles each time, and half of it is random. Default: 250. */
  readonly backoffMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 3;
const DEFAULT_BACKOFF_MS = 250;
const LONGEST_PAUSE_MS = 20_000;
/** Maximum size of a response, in bytes; 32 vectors of 4,096 floats take about three million. */
const LARGEST_ANSWER = 33_554_432;

/**
 * Returns the server whose URL is in the environment variable `urlEnv`. Its key, if it needs one, is in the variable of
 * the same name with the suffix `_KEY`.
 *
 * @throws ContentError `endpoint` if the variable has no http or https URL
 */
export function serverNamed(urlEnv: string): Pick<HttpEndpoint, 'url' | 'keyEnv'> {
  const url = process.env[urlEnv] ?? '';
  if (!/^https?:/.test(url)) {
    const what = url === '' ? 'is not set' : 'is not an http or https URL';
    throw new ContentError('endpoint', `the environment variable ${urlEnv} ${what}`);
  }
  const keyEnv = `${urlEnv}_KEY`;
  return { url, keyEnv: process.env[keyEnv] === undefined ? null : keyEnv };
}

class AttemptError extends Error {
  readonly again: boolean;
  readonly status: number | null;
  readonly pauseMs: number | null;

  constructor(message: string, again: boolean, status: number | null = null, pauseMs: number | null = null) {
    super(message);
    this.again = again;
    this.status = status;
    this.pauseMs = pauseMs;
  }
}

/**
 * Posts `body` and parses the JSON response, with retries. Errors never quote the response, which may contain the key
 * or the text that was sent.
 *
 * @param sending called before each attempt
 * @throws ContentError `endpoint`; `malformedAnswer` if a 200 response is not JSON; the reason of `signal` if aborted
 */
export async function postJson(
  endpoint: HttpEndpoint,
  path: string,
  body: unknown,
  signal?: AbortSignal,
  sending?: () => void,
): Promise<unknown> {
  const retries = endpoint.retries ?? DEFAULT_RETRIES;
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    try {
      sending?.();
      return await once(endpoint, path, body, signal);
    } catch (error) {
      if (!(error instanceof AttemptError)) throw error;
      if (!error.again || attempt >= retries)
        throw new ContentError('endpoint', error.message, null, error.status);
      await pause(error.pauseMs ?? pauseOf(endpoint, attempt), signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

function pauseOf(endpoint: HttpEndpoint, attempt: number): number {
  const full = Math.min(LONGEST_PAUSE_MS, (endpoint.backoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** attempt);
  return full / 2 + Math.random() * (full / 2);
}

async function once(
  endpoint: HttpEndpoint,
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const timeout = AbortSignal.timeout(endpoint.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const either = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  let text: string;
  try {
    const response = await fetch(`${endpoint.url.replace(/\/+$/, '')}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...authorization(endpoint) },
      body: JSON.stringify(body),
      // Following a redirect would send passages to a host that was never configured.
      redirect: 'error',
      signal: either,
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw refusal(response);
    }
    text = await limitedText(response);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof AttemptError || error instanceof ContentError) throw error;
    throw new AttemptError(
      timeout.aborted ? 'the endpoint did not answer in time' : 'the endpoint cannot be reached',
      true,
    );
  }
  return parseJson(text);
}

function authorization({ keyEnv }: HttpEndpoint): Record<string, string> {
  if (keyEnv === null) return {};
  const key = process.env[keyEnv];
  if (key !== undefined && key !== '') return { authorization: `Bearer ${key}` };
  throw new ContentError('endpoint', `the environment variable ${keyEnv} is not set`);
}

function refusal(response: Response): AttemptError {
  const { status } = response;
  const pauseMs = retryAfterMs(response.headers.get('retry-after'));
  return new AttemptError(
    `the endpoint answered ${status}`,
    status === 429 || status >= 500,
    status,
    pauseMs,
  );
}

/** Returns the delay in ms that a `Retry-After` header requests, in seconds or by a date; null if there is none. */
export function retryAfterMs(header: string | null, now = Date.now()): number | null {
  const text = header?.trim() ?? '';
  if (text === '') return null;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, ms), LONGEST_PAUSE_MS);
}

async function limitedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > LARGEST_ANSWER) throw new ContentError('malformedAnswer', 'the endpoint answered too much');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ContentError('malformedAnswer', 'the endpoint answered something that is not JSON');
  }
}

/** Returns the member `key` of a response; undefined if the response is not an object. */
export function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
