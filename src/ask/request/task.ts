import { queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import type { RequestCall } from './call.js';

/** The claim of a token that names the task. */
const TASK_CLAIM = 'osl_task';
/** Maximum length of the name of a task in UTF-16 code units. */
const LONGEST_TASK = 200;
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/** True for 1 to 200 characters without control characters and lone surrogates. */
export function isTask(text: string): boolean {
  return text.length > 0 && text.length <= LONGEST_TASK && !UNPRINTABLE.test(text);
}

/**
 * The task of a request: that of the token, or else the one that the client names. Null if there is neither.
 *
 * @throws QueryError E0532 if it is not a valid name
 */
export function taskOf({ claims }: Identity, { origin }: Pick<RequestCall, 'origin'>): string | null {
  const claimed = claims?.get(TASK_CLAIM);
  // A list of several values names no task.
  const task = claimed === undefined ? (origin?.task ?? null) : claimed.length === 1 ? claimed[0] : '';
  if (task === null) return null;
  if (task === undefined || !isTask(task)) throw queryError('invalidTask', { longest: LONGEST_TASK });
  return task;
}
