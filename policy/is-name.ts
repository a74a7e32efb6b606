import { MAX_NAME_LENGTH } from './tokens/token-fault.js';

/** Control characters and lone surrogates are in no name: logs and databases could not tell such names apart. */
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u;

/** True if `value` can name a tenant, a subject, a role or a token: 1–256 UTF-16 units of text. */
export function isName(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME_LENGTH && !FORBIDDEN.test(value)
  );
}
