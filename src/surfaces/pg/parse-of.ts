import { oneStatement, type ParsedStatement, type ParsedText, parseText, QueryError } from 'osl-compiler';
import { isShort } from '../../ask/index.js';
import type { SessionParts } from './session-parts.js';

/** The text parsed; a long one in another thread. @throws QueryError E0511 */
export function parseOf(session: SessionParts, text: string): ParsedText | Promise<ParsedText> {
  return isShort(text) ? parseText(text) : parseElsewhere(session, text);
}

/** Has another thread parse the text. @throws QueryError E0511 */
export function parseElsewhere({ service, caller }: SessionParts, text: string): Promise<ParsedText> {
  return service.parsing.parse(text, caller.identity.subject);
}

/** The statement of the text; null for one that cannot be parsed, `empty` where it holds none. */
export async function nodeOf(
  session: SessionParts,
  text: string,
): Promise<ParsedStatement['node'] | 'empty' | null> {
  try {
    return oneStatement(await parseOf(session, text)).node;
  } catch (failure) {
    if (failure instanceof QueryError && failure.entry === 'noStatement') return 'empty';
    // The spine meets the same fault again, and records the refusal.
    if (failure instanceof QueryError) return null;
    throw failure;
  }
}
