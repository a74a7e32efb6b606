import type { FastifyRequest } from 'fastify';
import { isName } from '../../../policy/is-name.js';
import type { RevocationAsked } from '../../operating/revoke.js';
import { jsonFields } from '../rest/bodies/json.js';
import { readerOfOne } from '../rest/bodies/reader.js';
import { malformed } from '../rest/fault.js';
import { exactly, text } from '../rest/shape.js';

export const REVOCATIONS = {
  token_id: exactly({ token_id: text('The `jti` of a token, or `token_id` of a session.') }),
  subject: exactly({ subject: text('All tokens with it in their chain that were issued by now.') }),
  session: exactly({ session: text('The token of a session, or a request, by its id.') }),
};

const read = readerOfOne(REVOCATIONS);

/** @throws QueryError E4150, E0511 */
export function readRevocation(request: FastifyRequest): RevocationAsked {
  const asked = read(jsonFields(request));
  switch (asked.kind) {
    case 'token_id':
      return { kind: 'token', name: nameIn('token_id', asked.read.token_id) };
    case 'subject':
      return { kind: 'subject', name: nameIn('subject', asked.read.subject) };
    case 'session':
      return { kind: 'session', name: nameIn('session', asked.read.session) };
  }
}

function nameIn(field: string, value: string): string {
  if (isName(value)) return value;
  throw malformed(`\`${field}\` is a name of 1 to 256 characters, none of them a control character`);
}
