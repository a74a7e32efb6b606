import type { Reply } from './client.js';
import { EXIT, Failure } from './exit.js';
import type { Fields } from './fields.js';
import { print } from './output.js';
import { formatProblem, problemOf } from './problem.js';

/**
 * The body of an answer, which `--json` prints as it came.
 *
 * @param text what was asked: a refusal may point into it
 * @throws Failure where the server refused
 */
export function bodyOf(reply: Reply, json: boolean | undefined, text = ''): Fields {
  if (json) print(reply.text);
  if (!reply.ok) throw refusal(reply, text);
  return reply.body;
}

/** What a refused question ends with. */
export function refusal(reply: Reply, text: string): Failure {
  const problem = problemOf(reply.body, reply.status);
  return new Failure(EXIT.failed, formatProblem(problem, text), { ...problem });
}

/** What another program than this server answered, or another version of it. */
export function unreadable(): Failure {
  return new Failure(EXIT.failed, 'error: the answer is not one that this osl can read');
}
