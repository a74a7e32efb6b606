/** The one error catalogue. `docs/errors.md` lists it, and a test binds the two both ways. */

import { WAYS } from './surface-hints.js';

export interface ErrorEntry<P> {
  /** The stable public code. Several entries may share one; a retired code is never used again. */
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: (p: P) => string;
  readonly hint: (p: P) => string | null;
}

function entry<P>(e: ErrorEntry<P>): ErrorEntry<P> {
  return Object.freeze(e);
}

const none = (): null => null;
const perhaps = (near: string | null): string | null =>
  near === null ? null : `perhaps you meant \`${near}\``;
type Nothing = Record<never, never>;

export const ERRORS = Object.freeze({
  // ---- out of grammar
  syntax: entry<{ detail: string }>({
    code: 'E0511',
    sqlstate: '42601',
    http: 400,
    message: (p) => p.detail,
    hint: none,
  }),
  unsupported: entry<{ construct: string; hint: string | null }>({
    code: 'E0511',
    sqlstate: '0A000',
    http: 400,
    message: (p) => `${p.construct} is not part of OSL-SQL`,
    hint: (p) => p.hint,
  }),
  switchedOff: entry<{ construct: string; feature: string; hint: string }>({
    code: 'E0511',
    sqlstate: '0A000',
    http: 400,
    message: (p) => `${p.construct} is switched off here, by \`features.${p.feature}\` of the manifest`,
    hint: (p) => p.hint,
  }),
  readOnly: entry<{ command: string }>({
    code: 'E0511',
    sqlstate: '25006',
    http: 400,
    message: (p) => `cannot execute ${p.command}: OSL-SQL is read-only`,
    hint: () => 'ask with SELECT',
  }),
  noStatement: entry<Nothing>({
    code: 'E0511',
    sqlstate: '42601',
    http: 400,
    message: () => 'the text holds no statement',
    hint: () => 'send exactly one SELECT',
  }),
  oneStatement: entry<{ count: number }>({
    code: 'E0511',
    sqlstate: '42601',
    http: 400,
    message: (p) => `the text holds ${p.count} statements`,
    hint: () => 'send exactly one SELECT',
  }),
  tooLarge: entry<{ what: string; limit: number }>({
    code: 'E0511',
    sqlstate: '54000',
    http: 400,
    message: (p) => `${p.what} exceeds the limit of ${p.limit}`,
    hint: none,
  }),
  tooDeep: entry<Nothing>({
    code: 'E0511',
    sqlstate: '54001',
    http: 400,
    message: () => 'the statement is nested too deeply',
    hint: () => 'write long chains of OR as an IN list',
  }),
  tooComplex: entry<{ what: string; limit: number }>({
    code: 'E0511',
    sqlstate: '54001',
    http: 400,
    message: (p) => `the statement is too complex: ${p.what} exceeds the limit of ${p.limit}`,
    hint: () => 'ask in several smaller statements, and write long lists of values as one IN list',
  }),
  draftTooCostly: entry<{ what: string }>({
    code: 'E0511',
    sqlstate: '54001',
    http: 400,
    message: (p) => `the draft cannot be judged: ${p.what}`,
    hint: () => `send it in smaller parts, or ${WAYS.compile.rest}`,
  }),
  tooManyColumns: entry<{ what: string; limit: number }>({
    code: 'E0511',
    sqlstate: '54011',
    http: 400,
    message: (p) => `${p.what} can have at most ${p.limit} entries`,
    hint: () => 'name the columns that you need',
  }),
  malformedBody: entry<{ detail: string }>({
    code: 'E0511',
    sqlstate: '22023',
    http: 400,
    message: (p) => p.detail,
    hint: none,
  }),
  typeMismatch: entry<{ detail: string; hint: string | null }>({
    code: 'E0511',
    sqlstate: '42804',
    http: 400,
    message: (p) => p.detail,
    hint: (p) => p.hint,
  }),
  unknownFunction: entry<{ signature: string; near: string | null; takes?: string }>({
    code: 'E0511',
    sqlstate: '42883',
    http: 400,
    message: (p) => `function \`${p.signature}\` is not part of OSL-SQL`,
    hint: (p) => perhaps(p.near) ?? p.takes ?? null,
  }),
  unknownOperator: entry<{ signature: string }>({
    code: 'E0511',
    sqlstate: '42883',
    http: 400,
    message: (p) => `operator \`${p.signature}\` is not part of OSL-SQL`,
    hint: () => 'an explicit cast may help',
  }),
  unknownType: entry<{ type: string; near?: string | null }>({
    code: 'E0511',
    sqlstate: '42704',
    http: 400,
    message: (p) => `type \`${p.type}\` is not part of OSL-SQL`,
    hint: (p) => perhaps(p.near ?? null),
  }),
  ambiguous: entry<{ what: string; name: string }>({
    code: 'E0511',
    sqlstate: '42702',
    http: 400,
    message: (p) => `${p.what} \`${p.name}\` is ambiguous`,
    hint: () => 'qualify it with a table alias, or cast its arguments',
  }),
  duplicateAlias: entry<{ alias: string }>({
    code: 'E0511',
    sqlstate: '42712',
    http: 400,
    message: (p) => `table name \`${p.alias}\` is given twice`,
    hint: () => 'give each FROM item an alias of its own',
  }),
  grouping: entry<{ detail: string; hint?: string }>({
    code: 'E0511',
    sqlstate: '42803',
    http: 400,
    message: (p) => p.detail,
    hint: (p) => p.hint ?? null,
  }),
  windowing: entry<{ detail: string; hint?: string }>({
    code: 'E0511',
    sqlstate: '42P20',
    http: 400,
    message: (p) => p.detail,
    hint: (p) => p.hint ?? null,
  }),
  invalidLiteral: entry<{ type: string }>({
    code: 'E0511',
    sqlstate: '22P02',
    http: 400,
    message: (p) => `invalid input syntax for type ${p.type}`,
    hint: none,
  }),
  parameterType: entry<{ index: number }>({
    code: 'E0511',
    sqlstate: '42P18',
    http: 400,
    message: (p) => `could not determine the type of parameter $${p.index}`,
    hint: () => 'cast it, as in $1::text',
  }),
  declaredType: entry<{ index: number; type: string; cast: string | null }>({
    code: 'E0511',
    sqlstate: '42804',
    http: 400,
    message: (p) => `parameter $${p.index} is declared as \`${p.type}\`, which OSL-SQL does not compute with`,
    hint: (p) =>
      p.cast === null ? 'declare another type, or none' : `cast it, as in $${p.index}::${p.cast}`,
  }),
  parameterCount: entry<{ given: number; needed: number }>({
    code: 'E0511',
    sqlstate: '08P01',
    http: 400,
    message: (p) =>
      `the statement takes ${p.needed} ${p.needed === 1 ? 'parameter' : 'parameters'}, and ${p.given} came`,
    hint: none,
  }),

  // ---- names
  unknownRelation: entry<{ relation: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42P01',
    http: 400,
    message: (p) => `object \`${p.relation}\` is not declared`,
    hint: (p) => perhaps(p.near),
  }),
  unknownColumn: entry<{ column: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42703',
    http: 400,
    message: (p) => `column \`${p.column}\` is not declared`,
    hint: (p) => perhaps(p.near),
  }),
  unknownAlias: entry<{ alias: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42P01',
    http: 400,
    message: (p) => `there is no FROM item \`${p.alias}\` here`,
    hint: (p) => perhaps(p.near),
  }),
  unknownMetric: entry<{ metric: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42704',
    http: 400,
    message: (p) => `metric \`${p.metric}\` is not declared`,
    hint: (p) => perhaps(p.near),
  }),
  outsideAllowlist: entry<{ table: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42501',
    http: 403,
    message: (p) => `table \`${p.table}\` is outside the allowlist of raw SQL`,
    hint: (p) => perhaps(p.near),
  }),
  mixedWorlds: entry<Nothing>({
    code: 'E0513',
    sqlstate: '0A000',
    http: 400,
    message: () => 'a statement names entities or tables, never both',
    hint: () => 'ask about entities in OSL-SQL, and about tables in raw SQL',
  }),
  unknownDimension: entry<{ dimension: string; near: string | null }>({
    code: 'E0512',
    sqlstate: '42703',
    http: 400,
    message: (p) => `dimension \`${p.dimension}\` is not declared`,
    hint: (p) => perhaps(p.near),
  }),
  mixedBody: entry<Nothing>({
    code: 'E0513',
    sqlstate: '22023',
    http: 400,
    message: () => 'the body must have exactly one of `osql`, `sql` and `metrics`',
    hint: none,
  }),
  unsealedJoin: entry<{ detail: string; hint: string | null }>({
    code: 'E0514',
    sqlstate: '42P10',
    http: 400,
    message: (p) => p.detail,
    hint: (p) => p.hint,
  }),
  keyNotClear: entry<{ column: string }>({
    code: 'E0515',
    sqlstate: '42501',
    http: 403,
    message: (p) => `key \`${p.column}\` is not readable in the clear, so it cannot be joined`,
    hint: none,
  }),
  emptySql: entry<Nothing>({
    code: 'E0246',
    sqlstate: '42601',
    http: 400,
    message: () => "the body's `sql` is empty",
    hint: none,
  }),
  unknownFacet: entry<{ facet: string; near?: string | null }>({
    code: 'E0241',
    sqlstate: '42704',
    http: 400,
    message: (p) => `facet \`${p.facet}\` is not declared`,
    hint: (p) => perhaps(p.near ?? null),
  }),
  unknownModel: entry<{ model: string; near: string | null }>({
    code: 'E0254',
    sqlstate: '42P01',
    http: 400,
    message: (p) => `model \`${p.model}\` is not declared`,
    hint: (p) => perhaps(p.near),
  }),
  unresolvable: entry<{ detail: string; hint: string | null }>({
    code: 'E1001',
    sqlstate: '0A000',
    http: 422,
    message: (p) => p.detail,
    hint: (p) => p.hint,
  }),
  planChanged: entry<Nothing>({
    code: 'E1001',
    sqlstate: '0A000',
    http: 422,
    message: () => 'cached plan must not change result type',
    hint: () => 'what this session may see has changed since the statement was prepared: prepare it again',
  }),

  // ---- publishing
  notServable: entry<{ fault: string; more: number }>({
    code: 'E1002',
    sqlstate: 'F0000',
    http: 422,
    message: (p) => `with this nothing could be served: ${p.fault}`,
    hint: (p) => `${p.more > 0 ? `and ${p.more} more; ` : ''}${WAYS.diagnostics.rest}`,
  }),
  wrongState: entry<{ detail: string; hint: string | null }>({
    code: 'E4090',
    sqlstate: '55000',
    http: 409,
    message: (p) => p.detail,
    hint: (p) => p.hint,
  }),
  baseRequired: entry<{ current: string }>({
    code: 'E4280',
    sqlstate: '22023',
    http: 428,
    message: () => 'it is not said which version this change was made for',
    hint: (p) => `${WAYS.base.rest}; what is served now is \`${p.current}\``,
  }),
  baseChanged: entry<{ current: string }>({
    code: 'E4120',
    sqlstate: '40001',
    http: 412,
    message: () => 'this change was made for a version that is no longer served',
    hint: (p) => `look at what changed, and judge it against \`${p.current}\``,
  }),
  notPublishable: entry<{ what: string }>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: (p) => `publishing cannot change ${p.what}`,
    hint: () => 'connectors, policy, endpoints and allowlists are changed in their files',
  }),
  authorsOnly: entry<Nothing>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: () => 'what is served is authored by admins only',
    hint: () =>
      'an admin role must be in the token, and below the admin ceiling of every subject in its chain',
  }),

  // ---- identity and policy
  invalidToken: entry<{ reason: string }>({
    code: 'E3001',
    sqlstate: '28000',
    http: 401,
    message: (p) => `the bearer token is not valid: ${p.reason}`,
    hint: () => 'get a new token; tokens live 300 s at most',
  }),
  missingToken: entry<Nothing>({
    code: 'E2102',
    sqlstate: '28000',
    http: 403,
    message: () => 'no bearer token was sent, and access is denied by default',
    hint: () => WAYS.token.rest,
  }),
  noAccess: entry<Nothing>({
    code: 'E2102',
    sqlstate: '42501',
    http: 403,
    message: () => 'the caller has no access to anything',
    hint: () =>
      'the roles of the token and the ceiling of every subject in its chain must have one in common',
  }),
  denied: entry<{ object: string }>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: (p) => `policy denies the use of \`${p.object}\``,
    hint: none,
  }),
  adminOnly: entry<Nothing>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: () => 'all of the graph is shown to admins only',
    hint: () => WAYS.governed.rest,
  }),
  upstreamForAdmins: entry<Nothing>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: () => 'what goes to the database is shown to admins only',
    hint: () => 'leave out `upstream`; an admin role must be below the ceiling of every subject in the chain',
  }),
  groupsOnly: entry<{ relation: string; detail: string }>({
    code: 'E2103',
    sqlstate: '42501',
    http: 403,
    message: (p) => `rows of \`${p.relation}\` are for aggregates only: ${p.detail}`,
    hint: () => 'ask for count, sum or avg of columns, over groups that are large enough',
  }),
  decodeDenied: entry<{ facet: string }>({
    code: 'E2101',
    sqlstate: '42501',
    http: 403,
    message: (p) => `policy does not let passages of \`${p.facet}\` be sent to a language model`,
    hint: () => 'encoder operators (SIMILARITY, CLASSIFY, TAG, RANK, …) need no such permission',
  }),
  noSnapshot: entry<Nothing>({
    code: 'E2001',
    sqlstate: '57P03',
    http: 503,
    message: () => 'no policy snapshot is loaded, so everything is refused',
    hint: none,
  }),
  rateLimited: entry<{ retryAfterSeconds: number }>({
    code: 'E4290',
    sqlstate: '53400',
    http: 429,
    message: () => 'the rate limit of this subject is exceeded',
    hint: (p) => `try again in ${p.retryAfterSeconds} s`,
  }),

  // ---- running it
  execution: entry<{ sqlstate: string }>({
    code: 'E0510',
    sqlstate: 'XX000',
    http: 502,
    message: (p) => EXECUTION_MESSAGES.get(p.sqlstate) ?? 'the database could not run the query',
    hint: none,
  }),
  /** The three below name only what the caller named; the operator's log has the tables. */
  databaseDown: entry<Nothing>({
    code: 'E0523',
    sqlstate: '08006',
    http: 502,
    message: () => 'the database of this question does not answer',
    hint: () => "ask again later; the server's log has the cause",
  }),
  sourceDenied: entry<{ objects: string }>({
    code: 'E0524',
    sqlstate: '42501',
    http: 502,
    message: (p) => `the database does not let the gateway read what ${p.objects} rests on`,
    hint: () =>
      "no grant of yours is missing: the operator mends it with GRANT; the server's log names the table",
  }),
  sourceGone: entry<{ objects: string }>({
    code: 'E0525',
    sqlstate: '42703',
    http: 502,
    message: (p) => `a table or column that ${p.objects} rests on is gone from the database`,
    hint: () => "the operator mends the manifest or the database; the server's log names the table",
  }),
  sourceChanged: entry<{ objects: string }>({
    code: 'E0526',
    sqlstate: '42804',
    http: 502,
    message: (p) => `a column that ${p.objects} rests on has another type now in the database`,
    hint: () => "the operator mends the manifest or the database; the server's log names the table",
  }),
  cancelled: entry<Nothing>({
    code: 'E0516',
    sqlstate: '57014',
    http: 499,
    message: () => 'the statement was cancelled',
    hint: none,
  }),
  /** `seconds`: null where the session's own `statement_timeout` stopped it. */
  timedOut: entry<{ seconds: number | null }>({
    code: 'E0517',
    sqlstate: '57014',
    http: 504,
    message: (p) =>
      p.seconds === null
        ? 'canceling statement due to statement timeout' // in Postgres' words, which clients look for
        : `the statement ran longer than ${p.seconds} s and was stopped`,
    hint: (p) => (p.seconds === null ? null : 'ask for less, or filter more'),
  }),
  rowCap: entry<{ limit: number }>({
    code: 'E0518',
    sqlstate: '54000',
    http: 400,
    message: (p) => `the result has more than ${p.limit} rows`,
    hint: () => 'add a LIMIT, or use a cursor',
  }),
  stepCap: entry<{ what: string; limit: number; unit: string; hint: string }>({
    code: 'E0519',
    sqlstate: '54000',
    http: 400,
    message: (p) =>
      `${p.what} has more than ${p.limit} ${p.unit}, and without the rest the answer would be wrong`,
    hint: (p) => p.hint,
  }),
  noDecoder: entry<{ operator: string }>({
    code: 'E0521',
    sqlstate: '0A000',
    http: 503,
    message: (p) => `operator ${p.operator} needs a language model, and none is configured`,
    hint: none,
  }),
  contentUnavailable: entry<{ facet: string; reason: string }>({
    code: 'E0522',
    sqlstate: '55000',
    http: 503,
    message: (p) => `the content of facet \`${p.facet}\` cannot be served: ${p.reason}`,
    hint: () => 'the operator can mend it with `osl index`',
  }),
  storeClosed: entry<{ facet: string; reason: string }>({
    code: 'E0522',
    sqlstate: '55000',
    http: 503,
    message: (p) => `the content of facet \`${p.facet}\` cannot be served: the gateway ${p.reason}`,
    hint: () => "the operator can mend it: the server's log names the variable that holds the credentials",
  }),
  auditUnavailable: entry<Nothing>({
    code: 'E5030',
    sqlstate: '57P03',
    http: 503,
    message: () => 'the audit log cannot be written, so everything is refused',
    hint: none,
  }),
  overloaded: entry<{ retryAfterSeconds: number }>({
    code: 'E5031',
    sqlstate: '53300',
    http: 503,
    message: () => 'the server is at its capacity',
    hint: (p) => `try again in ${p.retryAfterSeconds} s`,
  }),
  shuttingDown: entry<Nothing>({
    code: 'E5032',
    sqlstate: '57P01',
    http: 503,
    message: () => 'the server is shutting down',
    hint: none,
  }),
  internal: entry<Nothing>({
    code: 'E5000',
    sqlstate: 'XX000',
    http: 500,
    message: () => 'something went wrong inside the gateway',
    hint: () => "the server's log has the cause under this request id",
  }),

  // ---- HTTP
  notFound: entry<Nothing>({
    code: 'E4040',
    sqlstate: '42704',
    http: 404,
    message: () => 'there is nothing at this path',
    hint: none,
  }),
  foreignOrigin: entry<Nothing>({
    code: 'E4030',
    sqlstate: '28000',
    http: 403,
    message: () => 'this host or origin is not served here',
    hint: () => 'the operator names others with OSL_MCP_HOSTS and OSL_MCP_ORIGINS',
  }),
  methodNotAllowed: entry<{ allowed: string }>({
    code: 'E4050',
    sqlstate: '0A000',
    http: 405,
    message: (p) => `this path answers ${p.allowed} only`,
    hint: none,
  }),
  noArrowValue: entry<{ column: string; what: string }>({
    code: 'E4060',
    sqlstate: '22000',
    http: 406,
    message: (p) => `column \`${p.column}\` holds ${p.what}, which Arrow cannot carry in its type`,
    hint: () => `select the column as text, leave such values out, or ${WAYS.json.rest}`,
  }),
  bodyTooLarge: entry<{ limit: number }>({
    code: 'E4130',
    sqlstate: '54000',
    http: 413,
    message: (p) => `the body is larger than ${p.limit} bytes`,
    hint: none,
  }),
  mediaType: entry<Nothing>({
    code: 'E4150',
    sqlstate: '0A000',
    http: 415,
    message: () => 'the body must be application/json',
    hint: none,
  }),
});

/** What a caller is told of an upstream failure: by SQLSTATE, never the upstream's own words. */
const EXECUTION_MESSAGES: ReadonlyMap<string, string> = new Map([
  ['22012', 'division by zero'],
  ['22003', 'a number is out of range'],
  ['22P02', 'a value has not the form of its type'],
  ['22007', 'a date or time has not the form of its type'],
  ['22008', 'a date or time is out of range'],
  ['2201B', 'a regular expression is not valid'],
  ['2201E', 'the argument of a logarithm is out of range'],
  ['2201F', 'the argument of a power is out of range'],
  ['21000', 'a subquery used as a value returned more than one row'],
]);

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
  const upstream = given['sqlstate'];
  return new QueryError(name, found.message(parameters), {
    code: found.code,
    sqlstate: name === 'execution' && typeof upstream === 'string' ? upstream : found.sqlstate,
    http: found.http,
    hint: found.hint(parameters),
    position,
    retryAfterSeconds: typeof retry === 'number' ? retry : null,
  });
}

/** A broken invariant of ours. Logged whole; the caller sees a request id. */
export class InternalError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InternalError';
  }
}

export function assertNever(value: never): never {
  throw new InternalError(`unexpected ${JSON.stringify(value)}`);
}
