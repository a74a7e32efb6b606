import type { FastifyRequest } from 'fastify';
import type { AuditQuery } from '../../../audit/index.js';
import { isName } from '../../../policy/tokens/token-fault.js';
import { SPAN_NAMES } from '../../ask/operating/history/history.js';
import { GROUPINGS } from '../../ask/operating/history/view.js';
import type { HistoryQuestion, MinutesQuestion, RevocationTarget } from '../../ask/operating/operate.js';
import type { LimitsQuestion } from '../../ask/operating/read-audit.js';
import type { ShadowRequest } from '../../ask/operating/shadow.js';
import { MINUTE_MS } from '../../ask/request/meters.js';
import { LONGEST_SHADOW_SECONDS } from '../../ask/shadow/shadow-report.js';
import { type MatrixQuestion, MOST_ROWS, MOST_SUBJECTS } from '../../ask/why/matrix.js';
import { VISIBILITIES, type Visibility } from '../../model/graph/index.js';
import { jsonFields } from '../rest/bodies/json.js';
import { bodyReader, oneOfReader } from '../rest/bodies/reader.js';
import { malformed, readMoment, readTerm } from '../rest/problem.js';
import { exactly, type JsonShape, orNull, text } from '../rest/shape.js';

/** Reads and validates the parameters and bodies of admin requests. */

/** URL parameters by name; a parameter may not be repeated. */
export type Parameters = ReadonlyMap<string, string>;

/** Returns a text parameter, or null if it is missing or empty. @throws QueryError E0511 */
function textParameter(parameters: Parameters, name: string): string | null {
  const text = parameters.get(name) ?? '';
  return text.trim() === '' ? null : readTerm(name, text);
}

function listParameter(parameters: Parameters, name: string, max: number): readonly string[] | null {
  const text = parameters.get(name) ?? '';
  if (text.trim() === '') return null;
  const names = text.split(',', max + 1).map((item) => readTerm(name, item));
  if (names.length > max) throw malformed(`\`${name}\` lists ${max} names at most`);
  return names;
}

/** Returns a whole number from `min` to `max`; `defaultValue` if the parameter is missing. @throws QueryError E0511 */
export function countParameter(
  parameters: Parameters,
  name: string,
  min: number,
  max: number,
  defaultValue: number,
): number {
  const text = parameters.get(name);
  if (text === undefined) return defaultValue;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw malformed(`\`${name}\` is a whole number from ${min} to ${max}`);
  return value;
}

/** Returns a parameter that must be one of `words`, or null if it is missing. @throws QueryError E0511 */
function wordParameter<const W extends string>(
  parameters: Parameters,
  name: string,
  words: readonly W[],
): W | null {
  const text = textParameter(parameters, name);
  if (text === null) return null;
  const choice = words.find((word) => word === text);
  if (choice === undefined) throw malformed(`\`${name}\` is one of ${words.join(', ')}`);
  return choice;
}

/** Converts an RFC 3339 timestamp to the audit log's format; null if it is missing. @throws QueryError E0511 */
export function timeParameter(parameters: Parameters, name: string): string | null {
  const text = textParameter(parameters, name);
  return text === null ? null : new Date(readMoment(name, text)).toISOString();
}

/** Returns the cursor that an earlier page returned as `next`, or null for the first page. @throws QueryError E0511 */
export function cursorParameter(parameters: Parameters): string | null {
  const text = parameters.get('from') ?? '';
  if (text === '') return null;
  if (!/^[\w-]{1,8192}$/.test(text)) throw malformed('`from` is none that a page gave');
  return text;
}

export const KINDS = ['decision', 'outcome', 'event'] as const;
export const DECISIONS = ['allow', 'deny', 'error'] as const;
export const OUTCOMES = ['ok', 'error', 'cancelled', 'truncated', 'unknown'] as const;
export const SURFACES = ['rest', 'wire', 'mcp', 'cli', 'system'] as const;

export const FILTER_PARAMETERS = [
  'subject',
  'object',
  'name',
  'since',
  'until',
  'kind',
  'action',
  'surface',
  'decision',
  'outcome',
  'code',
  'request',
] as const;

export function auditFilter(parameters: Parameters): AuditQuery {
  const members = {
    subject: textParameter(parameters, 'subject'),
    object: textParameter(parameters, 'object'),
    name: textParameter(parameters, 'name'),
    since: timeParameter(parameters, 'since'),
    until: timeParameter(parameters, 'until'),
    kind: wordParameter(parameters, 'kind', KINDS),
    action: textParameter(parameters, 'action'),
    surface: wordParameter(parameters, 'surface', SURFACES),
    decision: wordParameter(parameters, 'decision', DECISIONS),
    outcome: wordParameter(parameters, 'outcome', OUTCOMES),
    code: textParameter(parameters, 'code'),
    requestId: textParameter(parameters, 'request'),
  };
  // Include only the members that were given: an empty member would match nothing.
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as AuditQuery;
}

/** @throws QueryError E0511 */
export function historyQuestion(parameters: Parameters): HistoryQuestion {
  return {
    span: wordParameter(parameters, 'span', SPAN_NAMES) ?? 'hour',
    by: wordParameter(parameters, 'by', GROUPINGS) ?? 'all',
  };
}

const MAX_PERIOD_MS = 60 * MINUTE_MS;

/** @throws QueryError E0511 */
export function minutesQuestion(parameters: Parameters): MinutesQuestion {
  const start = timeParameter(parameters, 'from');
  const from = start === null ? Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS : Date.parse(start);
  const end = timeParameter(parameters, 'until');
  const until = end === null ? from + MINUTE_MS : Date.parse(end);
  if (!(until > from && until - from <= MAX_PERIOD_MS))
    throw malformed('`until` is after `from`, by at most an hour');
  return { from, until };
}

export const LIMITS_PARAMETERS = ['subject', 'chain', 'task'] as const;

/** Parses a request for the limits of `chain`, or of `subject` acting without a chain. @throws QueryError E0511 */
export function limitsQuestion(parameters: Parameters): LimitsQuestion {
  const subject = textParameter(parameters, 'subject');
  const chain = listParameter(parameters, 'chain', MAX_CHAIN_LENGTH) ?? (subject === null ? [] : [subject]);
  return { chain, task: textParameter(parameters, 'task') };
}

export const MATRIX_PARAMETERS = [
  'subject',
  'object',
  'sees',
  'after',
  'subjects',
  'from',
  'rows',
  'chain',
] as const;

const MAX_CHAIN_LENGTH = 16;

/** @throws QueryError E0511 */
export function matrixQuestion(parameters: Parameters): MatrixQuestion {
  const sees = listParameter(parameters, 'sees', VISIBILITIES.length);
  const chain = listParameter(parameters, 'chain', MAX_CHAIN_LENGTH);
  if (sees !== null && !sees.every(isVisibility))
    throw malformed(`\`sees\` lists some of ${VISIBILITIES.join(', ')}`);
  if (chain !== null && new Set(chain).size < chain.length) throw malformed('`chain` names a subject twice');
  return {
    subject: textParameter(parameters, 'subject') ?? '',
    object: textParameter(parameters, 'object') ?? '',
    sees: sees === null ? null : sees.filter(isVisibility),
    after: textParameter(parameters, 'after'),
    subjects: countParameter(parameters, 'subjects', 1, MOST_SUBJECTS, MOST_SUBJECTS),
    from: countParameter(parameters, 'from', 0, 10_000_000, 0),
    rows: countParameter(parameters, 'rows', 1, MOST_ROWS, MOST_ROWS),
    chain,
  };
}

function isVisibility(text: string): text is Visibility {
  return (VISIBILITIES as readonly string[]).includes(text);
}

export const REVOCATIONS = {
  token_id: exactly({ token_id: text('`jti` of the token to revoke, or `token_id` of a session.') }),
  subject: exactly({
    subject: text(
      'Subject whose tokens are revoked: all tokens issued until now that have it in their chain.',
    ),
  }),
  session: exactly({ session: text('ID of a session or request whose token is revoked.') }),
};

const readRevocationBody = oneOfReader(REVOCATIONS);

/** @throws QueryError E4150, E0511 */
export function readRevocation(request: FastifyRequest): RevocationTarget {
  const revocation = readRevocationBody(jsonFields(request));
  switch (revocation.kind) {
    case 'token_id':
      return { kind: 'token', name: requireName('token_id', revocation.members.token_id) };
    case 'subject':
      return { kind: 'subject', name: requireName('subject', revocation.members.subject) };
    case 'session':
      return { kind: 'session', name: requireName('session', revocation.members.session) };
  }
}

const SECONDS: JsonShape<number> = {
  type: 'integer',
  minimum: 1,
  maximum: LONGEST_SHADOW_SECONDS,
  description: 'Duration of the comparison, in seconds. Default: one day.',
};

export const SHADOW_REQUEST = exactly({
  policy: text('The policy, in YAML.', { minLength: 1 }),
  'for_seconds?': orNull(SECONDS),
});

const readShadowBody = bodyReader(SHADOW_REQUEST);

/** @throws QueryError E4150, E0511 */
export function readShadow(request: FastifyRequest): ShadowRequest {
  const { policy, for_seconds } = readShadowBody(jsonFields(request));
  return { policy, forSeconds: for_seconds ?? null };
}

function requireName(field: string, value: string): string {
  if (isName(value)) return value;
  throw malformed(`\`${field}\` is a name of 1 to 256 characters, none of them a control character`);
}
