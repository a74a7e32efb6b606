import type { Problem } from '../../../clients/typescript/types.js';

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
