import type { Problem } from '../../../clients/typescript/types.js';
import type { SignedInCaller } from './caller.js';

export type { Problem };

/** A refusal or a failure, as the gateway tells it. */
export class ProblemError extends Error {
  readonly problem: Problem;
  /** Seconds to wait before another try, where the gateway says so. */
  readonly retryAfter: number | null;

  constructor(problem: Problem, retryAfter: number | null = null) {
    super(problem.detail);
    this.name = 'ProblemError';
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

/** The gateway was not reached, or what answered was not it. */
export class UnreachedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnreachedError';
  }
}

/** What an answer with an error says; never throws, whatever came. */
export async function faultOf(response: Response): Promise<ProblemError | UnreachedError> {
  const body: unknown = await response.json().catch(() => null);
  if (typeof body !== 'object' || body === null || !('code' in body) || !('detail' in body))
    return new UnreachedError(`something that is no gateway answered with status ${response.status}`);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  // What has a code and a detail is a problem of the gateway's.
  return new ProblemError(body as Problem, Number.isNaN(retryAfter) ? null : retryAfter);
}

export interface HttpOptions {
  readonly signal?: AbortSignal;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if it changes something, which takes a token of its own. */
  readonly changes?: boolean;
}

/** GET as `caller`. @throws ProblemError, UnreachedError, EndedError; DOMException where it was aborted */
export async function getJson<T>(
  caller: SignedInCaller,
  path: string,
  options: HttpOptions = {},
): Promise<T> {
  const response = await send(caller, 'GET', path, null, options);
  return readJson<T>(response);
}

/** POST of JSON as `caller`. Throws as `getJson`. */
export async function postJson<T>(
  caller: SignedInCaller,
  path: string,
  body: unknown,
  options: HttpOptions = {},
): Promise<T> {
  return readJson<T>(await send(caller, 'POST', path, body, options));
}

/** The answer itself, whose status is one of success. Throws as `getJson`. */
export async function send(
  caller: SignedInCaller,
  method: 'GET' | 'POST',
  path: string,
  body: unknown,
  { signal, accept, headers, changes = false }: HttpOptions = {},
): Promise<Response> {
  const ask = async (token: string): Promise<Response> =>
    fetch(path, {
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
    }).catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'AbortError') throw error;
      throw new UnreachedError('the gateway cannot be reached: is it still running?');
    });
  const response = await ask(await (changes ? caller.freshToken() : caller.token()));
  // A server that began anew may not know what it signed before; whoever cannot renew hears that the token has ended.
  const heard = response.status === 401 ? await ask(await caller.renewed()) : response;
  if (!heard.ok) throw await faultOf(heard);
  return heard;
}

async function readJson<T>(response: Response): Promise<T> {
  try {
    return (await response.json()) as T; // the gateway's own answer, of the type that its document says
  } catch {
    throw new UnreachedError('the answer broke off');
  }
}
