import type { FastifyRequest } from 'fastify';
import type { ApprovalVerdict } from '../../../ask/why/approvals.js';
import type { AccessQuestion } from '../../../ask/why/explain-access.js';
import type { AccessRequest } from '../../../ask/why/request-access.js';
import { malformed, readMoment, readTerm } from '../problem.js';
import { exactly, flag, type JsonShape, list, oneOf, orNull, text } from '../shape.js';
import { jsonFields } from './json.js';
import { bodyReader } from './reader.js';

const OBJECT = text(
  'An entity, bridge or facet, or one of its columns, such as `osl.entities.customer.email`.',
  {
    minLength: 1,
    maxLength: 300,
  },
);
const SUBJECT = { minLength: 1, maxLength: 200 } as const;

const CLAIMS: JsonShape<Readonly<Record<string, readonly string[]>>> = {
  type: 'object',
  maxProperties: 32,
  additionalProperties: { type: 'array', items: { type: 'string', maxLength: 200 }, maxItems: 32 },
  description: 'Other claims of the token, each with its values.',
};

export const ACCESS_QUESTION = exactly({
  object: OBJECT,
  'as?': orNull(
    text(
      'Subject of the hypothetical caller. If `chain` is given too, it must end with this subject.',
      SUBJECT,
    ),
  ),
  'chain?': orNull(
    list(text(undefined, SUBJECT), 'Delegation chain, root first; the last subject is the caller.', {
      minItems: 1,
      maxItems: 16,
    }),
  ),
  'roles?': orNull(
    list(
      text(undefined, SUBJECT),
      'Data roles claimed by the token. Default: all roles that the caller may have (its ceiling).',
      {
        maxItems: 256,
      },
    ),
  ),
  'at?': orNull(text('Time of the hypothetical request, RFC 3339. Default: now.', { maxLength: 40 })),
  'surface?': orNull(oneOf('rest', 'wire', 'mcp')),
  'address?': orNull(
    text('IP address of the client. Default: none, so that conditions on networks do not hold.', {
      maxLength: 45,
    }),
  ),
  'purpose?': orNull(text('Purpose of the hypothetical request. Default: none.', SUBJECT)),
  'claims?': orNull(CLAIMS),
  'row?': orNull(
    list(
      text(undefined, { maxLength: 1_000 }),
      'Primary key of a row, each value as text, to ask whether the row is visible.',
      {
        minItems: 1,
        maxItems: 32,
      },
    ),
  ),
});

export const ACCESS_REQUEST = exactly({
  'object?': orNull(OBJECT),
  'statement?': orNull(
    text('Statement that needs an approval (E0535), in OSL-SQL or SQL; instead of `object`.', {
      minLength: 1,
      maxLength: 10_000,
    }),
  ),
  reason: text('Reason for the request, recorded and sent to the owner of the policy.', {
    minLength: 1,
    maxLength: 500,
  }),
});

const readQuestion = bodyReader(ACCESS_QUESTION);
const readRequest = bodyReader(ACCESS_REQUEST);

export function readAccessQuestion(request: FastifyRequest): AccessQuestion {
  const { object, as, chain, roles, row, ...context } = readQuestion(jsonFields(request));
  const members = chain ?? (typeof as === 'string' ? [as] : []);
  if (members.length === 0 || (typeof as === 'string' && members.at(-1) !== as))
    throw malformed('name the caller in `as`, or in a `chain` that ends with it');
  if (new Set(members).size < members.length)
    throw malformed('`chain` names a subject twice').about('/chain');
  const { at, surface, address, purpose, claims } = context;
  const now = typeof at === 'string' ? readMoment('at', at) : Date.now();
  return {
    object,
    chain: members,
    roles: roles ?? null,
    row: row ?? null,
    in: { now, surface: surface ?? '', address: address ?? null, purpose: purpose ?? null },
    ...(claims != null && { claims }),
  };
}

export function readAccessRequest(request: FastifyRequest): AccessRequest {
  const { object = null, statement = null, reason } = readRequest(jsonFields(request));
  if (/[\p{Cc}\p{Cs}]/u.test(reason)) throw malformed('`reason` holds a control character').about('/reason');
  if ((object === null) === (statement === null))
    throw malformed('name either an `object` or a `statement`').about('/object');
  return { object: object === null ? null : readTerm('object', object), statement, reason };
}

export const APPROVAL_VERDICT = exactly({
  decision: {
    ...oneOf('approve', 'decline', 'revoke'),
    description: '`revoke` ends an approval early.',
  },
  'minutes?': orNull({
    type: 'integer',
    minimum: 1,
    description: 'Duration of the approval, in minutes. Default and maximum: `minutes` of the request.',
  } as JsonShape<number>),
  'for_task?': orNull(flag('True to approve only for the task that the request names.')),
});

const readVerdict = bodyReader(APPROVAL_VERDICT);

export function readApprovalVerdict(request: FastifyRequest): ApprovalVerdict {
  const { decision, minutes = null, for_task: forTask } = readVerdict(jsonFields(request));
  if (decision === 'approve') return { kind: decision, minutes, forTask: forTask === true };
  if (minutes !== null || forTask != null)
    throw malformed('`minutes` and `for_task` belong to `approve`').about('/decision');
  return { kind: decision };
}
