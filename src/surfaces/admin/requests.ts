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
import { readerOf, readerOfOne } from '../rest/bodies/reader.js';
import { malformed, momentIn, termIn } from '../rest/problem.js';
import { exactly, type JsonShape, orNull, text } from '../rest/shape.js';

/** Reads and validates the parameters and bodies of admin requests. */

/** URL parameters by name; a parameter may not be repeated. */
export type Parameters = ReadonlyMap<string, string>;

/** Returns a text parameter, or null if it is missing or empty. @throws QueryError E0511 */
function textParameter(given: Parameters, name: string): string | null {
  const text = given.get(name) ?? '';
  return text.trim() === '' ? null : termIn(name, text);
}

function listParameter(given: Parameters, name: string, most: number): readonly string[] | null {
  const text = given.get(name) ?? '';
  if (text.trim() === '') return null;
  const names = text.split(',', most + 1).map((one) => termIn(name, one));
  if (names.length > most) throw malformed(`\`${name}\` lists ${most} names at most`);
  return names;
}

/** Returns a whole number from `least` to `most`; `otherwise` if the parameter is missing. @throws QueryError E0511 */
export function countParameter(
  given: Parameters,
  name: string,
  least: number,
  most: number,
  otherwise: number,
): number {
  const text = given.get(name);
  if (text === undefined) return otherwise;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw malformed(`\`${name}\` is a whole number from ${least} to ${most}`);
  return value;
}

/** Returns a parameter that must be one of `words`, or null if it is missing. @throws QueryError E0511 */
function wordParameter<const W extends string>(
  given: Parameters,
  name: string,
  words: readonly W[],
): W | null {
  const text = textParameter(given, name);
  if (text === null) return null;
  const word = words.find((one) => one === text);
  if (word === undefined) throw malformed(`\`${name}\` is one of ${words.join(', ')}`);
  return word;
}

/** Converts an RFC 3339 timestamp to the audit log's format; null if it is missing. @throws QueryError E0511 */
export function timeParameter(given: Parameters, name: string): string | null {
  const text = textParameter(given, name);
  return text === null ? null : new Date(momentIn(name, text)).toISOString();
}

/** Returns the cursor that an earlier page returned as `next`, or null for the first page. @throws QueryError E0511 */
export function cursorParameter(given: Parameters): string | null {
  const text = given.get('from') ?? '';
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

export function auditFilter(given: Parameters): AuditQuery {
  const members = {
    subject: textParameter(given, 'subject'),
    object: textParameter(given, 'object'),
    name: textParameter(given, 'name'),
    since: timeParameter(given, 'since'),
    until: timeParameter(given, 'until'),
    kind: wordParameter(given, 'kind', KINDS),
    action: textParameter(given, 'action'),
    surface: wordParameter(given, 'surface', SURFACES),
    decision: wordParameter(given, 'decision', DECISIONS),
    outcome: wordParameter(given, 'outcome', OUTCOMES),
    code: textParameter(given, 'code'),
    requestId: textParameter(given, 'request'),
  };
  // Include only the members that were given: an empty member would match nothing.
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as AuditQuery;
}

/** @throws QueryError E0511 */
export function historyQuestion(given: Parameters): HistoryQuestion {
  return {
    span: wordParameter(given, 'span', SPAN_NAMES) ?? 'hour',
    by: wordParameter(given, 'by', GROUPINGS) ?? 'all',
  };
}

const MOST_MINUTES_MS = 60 * MINUTE_MS;

/** @throws QueryError E0511 */
export function minutesQuestion(given: Parameters): MinutesQuestion {
  const start = timeParameter(given, 'from');
  const from = start === null ? Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS : Date.parse(start);
  const end = timeParameter(given, 'until');
  const until = end === null ? from + MINUTE_MS : Date.parse(end);
  if (!(until > from && until - from <= MOST_MINUTES_MS))
    throw malformed('`until` is after `from`, by at most an hour');
  return { from, until };
}

export const LIMITS_PARAMETERS = ['subject', 'chain', 'task'] as const;

/** Parses a request for the limits of `chain`, or of `subject` acting without a chain. @throws QueryError E0511 */
export function limitsQuestion(given: Parameters): LimitsQuestion {
  const subject = textParameter(given, 'subject');
  const chain = listParameter(given, 'chain', MOST_CHAIN) ?? (subject === null ? [] : [subject]);
  return { chain, task: textParameter(given, 'task') };
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

const MOST_CHAIN = 16;

/** @throws QueryError E0511 */
export function matrixQuestion(given: Parameters): MatrixQuestion {
  const sees = listParameter(given, 'sees', VISIBILITIES.length);
  const chain = listParameter(given, 'chain', MOST_CHAIN);
  if (sees !== null && !sees.every(isVisibility))
    throw malformed(`\`sees\` lists some of ${VISIBILITIES.join(', ')}`);
  if (chain !== null && new Set(chain).size < chain.length) throw malformed('`chain` names a subject twice');
  return {
    subject: textParameter(given, 'subject') ?? '',
    object: textParameter(given, 'object') ?? '',
    sees: sees === null ? null : sees.filter(isVisibility),
    after: textParameter(given, 'after'),
    subjects: countParameter(given, 'subjects', 1, MOST_SUBJECTS, MOST_SUBJECTS),
    from: countParameter(given, 'from', 0, 10_000_000, 0),
    rows: countParameter(given, 'rows', 1, MOST_ROWS, MOST_ROWS),
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

const read = readerOfOne(REVOCATIONS);

/** @throws QueryError E4150, E0511 */
export function readRevocation(request: FastifyRequest): RevocationTarget {
  const revocation = read(jsonFields(request));
  switch (revocation.kind) {
    case 'token_id':
      return { kind: 'token', name: nameIn('token_id', revocation.read.token_id) };
    case 'subject':
      return { kind: 'subject', name: nameIn('subject', revocation.read.subject) };
    case 'session':
      return { kind: 'session', name: nameIn('session', revocation.read.session) };
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

const readShadowBody = readerOf(SHADOW_REQUEST);

/** @throws QueryError E4150, E0511 */
export function readShadow(request: FastifyRequest): ShadowRequest {
  const { policy, for_seconds } = readShadowBody(jsonFields(request));
  return { policy, forSeconds: for_seconds ?? null };
}

function nameIn(field: string, value: string): string {
  if (isName(value)) return value;
  throw malformed(`\`${field}\` is a name of 1 to 256 characters, none of them a control character`);
}
