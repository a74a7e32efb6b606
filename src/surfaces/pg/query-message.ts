import { type ParsedText, QueryError, statementTexts } from 'osl-compiler';
import type { Awaitable, SimpleStatement } from '../../../wire/index.js';
import { parseOf } from './parse-of.js';
import type { SessionParts } from './session-parts.js';

/** The statements of a Query message, in order. A text that is one statement, with or without a semicolon, is not parsed. */
export function splitQuery(session: SessionParts, text: string): Awaitable<readonly SimpleStatement[]> {
  const last = text.trimEnd();
  const only = text.indexOf(';');
  if (only < 0 || only === last.length - 1) {
    const start = only < 0 ? last : last.slice(0, -1);
    return start.trim() === '' ? [] : [{ text: start, start: 0 }];
  }
  try {
    const parsed = parseOf(session, text);
    if (!(parsed instanceof Promise)) return statementsIn(parsed);
    return parsed.then(statementsIn).catch((failure: unknown) => asOneQuestion(text, failure));
  } catch (failure) {
    return asOneQuestion(text, failure);
  }
}

function statementsIn(parsed: ParsedText): readonly SimpleStatement[] {
  return statementTexts(parsed).map((s) => ({ text: s.text, start: s.offset }));
}

/** A text that cannot be split, as one question: it meets the same fault there, and the refusal is recorded. */
function asOneQuestion(text: string, failure: unknown): readonly SimpleStatement[] {
  if (failure instanceof QueryError) return [{ text, start: 0 }];
  throw failure;
}
