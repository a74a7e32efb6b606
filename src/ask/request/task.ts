import { queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import type { RequestCall } from './call.js';

/** Token claim that names the task. */
const TASK_CLAIM = 'osl_task';
/** Maximum length of a task name in UTF-16 code units. */
const MAX_TASK_LENGTH = 200;
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/** True for 1 to 200 UTF-16 code units without control characters and lone surrogates. */
export function isTask(text: string): boolean {
  return text.length > 0 && text.length <= MAX_TASK_LENGTH && !UNPRINTABLE.test(text);
}

/**
 * Returns the task of a request: the one in the token, or else the one that the client names; null if neither names
 * one.
 *
 * @throws QueryError E0532 if the name is not valid
 */
export function taskOf({ claims }: Identity, { origin }: Pick<RequestCall, 'origin'>): string | null {
  const claim = claims?.get(TASK_CLAIM);
  // A claim with several values is not a valid name.
  const task = claim === undefined ? (origin?.task ?? null) : claim.length === 1 ? claim[0] : '';
  if (task === null) return null;
  if (task === undefined || !isTask(task)) throw queryError('invalidTask', { longest: MAX_TASK_LENGTH });
  return task;
}
