import type { HttpReply } from './client.js';
import { EXIT, Failure } from './exit.js';
import type { ReplyFields } from './output.js';
import { print } from './output.js';
import { formatProblem, problemOf } from './problem.js';

/**
 * Body of a response; printed unchanged with `--json`.
 *
 * @param text the query: an error may point into it
 * @throws Failure if the server refused
 */
export function bodyOf(reply: HttpReply, json: boolean | undefined, text = ''): ReplyFields {
  if (json) print(reply.text);
  if (!reply.ok) throw refusal(reply, text);
  return reply.body;
}

export class ServerRefusal extends Failure {
  readonly status: number;
  /** Null if the server does not say. */
  readonly retryAfterSeconds: number | null;

  constructor({ body, status, retryAfterSeconds }: HttpReply, text: string) {
    const problem = problemOf(body, status);
    super(EXIT.failed, formatProblem(problem, text), { ...problem });
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function refusal(reply: HttpReply, text: string): ServerRefusal {
  return new ServerRefusal(reply, text);
}

export function unreadable(): Failure {
  return new Failure(EXIT.failed, 'error: the answer is not one that this osl can read');
}
