import { emit, type GovernedPlan, placedFault } from 'osl-compiler';
import { ValueError } from '../../engine/index.js';
import { isShort } from '../parsing/index.js';
import type { Caller } from '../request/caller.js';
import { statementOf } from './planning.js';
import type { Question } from './question.js';

/**
 * `error` with the place in the text of `question` that it is about, where the database could not compute with a value of
 * it. A text that is parsed in another thread is not parsed again here.
 */
export function placedError(
  error: unknown,
  { body, parameterOids }: Pick<Question, 'body' | 'parameterOids'>,
  { manifest, access }: Pick<Caller, 'manifest' | 'access'>,
  plan: GovernedPlan,
): unknown {
  if (!(error instanceof ValueError) || body.kind === 'metrics' || !isShort(body.text)) return error;
  const { text, world } = statementOf(body);
  const slot = error.parameter === null ? null : (emit(plan).slots[error.parameter] ?? null);
  return placedFault(error, slot, text, manifest.catalog, access, { parameterOids, world });
}

/** An error of a step: its statement is none of the caller's, so that its parameters have no place. */
export function stepError(error: unknown): unknown {
  return error instanceof ValueError ? error.withoutParameter() : error;
}
