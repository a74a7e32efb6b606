import { queryError } from 'osl-compiler';
import { malformed } from './fault.js';

/** Code points of a text that is looked up. */
export const LONGEST_TERM = 200;

/** `given` without blanks around it: 1 to 200 characters, none of them a control character. @throws QueryError E0511 */
export function termIn(name: string, given: string): string {
  const term = given.trim();
  if (term === '') throw malformed(`\`${name}\` is missing or empty`);
  if ([...term].length > LONGEST_TERM)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: LONGEST_TERM });
  if (/[\p{Cc}\p{Cs}]/u.test(term)) throw malformed(`\`${name}\` holds a control character`);
  return term;
}
