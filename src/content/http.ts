import { setTimeout as sleep } from 'node:timers/promises';
import { ContentError } from './content-error.js';

/** An OpenAI-compatible server. */
export interface Endpoint {
  /** With the version: `https://api.openai.com/v1`. */
  readonly url: string;
  /** Name of the environment variable that holds the key; null for a server without one. */
  readonly keyEnv: string | null;
  /** Of one attempt. Default 30,000. */
  readonly timeoutMs?: number;
  /** Attempts after the first, on 429, 5xx and broken connections. Default 3. */
  readonly retries?: number;
  /** The first pause; it doubles, and half of it is random. Default 250. */
  readonly backoffMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 3;
const DEFAULT_BACKOFF_MS = 250;
const LONGEST_PAUSE_MS = 20_000;
/** Bytes of an answer; 32 vectors of 4,096 floats are some three million. */
const LARGEST_ANSWER = 33_554_432;

/** A failure of one attempt, and whether another may help. */
class Attempt extends Error {
  readonly again: boolean;
  readonly pauseMs: number | null;

  constructor(message: string, again: boolean, pauseMs: number | null = null) {
    super(message);
    this.again = again;
    this.pauseMs = pauseMs;
  }
}

/**
 * Posts `body` and reads the JSON answer, with retries.
 *
 * Its errors never quote the server, which may repeat the text it was sent, or the key.
 *
 * @throws ContentError `endpoint`; `malformedAnswer` where a 200 is not JSON; what `signal` aborts with
 */
export async function postJson(
  endpoint: Endpoint,
  path: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<unknown> {
  const retries = endpoint.retries ?? DEFAULT_RETRIES;
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await once(endpoint, path, body, signal);
    } catch (error) {
      if (!(error instanceof Attempt)) throw error;
      if (!error.again || attempt >= retries) throw new ContentError('endpoint', error.message);
      await sleep(error.pauseMs ?? pauseOf(endpoint, attempt), undefined, signal ? { signal } : {});
    }
  }
}

function pauseOf(endpoint: Endpoint, attempt: number): number {
  const full = Math.min(LONGEST_PAUSE_MS, (endpoint.backoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** attempt);
  return full / 2 + Math.random() * (full / 2);
}

async function once(
  endpoint: Endpoint,
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
      // A redirect would carry passages to a host that nobody configured.
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
    if (error instanceof Attempt || error instanceof ContentError) throw error;
    throw new Attempt(
      timeout.aborted ? 'the endpoint did not answer in time' : 'the endpoint cannot be reached',
      true,
    );
  }
  return parseJson(text);
}

function authorization({ keyEnv }: Endpoint): Record<string, string> {
  if (keyEnv === null) return {};
  const key = process.env[keyEnv];
  if (key !== undefined && key !== '') return { authorization: `Bearer ${key}` };
  throw new ContentError('endpoint', `the environment variable ${keyEnv} is not set`);
}

function refusal(response: Response): Attempt {
  const { status } = response;
  const after = Number(response.headers.get('retry-after') ?? Number.NaN);
  const pauseMs = Number.isFinite(after) && after >= 0 ? Math.min(after * 1_000, LONGEST_PAUSE_MS) : null;
  return new Attempt(`the endpoint answered ${status}`, status === 429 || status >= 500, pauseMs);
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
