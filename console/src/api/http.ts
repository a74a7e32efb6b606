import type { Problem } from '../../../clients/typescript/types.js';
import type { SignedInCaller } from './caller.js';

export class ProblemError extends Error {
  readonly problem: Problem;
  /** Seconds to wait before retrying; null if the gateway did not specify a delay. */
  readonly retryAfter: number | null;
  /** Time from which the gateway accepts the request again, in ms since 1970; null if it did not specify a delay. */
  readonly retryAt: number | null;

  constructor(problem: Problem, retryAfter: number | null = null) {
    super(problem.detail);
    this.name = 'ProblemError';
    this.problem = problem;
    this.retryAfter = retryAfter;
    this.retryAt = retryAfter === null ? null : Date.now() + 1_000 * retryAfter;
  }
}

/** The gateway could not be reached, or the response broke off. */
export class UnreachedError extends Error {
  constructor(message = 'The gateway cannot be reached.') {
    super(message);
    this.name = 'UnreachedError';
  }
}

/** The response did not come from the gateway. */
export class UnreadableError extends Error {
  constructor(status: number) {
    super(`This response, with status ${status}, is not one of the gateway.`);
    this.name = 'UnreadableError';
  }
}

/** Reads the error from a response; never throws, whatever the body contains. */
export async function faultOf(response: Response): Promise<ProblemError | UnreadableError> {
  const body: unknown = await response.json().catch(() => null);
  if (typeof body !== 'object' || body === null || !('code' in body) || !('detail' in body))
    return new UnreadableError(response.status);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  // A body with a code and a detail is a problem reported by the gateway.
  return new ProblemError(body as Problem, Number.isNaN(retryAfter) ? null : retryAfter);
}

interface FetchOptions {
  readonly signal?: AbortSignal;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if the request changes something, which requires a fresh token. */
  readonly changes?: boolean;
}

/** Sends a GET as `caller`. @throws ProblemError, UnreachedError, UnreadableError, EndedError; DOMException if aborted */
export async function getJson<T>(
  caller: SignedInCaller,
  path: string,
  options: FetchOptions = {},
): Promise<T> {
  const response = await send(caller, 'GET', path, null, options);
  return readJson<T>(response);
}

/** Sends a POST with a JSON body as `caller`. Throws like `getJson`. */
export async function postJson<T>(
  caller: SignedInCaller,
  path: string,
  body: unknown,
  options: FetchOptions = {},
): Promise<T> {
  return readJson<T>(await send(caller, 'POST', path, body, options));
}

/** Sends a request that expects JSON and returns the response if it is successful. Throws like `getJson`. */
export async function send(
  caller: SignedInCaller,
  method: 'GET' | 'POST',
  path: string,
  body: unknown,
  { signal, accept, headers, changes = false }: FetchOptions = {},
): Promise<Response> {
  const ask = async (token: string): Promise<Response> =>
    reach(path, {
      method,
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        authorization: `Bearer ${token}`,
        accept: accept ?? 'application/json',
        ...(body !== null && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== null && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
  const response = await ask(await (changes ? caller.freshToken() : caller.token()));
  // The server may reject older tokens after a restart. `renewed` throws if the caller cannot renew.
  const heard = response.status === 401 ? await ask(await caller.renewed()) : response;
  if (!heard.ok) throw await faultOf(heard);
  if (!/json/.test(heard.headers.get('content-type') ?? '')) throw new UnreadableError(heard.status);
  return heard;
}

/** Calls `fetch`. @throws UnreachedError; DOMException if aborted */
export async function reach(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw isAbort(error) ? error : new UnreachedError();
  }
}

/** Reads the JSON of a successful response. @throws UnreachedError, UnreadableError; DOMException if aborted */
export async function readJson<T>(response: Response): Promise<T> {
  try {
    return (await response.json()) as T; // response of the gateway, typed as in its OpenAPI document
  } catch (error) {
    if (isAbort(error)) throw error;
    throw error instanceof SyntaxError ? new UnreadableError(response.status) : new UnreachedError(BROKEN);
  }
}

export const BROKEN = 'The answer broke off before its end.';

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
