/** The one error catalogue. `docs/errors.md` lists it, and a test binds the two both ways. */

import { InternalError } from './internal-error.js';
import { WAYS } from './surface-hints.js';
import { type CountClause, EVALUATION_FAULTS, literalHint, OUT_OF_RANGE } from './value-faults.js';

export interface ErrorEntry<P> {
  /** The stable public code. Several entries may share one; a retired code is never used again. */
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: (p: P) => string;
  readonly hint: (p: P) => string | null;
}

type Nothing = Record<never, never>;

interface UnknownFunction {
  readonly signature: string;
  readonly near: string | null;
  /** What the function of that name takes. */
  readonly takes?: string;
}

interface InvalidLiteral {
  readonly type: string;
  /** What the database says of the value, where it is another than 22P02. */
  readonly sqlstate?: string;
  /** The number of the parameter that it came as; absent or null: it stands in the text. */
  readonly parameter?: number | null;
}

function literalFault({ sqlstate }: InvalidLiteral): string {
  return OUT_OF_RANGE.has(sqlstate ?? '')
    ? 'the value is out of range for type'
    : 'invalid input syntax for type';
}

/**
 * A row of the catalogue: code, SQLSTATE, HTTP status, and what the two texts are made of (message, then hint).
 * The parameters an error is raised with are those that `says` declares; a row without any is raised with `{}`.
 */
function row<P = Nothing>(
  code: string,
  sqlstate: string,
  http: number,
  says: (p: P) => readonly [message: string, hint?: string | null],
): ErrorEntry<P> {
  return Object.freeze({
    code,
    sqlstate,
    http,
    message: (p) => says(p)[0],
    hint: (p) => says(p)[1] ?? null,
  } satisfies ErrorEntry<P>);
}

/** The hint that names what the caller may have meant. `near` is as it is written in that place: see `nearestIdentifier`. */
function perhaps(near: string | null): string | null {
  return near === null ? null : `perhaps you meant \`${near}\``;
}

export const ERRORS = Object.freeze({
  // ---- out of grammar
  syntax: row('E0511', '42601', 400, (p: { detail: string }) => [p.detail]),
  unsupported: row('E0511', '0A000', 400, (p: { construct: string; hint: string | null }) => [
    `${p.construct} is not part of OSL-SQL`,
    p.hint,
  ]),
  switchedOff: row('E0511', '0A000', 400, (p: { construct: string; feature: string; hint: string }) => [
    `${p.construct} is switched off here, by \`features.${p.feature}\` of the manifest`,
    p.hint,
  ]),
  readOnly: row('E0511', '25006', 400, (p: { command: string }) => [
    `cannot execute ${p.command}: OSL-SQL is read-only`,
    'ask with SELECT',
  ]),
  temporaryTable: row('E0511', '25006', 400, () => [
    'temporary tables are not supported: OSL-SQL is read-only',
    'put what it would hold into a WITH query of the statement that reads it',
  ]),
  noStatement: row('E0511', '42601', 400, () => ['the text holds no statement', 'send exactly one SELECT']),
  oneStatement: row('E0511', '42601', 400, (p: { count: number }) => [
    `the text holds ${p.count} statements`,
    'send exactly one SELECT',
  ]),
  tooLarge: row('E0511', '54000', 400, (p: { what: string; limit: number }) => [
    `${p.what} exceeds the limit of ${p.limit}`,
  ]),
  tooDeep: row('E0511', '54001', 400, () => [
    'the statement is nested too deeply',
    'write long chains of OR as an IN list',
  ]),
  tooComplex: row('E0511', '54001', 400, (p: { what: string; limit: number }) => [
    `the statement is too complex: ${p.what} exceeds the limit of ${p.limit}`,
    'ask in several smaller statements, and write long lists of values as one IN list',
  ]),
  draftTooCostly: row('E0511', '54001', 400, (p: { what: string }) => [
    `the draft cannot be judged: ${p.what}`,
    `send it in smaller parts, or ${WAYS.compile.rest}`,
  ]),
  tooManyColumns: row('E0511', '54011', 400, (p: { what: string; limit: number }) => [
    `${p.what} can have at most ${p.limit} entries`,
    'name the columns that you need',
  ]),
  malformedBody: row('E0511', '22023', 400, (p: { detail: string; hint?: string | null }) => [
    p.detail,
    p.hint ?? null,
  ]),
  inexactNumber: row('E0511', '22003', 400, (p: { pointer: string }) => [
    `the number at \`${p.pointer}\` has more digits than readers of JSON keep`,
    'send it as a string',
  ]),
  typeMismatch: row('E0511', '42804', 400, (p: { detail: string; hint: string | null }) => [
    p.detail,
    p.hint,
  ]),
  unknownFunction: row('E0511', '42883', 400, (p: UnknownFunction) => [
    `function \`${p.signature}\` is not part of OSL-SQL`,
    perhaps(p.near) ?? p.takes ?? null,
  ]),
  unknownOperator: row('E0511', '42883', 400, (p: { signature: string }) => [
    `operator \`${p.signature}\` is not part of OSL-SQL`,
    'an explicit cast may help',
  ]),
  unknownType: row('E0511', '42704', 400, (p: { type: string; near?: string | null }) => [
    `type \`${p.type}\` is not part of OSL-SQL`,
    perhaps(p.near ?? null),
  ]),
  ambiguous: row('E0511', '42702', 400, (p: { what: string; name: string }) => [
    `${p.what} \`${p.name}\` is ambiguous`,
    'qualify it with a table alias, or cast its arguments',
  ]),
  duplicateAlias: row('E0511', '42712', 400, (p: { alias: string }) => [
    `table name \`${p.alias}\` is given twice`,
    'give each FROM item an alias of its own',
  ]),
  grouping: row('E0511', '42803', 400, (p: { detail: string; hint?: string }) => [p.detail, p.hint ?? null]),
  windowing: row('E0511', '42P20', 400, (p: { detail: string; hint?: string }) => [p.detail, p.hint ?? null]),
  invalidLiteral: row('E0511', '22P02', 400, (p: InvalidLiteral) => [
    `${p.parameter == null ? '' : `parameter $${p.parameter}: `}${literalFault(p)} ${p.type}`,
    literalHint(p.type),
  ]),
  unknownZone: row('E0511', '22023', 400, () => [
    'the database knows no time zone of this name',
    "such are 'Europe/Berlin', 'UTC', and an offset as `interval '2 hours'`",
  ]),
  negativeCount: row('E0511', '2201W', 400, (p: { clause: CountClause; sqlstate: string }) => [
    `${p.clause} must not be negative`,
    `leave ${p.clause} out for ${p.clause === 'LIMIT' ? 'all rows' : 'none to be skipped'}`,
  ]),
  unknownLabel: row('E0511', '22P02', 400, (p: { type: string; label: string }) => [
    `invalid input value for enum ${p.type}: "${p.label}"`,
    'its labels are in `pg_enum`',
  ]),
  parameterType: row('E0511', '42P18', 400, (p: { index: number }) => [
    `could not determine the type of parameter $${p.index}`,
    'cast it, as in $1::text',
  ]),
  declaredType: row('E0511', '42804', 400, (p: { index: number; type: string; cast: string | null }) => [
    `parameter $${p.index} is declared as \`${p.type}\`, which OSL-SQL does not compute with`,
    p.cast === null ? 'declare another type, or none' : `cast it, as in $${p.index}::${p.cast}`,
  ]),
  parameterCount: row('E0511', '08P01', 400, (p: { given: number; needed: number }) => [
    `the statement takes ${p.needed} ${p.needed === 1 ? 'parameter' : 'parameters'}, and ${p.given} came`,
  ]),

  // ---- names
  unknownRelation: row('E0512', '42P01', 400, (p: { relation: string; near: string | null }) => [
    `object \`${p.relation}\` is not declared`,
    perhaps(p.near),
  ]),
  unknownColumn: row('E0512', '42703', 400, (p: { column: string; near: string | null }) => [
    `column \`${p.column}\` is not declared`,
    perhaps(p.near),
  ]),
  unknownAlias: row('E0512', '42P01', 400, (p: { alias: string; near: string | null }) => [
    `there is no FROM item \`${p.alias}\` here`,
    perhaps(p.near),
  ]),
  unknownMetric: row('E0512', '42704', 400, (p: { metric: string; near: string | null }) => [
    `metric \`${p.metric}\` is not declared`,
    perhaps(p.near),
  ]),
  outsideAllowlist: row('E0512', '42501', 403, (p: { table: string; near: string | null }) => [
    `table \`${p.table}\` is outside the allowlist of raw SQL`,
    perhaps(p.near),
  ]),
  mixedWorlds: row('E0513', '0A000', 400, () => [
    'a statement names entities or tables, never both',
    'ask about entities in OSL-SQL, and about tables in raw SQL',
  ]),
  unknownDimension: row('E0512', '42703', 400, (p: { dimension: string; near: string | null }) => [
    `dimension \`${p.dimension}\` is not declared`,
    perhaps(p.near),
  ]),
  mixedBody: row('E0513', '22023', 400, () => [
    'the body must have exactly one of `osql`, `sql` and `metrics`',
  ]),
  unsealedJoin: row('E0514', '42P10', 400, (p: { detail: string; hint: string | null }) => [
    p.detail,
    p.hint,
  ]),
  keyNotClear: row('E0515', '42501', 403, (p: { column: string }) => [
    `key \`${p.column}\` is not readable in the clear, so it cannot be joined`,
  ]),
  emptySql: row('E0246', '42601', 400, () => ["the body's `sql` is empty"]),
  unknownFacet: row('E0241', '42704', 400, (p: { facet: string; near?: string | null }) => [
    `facet \`${p.facet}\` is not declared`,
    perhaps(p.near ?? null),
  ]),
  unknownModel: row('E0254', '42P01', 400, (p: { model: string; near: string | null }) => [
    `model \`${p.model}\` is not declared`,
    perhaps(p.near),
  ]),
  unresolvable: row('E1001', '0A000', 422, (p: { detail: string; hint: string | null }) => [
    p.detail,
    p.hint,
  ]),
  planChanged: row('E1001', '0A000', 422, () => [
    'cached plan must not change result type',
    'what this session may see has changed since the statement was prepared: prepare it again',
  ]),

  // ---- publishing
  notServable: row('E1002', 'F0000', 422, (p: { fault: string; more: number }) => [
    `with this nothing could be served: ${p.fault}`,
    `${p.more > 0 ? `and ${p.more} more; ` : ''}${WAYS.diagnostics.rest}`,
  ]),
  wrongState: row('E4090', '55000', 409, (p: { detail: string; hint: string | null }) => [p.detail, p.hint]),
  baseRequired: row('E4280', '22023', 428, (p: { current: string }) => [
    'it is not said which version this change was made for',
    `${WAYS.base.rest}; what is served now is \`${p.current}\``,
  ]),
  baseChanged: row('E4120', '40001', 412, (p: { current: string }) => [
    'this change was made for a version that is no longer served',
    `look at what changed, and judge it against \`${p.current}\``,
  ]),
  notPublishable: row('E2101', '42501', 403, (p: { what: string }) => [
    `publishing cannot change ${p.what}`,
    'connectors, policy, endpoints and allowlists are changed in their files',
  ]),
  authorsOnly: row('E2101', '42501', 403, () => [
    'what is served is authored by admins only',
    'an admin role must be in the token, and below the admin ceiling of every subject in its chain',
  ]),
  operatorsOnly: row('E2101', '42501', 403, () => [
    'the server is operated by admins only',
    'an admin role must be in the token, and below the admin ceiling of every subject in its chain',
  ]),

  // ---- identity and policy
  invalidToken: row('E3001', '28000', 401, (p: { reason: string }) => [
    `the bearer token is not valid: ${p.reason}`,
    'get a new token; tokens live 300 s at most',
  ]),
  tokenUsed: row('E3001', '28000', 401, () => [
    'this token has made its one change, or is older than the server',
    'a token is good for one change of what is served: get a new one for each',
  ]),
  invalidCertificate: row('E3001', '28000', 401, (p: { reason: string }) => [
    `the client certificate is nobody's here: ${p.reason}`,
    'send a token, or have `certificates` of the policy say who it is',
  ]),
  missingToken: row('E2102', '28000', 403, () => [
    'no bearer token was sent, and access is denied by default',
    WAYS.token.rest,
  ]),
  noAccess: row('E2102', '42501', 403, () => [
    'the caller has no access to anything',
    'the roles of the token and the ceiling of every subject in its chain must have one in common',
  ]),
  denied: row('E2101', '42501', 403, (p: { object: string }) => [`policy denies the use of \`${p.object}\``]),
  purposeDenied: row('E2101', '42501', 403, () => [
    'policy, or the token, does not allow this purpose',
    'ask for another purpose, or name none',
  ]),
  noGlass: row('E2101', '42501', 403, () => [
    'there is no glass for you to break',
    'policy grants nothing to you for an emergency; who acts for another breaks no glass',
  ]),
  glassReason: row('E2104', '22023', 400, (p: { least: number; most: number }) => [
    `a reason to break the glass is ${p.least} to ${p.most} characters on one line`,
    'say what happened and for whom: it is on record, and the owner reads it',
  ]),
  glassSpent: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'you have broken the glass as often as policy allows in a day',
    `again in ${Math.ceil(p.retryAfterSeconds / 60)} minutes`,
  ]),
  adminOnly: row('E2101', '42501', 403, () => [
    'all of the graph is shown to admins only',
    WAYS.governed.rest,
  ]),
  upstreamForAdmins: row('E2101', '42501', 403, () => [
    'what goes to the database is shown to admins only',
    'leave out `upstream`; an admin role must be below the ceiling of every subject in the chain',
  ]),
  groupsOnly: row('E2103', '42501', 403, (p: { relation: string; detail: string; hint: string }) => [
    `rows of \`${p.relation}\` are for aggregates only: ${p.detail}`,
    p.hint,
  ]),
  decodeDenied: row('E2101', '42501', 403, (p: { facet: string; to: 'a language model' | 'a reranker' }) => [
    `policy does not let passages of \`${p.facet}\` be sent to ${p.to}`,
    'encoder operators (SIMILARITY, CLASSIFY, TAG, RANK, …) need no such permission',
  ]),
  noSnapshot: row('E2001', '57P03', 503, () => [
    'the policy is missing or invalid, so all queries are refused',
    'whoever runs the gateway finds the file and the fault in its log',
  ]),
  rightsChanged: row('E2003', '55000', 409, () => [
    'what this caller may see has changed since the question began, so it was ended',
    'ask again',
  ]),
  rateLimited: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'the rate limit of this subject is exceeded',
    `try again in ${p.retryAfterSeconds} s`,
  ]),
  addressLimited: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'too many requests without a valid token came from this address',
    `try again in ${p.retryAfterSeconds} s, or with a valid token, which has a limit of its own`,
  ]),

  rerankBudget: row('E4290', '53400', 429, (p: { reranker: string; retryAfterSeconds: number }) => [
    `what this subject may send to the reranker \`${p.reranker}\` today is sent`,
    'there is more after midnight, UTC; without `rerank` it can be asked now',
  ]),

  // ---- running it
  /** `sqlstate` is that of the upstream, whose words could hold values of rows. */
  execution: row('E0510', 'XX000', 502, (_: { sqlstate: string }) => [
    'the database could not run the query',
  ]),
  evaluation: row('E0529', '22000', 400, ({ sqlstate }: { sqlstate: string }) => {
    return EVALUATION_FAULTS.get(sqlstate) ?? ['a value of the question cannot be computed with'];
  }),
  /** `databaseDown`, `sourceDenied`, `sourceGone` and `sourceChanged` name only what the caller named; the operator's log has the tables. */
  databaseDown: row('E0523', '08006', 502, () => [
    'the database of this question does not answer',
    "ask again later; the server's log has the cause",
  ]),
  sourceDenied: row('E0524', '42501', 502, (p: { objects: string }) => [
    `the database does not let the gateway read what ${p.objects} rests on`,
    "no grant of yours is missing: the operator mends it with GRANT; the server's log names the table",
  ]),
  sourceGone: row('E0525', '42703', 502, (p: { objects: string }) => [
    `a table or column that ${p.objects} rests on is gone from the database`,
    "the operator mends the manifest or the database; the server's log names the table",
  ]),
  sourceChanged: row('E0526', '42804', 502, (p: { objects: string }) => [
    `a column that ${p.objects} rests on has another type now in the database`,
    "the operator mends the manifest or the database; the server's log names the table",
  ]),
  cancelled: row('E0516', '57014', 499, () => ['the statement was cancelled']),
  /** `seconds`: null where the session's own `statement_timeout` stopped it. */
  timedOut: row('E0517', '57014', 504, (p: { seconds: number | null }) => [
    p.seconds === null
      ? 'canceling statement due to statement timeout' // in Postgres' words, which clients look for
      : `the statement ran longer than ${p.seconds} s and was stopped`,
    p.seconds === null ? null : 'ask for less, or filter more',
  ]),
  rowCap: row('E0518', '54000', 400, (p: { limit: number }) => [
    `the result has more than ${p.limit} rows`,
    'add a LIMIT, or use a cursor',
  ]),
  stepCap: row('E0519', '54000', 400, (p: { what: string; limit: number; unit: string; hint: string }) => [
    `${p.what} has more than ${p.limit} ${p.unit}, and without the rest the answer would be wrong`,
    p.hint,
  ]),
  rowTooLarge: row('E0530', '54000', 400, (p: { limitMib: number }) => [
    `one row of the answer is larger than ${p.limitMib} MiB`,
    'select fewer columns, or parts of long values, as in left(value, 1000); OSL_MAX_ROW_MIB is the limit',
  ]),
  costCap: row('E0527', '54001', 400, () => [
    'the database would take more for this question than a role of yours allows for one',
    'ask for less of it at a time: fewer relations, or a filter on a key',
  ]),
  formMissing: row('E0528', '0A000', 400, (p: { form: string }) => [
    `the database of this question has no ${p.form}, by its own documentation`,
    'ask for it in another form',
  ]),
  noDecoder: row('E0521', '0A000', 503, (p: { operator: string }) => [
    `operator ${p.operator} needs a language model, and none is configured`,
  ]),
  contentUnavailable: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the content of facet \`${p.facet}\` cannot be served: ${p.reason}`,
    'the operator can mend it with `osl index`',
  ]),
  modelUnavailable: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the embedding model of facet \`${p.facet}\` cannot be asked: ${p.reason}`,
    'ask again later; the operator looks at the endpoint in `OSL_EMBEDDINGS_URL` and the model that the facet names',
  ]),
  rerankerUnavailable: row('E0522', '55000', 503, (p: { reranker: string; reason: string }) => [
    `the reranker \`${p.reranker}\` cannot be asked: ${p.reason}`,
    'ask again later, or without `rerank`; the operator looks at the endpoint that the manifest names for it',
  ]),
  storeClosed: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the content of facet \`${p.facet}\` cannot be served: the gateway ${p.reason}`,
    "the operator can mend it: the server's log names the variable that holds the credentials",
  ]),
  auditUnavailable: row('E5030', '57P03', 503, () => [
    'the audit log cannot be written, so everything is refused',
  ]),
  auditUnreadable: row('E5037', '58030', 503, () => [
    'the audit log cannot be read now, or took too long to read',
    "verifying it says whether it holds; the server's log has the cause",
  ]),
  controlUnavailable: row('E5036', '57P03', 503, () => [
    'the database that gateways share does not answer: nothing was published',
    'try again; if it was written after all, the same change is answered as published already',
  ]),
  limitsUnknown: row('E5038', '57P03', 503, () => [
    'the store in which gateways count limits together has not answered since this gateway started',
    "try again in a moment; the server's log has the cause",
  ]),
  overloaded: row('E5031', '53300', 503, (p: { retryAfterSeconds: number }) => [
    'the server is at its capacity',
    `try again in ${p.retryAfterSeconds} s`,
  ]),
  answerMemory: row('E5039', '53200', 503, (p: { retryAfterSeconds: number }) => [
    'the answers under way hold all the memory that there is for them, or your own hold half of it',
    `try again in ${p.retryAfterSeconds} s, or ask for less; OSL_ANSWER_MEMORY_MIB is the limit`,
  ]),
  issuerUnavailable: row('E5033', '57P03', 503, (p: { retryAfterSeconds: number }) => [
    'the keys of the issuer of this token cannot be had now, so it can be neither believed nor refused',
    `try again in ${p.retryAfterSeconds} s; the server's log has the cause`,
  ]),
  ownerUnreached: row('E5034', '08006', 503, () => [
    'the request is on record, but the owner of the policy could not be told of it',
    'ask again later; the operator finds the cause in the log',
  ]),
  shuttingDown: row('E5032', '57P01', 503, () => ['the server is shutting down']),
  internal: row('E5000', 'XX000', 500, () => [
    'something went wrong inside the gateway',
    "the server's log has the cause under this request id",
  ]),

  // ---- HTTP
  notFound: row('E4040', '42704', 404, (p: { elsewhere?: string }) => [
    'there is nothing at this path',
    p.elsewhere ?? null,
  ]),
  noSession: row('E4040', '42704', 404, () => [
    'there is no such session, and no request of this id runs',
    'list them again: it may be over',
  ]),
  foreignOrigin: row('E4030', '28000', 403, () => [
    'this host or origin is not served here',
    'the operator names others with OSL_MCP_HOSTS and OSL_MCP_ORIGINS',
  ]),
  methodNotAllowed: row('E4050', '0A000', 405, (p: { allowed: string }) => [
    `this path answers ${p.allowed} only`,
  ]),
  noArrowValue: row('E4060', '22000', 406, (p: { column: string; what: string }) => [
    `column \`${p.column}\` holds ${p.what}, which Arrow cannot carry in its type`,
    `select the column as text, leave such values out, or ${WAYS.json.rest}`,
  ]),
  bodyTooLarge: row('E4130', '54000', 413, (p: { limit: number }) => [
    `the body is larger than ${p.limit} bytes`,
  ]),
  mediaType: row('E4150', '0A000', 415, () => ['the body must be application/json']),
});

export type ErrorName = keyof typeof ERRORS;
export type ErrorParameters<N extends ErrorName> = (typeof ERRORS)[N] extends ErrorEntry<infer P> ? P : never;

/** A place in the caller's text. */
export interface Position {
  /** UTF-16 offset, from 0. */
  readonly offset: number;
  /** From 1. */
  readonly line: number;
  /** UTF-16 units, from 1. */
  readonly column: number;
}

/** A fault that the caller can see and, mostly, mend. Everything else is an `InternalError`. */
export class QueryError extends Error {
  readonly entry: ErrorName;
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly hint: string | null;
  readonly position: Position | null;
  readonly retryAfterSeconds: number | null;

  constructor(name: ErrorName, message: string, fields: Omit<QueryErrorFields, 'message'>) {
    super(message);
    this.name = 'QueryError';
    this.entry = name;
    this.code = fields.code;
    this.sqlstate = fields.sqlstate;
    this.http = fields.http;
    this.hint = fields.hint;
    this.position = fields.position;
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }

  /** The same error at `position`, where it has none. */
  at(position: Position | null): QueryError {
    if (position === null || this.position !== null) return this;
    return new QueryError(this.entry, this.message, { ...this, position });
  }
}

/** What an error of the catalogue says. */
export interface QueryErrorFields {
  readonly message: string;
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly hint: string | null;
  readonly position: Position | null;
  readonly retryAfterSeconds: number | null;
}

/** The error of catalogue entry `name` with its typed parameters. */
export function queryError<N extends ErrorName>(
  name: N,
  parameters: ErrorParameters<N>,
  position: Position | null = null,
): QueryError {
  const found = ERRORS[name] as unknown as ErrorEntry<ErrorParameters<N>>; // one entry of the union, by its own key
  const given = parameters as Readonly<Record<string, unknown>>;
  const retry = given['retryAfterSeconds'];
  const sqlstate = given['sqlstate'];
  return new QueryError(name, found.message(parameters), {
    code: found.code,
    sqlstate: typeof sqlstate === 'string' ? sqlstate : found.sqlstate,
    http: found.http,
    hint: found.hint(parameters),
    position,
    retryAfterSeconds: typeof retry === 'number' ? retry : null,
  });
}

export { InternalError };

export function assertNever(value: never): never {
  throw new InternalError(`unexpected ${JSON.stringify(value)}`);
}
