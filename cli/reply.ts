import type { HttpReply } from './client.js';
import { EXIT, Failure } from './exit.js';
import type { ReplyFields } from './output.js';
import { print } from './output.js';
import { formatProblem, problemOf } from './problem.js';

/**
 * The body of an answer, which `--json` prints as it came.
 *
 * @param text what was asked: a refusal may point into it
 * @throws Failure where the server refused
 */
export function bodyOf(reply: HttpReply, json: boolean | undefined, text = ''): ReplyFields {
  if (json) print(reply.text);
  if (!reply.ok) throw refusal(reply, text);
  return reply.body;
}

/** What a server refused. */
export class ServerRefusal extends Failure {
  readonly status: number;
  /** After which it may be asked again, where it says so. */
  readonly retryAfterSeconds: number | null;

  constructor({ body, status, retryAfterSeconds }: HttpReply, text: string) {
    const problem = problemOf(body, status);
    super(EXIT.failed, formatProblem(problem, text), { ...problem });
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** What a refused question ends with. */
export function refusal(reply: HttpReply, text: string): ServerRefusal {
  return new ServerRefusal(reply, text);
}

/** What another program than this server answered, or another version of it. */
export function unreadable(): Failure {
  return new Failure(EXIT.failed, 'error: the answer is not one that this osl can read');
}
