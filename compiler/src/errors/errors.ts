/** The single error catalogue. `docs/errors.md` lists it; a test checks that the two agree. */

import { SURFACE_PHRASES } from './surface-hints.js';
import { type CountClause, EVALUATION_FAULTS, literalHint, OUT_OF_RANGE } from './value-faults.js';

/** A broken invariant. It is logged in full; the caller sees only a request id. */
export class InternalError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InternalError';
  }
}

export interface ErrorEntry<P> {
  /** The stable public code. Several entries may share one; a retired code is never reused. */
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: (p: P) => string;
  readonly hint: (p: P) => string | null;
}

type NoParameters = Record<never, never>;

interface UnknownFunction {
  readonly signature: string;
  readonly near: string | null;
  /** The arguments that the function with that name takes. */
  readonly takes?: string;
}

interface NeededApproval {
  readonly relations: string;
  /** The approval request that was made; null if none was made because the caller stated no reason. */
  readonly requested: { readonly id: string; readonly url: string } | null;
}

interface InvalidLiteral {
  readonly type: string;
  /** The SQLSTATE that the database gives for the value, if not 22P02. */
  readonly sqlstate?: string;
  /** The number of the parameter that contained the value; absent or null if the value is in the text. */
  readonly parameter?: number | null;
}

function literalFault({ sqlstate }: InvalidLiteral): string {
  return OUT_OF_RANGE.has(sqlstate ?? '')
    ? 'the value is out of range for type'
    : 'invalid input syntax for type';
}

interface BudgetSpent {
  readonly budget: string;
  /** RFC 3339, UTC. */
  readonly renewsAt: string;
  readonly retryAfterSeconds: number;
}

const TASK_HINT =
  'name the task in header OSL-Task, with SET osl.task, or as `osl/task` in `_meta` of an MCP call; claim `osl_task` of the token comes first';

/**
 * A row of the catalogue: code, SQLSTATE, HTTP status, and a function that returns message and hint. The function's
 * parameter type declares the arguments needed to raise the error; a row without parameters is raised with `{}`.
 */
function row<P = NoParameters>(
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

/** Returns a hint with the name that the caller may have meant, quoted if necessary; null if `near` is null. */
function perhaps(near: string | null): string | null {
  return near === null ? null : `perhaps you meant \`${near}\``;
}

export const ERRORS = Object.freeze({
  // ---- syntax and unsupported SQL
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
    p.command === 'LISTEN' ? SURFACE_PHRASES.listen.rest : 'ask with SELECT',
  ]),
  temporaryTable: row('E0511', '25006', 400, () => [
    'temporary tables are not supported: OSL-SQL is read-only',
    'use a WITH query in the statement that reads it',
  ]),
  noStatement: row('E0511', '42601', 400, () => ['the query text is empty', 'send exactly one SELECT']),
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
    'split it into smaller statements, and write long lists of values as one IN list',
  ]),
  draftTooCostly: row('E0511', '54001', 400, (p: { what: string }) => [
    `the draft cannot be checked: ${p.what}`,
    `send it in smaller parts, or ${SURFACE_PHRASES.compile.rest}`,
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
    `the number at \`${p.pointer}\` has more digits than JSON numbers can hold exactly`,
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
    'qualify a column with a table alias; cast the arguments of a function or operator',
  ]),
  duplicateAlias: row('E0511', '42712', 400, (p: { alias: string }) => [
    `table name \`${p.alias}\` is given twice`,
    'give each FROM item its own alias',
  ]),
  grouping: row('E0511', '42803', 400, (p: { detail: string; hint?: string }) => [p.detail, p.hint ?? null]),
  windowing: row('E0511', '42P20', 400, (p: { detail: string; hint?: string }) => [p.detail, p.hint ?? null]),
  invalidLiteral: row('E0511', '22P02', 400, (p: InvalidLiteral) => [
    `${p.parameter == null ? '' : `parameter $${p.parameter}: `}${literalFault(p)} ${p.type}`,
    literalHint(p.type),
  ]),
  unknownZone: row('E0511', '22023', 400, () => [
    'the database knows no time zone of this name',
    "examples: 'Europe/Berlin', 'UTC', or an offset such as `interval '2 hours'`",
  ]),
  negativeCount: row('E0511', '2201W', 400, (p: { clause: CountClause; sqlstate: string }) => [
    `${p.clause} must not be negative`,
    `leave ${p.clause} out for ${p.clause === 'LIMIT' ? 'all rows' : 'none to be skipped'}`,
  ]),
  unknownLabel: row('E0511', '22P02', 400, (p: { type: string; label: string }) => [
    `invalid input value for enum ${p.type}: "${p.label}"`,
    'list its labels with `select * from pg_enum`',
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
    `table \`${p.table}\` is not on the allowlist of raw SQL`,
    perhaps(p.near),
  ]),
  mixedWorlds: row('E0513', '0A000', 400, () => [
    'a statement cannot mix entities and tables',
    'query entities with OSL-SQL and tables with raw SQL',
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
    `key \`${p.column}\` is masked for you, so it cannot be used to join`,
    'leave out the join, or request access to the unmasked key',
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
    'your access has changed since the statement was prepared: prepare it again',
  ]),

  // ---- publishing
  notServable: row('E1002', 'F0000', 422, (p: { fault: string; more: number }) => [
    `this change is invalid: ${p.fault}`,
    `${p.more > 0 ? `and ${p.more} more; ` : ''}${SURFACE_PHRASES.diagnostics.rest}`,
  ]),
  wrongState: row('E4090', '55000', 409, (p: { detail: string; hint: string | null }) => [p.detail, p.hint]),
  baseRequired: row('E4280', '22023', 428, (p: { current: string }) => [
    'the base version of this change is missing',
    `${SURFACE_PHRASES.base.rest}; what is served now is \`${p.current}\``,
  ]),
  baseChanged: row('E4120', '40001', 412, (p: { current: string }) => [
    'the base version of this change is outdated',
    `look at what changed, and judge it against \`${p.current}\``,
  ]),
  notPublishable: row('E2101', '42501', 403, (p: { what: string }) => [
    `publishing cannot change ${p.what}`,
    'change connectors, policy, endpoints and allowlists in their files',
  ]),
  authorsOnly: row('E2101', '42501', 403, () => [
    'only admins can publish',
    'the token must hold an admin role that policy.yaml allows to every subject in its chain, under `subjects.<name>.admin`',
  ]),
  operatorsOnly: row('E2101', '42501', 403, () => [
    'only admins can operate the server',
    'the token must hold an admin role that policy.yaml allows to every subject in its chain, under `subjects.<name>.admin`',
  ]),

  // ---- identity and policy
  invalidToken: row('E3001', '28000', 401, (p: { reason: string; hint?: string }) => [
    `the bearer token is not valid: ${p.reason}`,
    p.hint ?? 'get a new token; tokens expire after 300 s at most',
  ]),
  tokenUsed: row('E3001', '28000', 401, () => [
    'this token was already used for a change, or was issued before the server started',
    'get a new token for each change',
  ]),
  invalidCertificate: row('E3001', '28000', 401, (p: { reason: string }) => [
    `the client certificate is not accepted: ${p.reason}`,
    'send a token, or have the certificate mapped to a subject under `certificates` in policy.yaml',
  ]),
  missingToken: row('E2102', '28000', 403, () => [
    'no bearer token was sent; anonymous access is denied',
    SURFACE_PHRASES.token.rest,
  ]),
  noAccess: row('E2102', '42501', 403, () => [
    'the caller has no access to anything',
    'at least one role must be allowed to every subject of the chain, with a grant whose conditions hold now',
  ]),
  denied: row('E2101', '42501', 403, (p: { object: string }) => [`policy denies the use of \`${p.object}\``]),
  purposeDenied: row('E2101', '42501', 403, () => [
    'this purpose is not allowed by the policy or by the token',
    'use another purpose, or none',
  ]),
  noGlass: row('E2101', '42501', 403, () => [
    'you have no break-glass access',
    'the policy grants you no emergency access; it is never available when acting for somebody else',
  ]),
  notApprover: row('E2101', '42501', 403, () => [
    'you may not decide this approval request',
    'a person decides who has the role that the grant names, and who is not in the chain of the request',
  ]),
  approvalsFull: row('E4290', '53400', 429, (p: { limit: number; retryAfterSeconds: number }) => [
    `${p.limit} approval requests are open`,
    `wait until one is decided, or try again in ${p.retryAfterSeconds} s`,
  ]),
  approvalsUnavailable: row('E5036', '57P03', 503, () => [
    'the control database does not respond: nothing was changed',
    'try again; the decision may have been saved after all',
  ]),
  glassReason: row('E2104', '22023', 400, (p: { least: number; most: number }) => [
    `a break-glass reason must be ${p.least} to ${p.most} characters on one line`,
    'say what happened and for whom: the reason is recorded and sent to the policy owner',
  ]),
  glassSpent: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'you have used break-glass access as often as the policy allows in a day',
    `try again in ${p.retryAfterSeconds} s`,
  ]),
  adminOnly: row('E2101', '42501', 403, () => [
    'only admins can see the whole graph',
    SURFACE_PHRASES.governed.rest,
  ]),
  upstreamForAdmins: row('E2101', '42501', 403, () => [
    'only admins can see the SQL sent to the database',
    'leave out `upstream`, or use a token with an admin role that policy.yaml allows to every subject in its chain',
  ]),
  groupsOnly: row('E2103', '42501', 403, (p: { relation: string; detail: string; hint: string }) => [
    `rows of \`${p.relation}\` can only be read in aggregates: ${p.detail}`,
    p.hint,
  ]),
  decodeDenied: row('E2101', '42501', 403, (p: { facet: string; to: 'a language model' | 'a reranker' }) => [
    `policy does not let passages of \`${p.facet}\` be sent to ${p.to}`,
    'encoder operators (SIMILARITY, CLASSIFY, TAG, RANK, …) need no such permission',
  ]),
  noSnapshot: row('E2001', '57P03', 503, () => [
    'the policy is missing or invalid, so all queries are refused',
    "the gateway's log names the file and the fault for the operator",
  ]),
  rightsChanged: row('E2003', '55000', 409, () => [
    'your access changed while the query was running, so it was stopped',
    'run it again',
  ]),
  rateLimited: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'rate limit exceeded for this subject',
    `try again in ${p.retryAfterSeconds} s`,
  ]),
  budgetSpent: row('E4290', '53400', 429, (p: BudgetSpent) => [
    `a limit of the policy is used up: ${p.budget}`,
    `it renews at ${p.renewsAt}, in ${p.retryAfterSeconds} s`,
  ]),
  entitiesSpent: row('E4290', '53400', 429, (p: BudgetSpent) => [
    `the rest of this answer would exceed a limit of the policy: ${p.budget}`,
    `what was shown already can be shown again; it renews at ${p.renewsAt}, in ${p.retryAfterSeconds} s`,
  ]),
  addressLimited: row('E4290', '53400', 429, (p: { retryAfterSeconds: number }) => [
    'too many requests without a valid token from this address',
    `try again in ${p.retryAfterSeconds} s, or with a valid token, which has its own limit`,
  ]),

  tooManySubscriptions: row('E4290', '53400', 429, (p: { limit: number; retryAfterSeconds: number }) => [
    `this subject already has ${p.limit} subscriptions`,
    'end one of them; OSL_SUBJECT_SUBSCRIPTIONS sets the limit',
  ]),
  rerankBudget: row('E4290', '53400', 429, (p: { reranker: string; retryAfterSeconds: number }) => [
    `the daily budget of this subject for the reranker \`${p.reranker}\` is used up`,
    'it renews at midnight UTC; without `rerank` the query can run now',
  ]),

  // ---- execution
  /** `sqlstate` comes from the database. Its message is withheld because it could contain row values. */
  execution: row('E0510', 'XX000', 502, (_: { sqlstate: string }) => [
    'the database could not run the query',
  ]),
  evaluation: row('E0529', '22000', 400, ({ sqlstate }: { sqlstate: string }) => {
    return EVALUATION_FAULTS.get(sqlstate) ?? ['the query cannot be computed with one of its values'];
  }),
  /** `databaseDown` and the `source…` errors mention no names that the caller did not use; the operator's log does. */
  databaseDown: row('E0523', '08006', 502, () => [
    'the database of this query does not respond',
    "try again later, in a new transaction (idle ones end after 30 s); the server's log may have the cause",
  ]),
  sourceDenied: row('E0524', '42501', 502, (p: { objects: string }) => [
    `the gateway has no permission in the database to read the tables of ${p.objects}`,
    "your own access is fine: the operator has to GRANT access to the gateway's role; the server's log names the table",
  ]),
  sourceGone: row('E0525', '42703', 502, (p: { objects: string }) => [
    `a table or column of ${p.objects} no longer exists in the database`,
    "the operator has to correct the manifest or the database; the server's log names the table",
  ]),
  sourceChanged: row('E0526', '42804', 502, (p: { objects: string }) => [
    `a column of ${p.objects} has changed its type in the database`,
    "the operator has to correct the manifest or the database; the server's log names the table",
  ]),
  cancelled: row('E0516', '57014', 499, () => ['the statement was cancelled']),
  /** `seconds`: null if the session's own `statement_timeout` stopped the statement. */
  timedOut: row('E0517', '57014', 504, (p: { seconds: number | null }) => [
    p.seconds === null
      ? 'canceling statement due to statement timeout' // the wording of Postgres, which clients look for
      : `the statement ran longer than ${p.seconds} s and was stopped`,
    p.seconds === null ? null : 'read fewer rows, or add a filter',
  ]),
  rowCap: row('E0518', '54000', 400, (p: { limit: number }) => [
    `the result has more than ${p.limit} rows`,
    'add a LIMIT, or use a cursor',
  ]),
  stepCap: row('E0519', '54000', 400, (p: { what: string; limit: number; unit: string; hint: string }) => [
    `${p.what} has more than ${p.limit} ${p.unit}, and a partial answer would be wrong`,
    p.hint,
  ]),
  rowTooLarge: row('E0530', '54000', 400, (p: { limitMib: number }) => [
    `one row of the answer is larger than ${p.limitMib} MiB`,
    'select fewer columns, or parts of long values, as in left(value, 1000); OSL_MAX_ROW_MIB sets the limit',
  ]),
  costCap: row('E0527', '54001', 400, () => [
    'the estimated cost of this query exceeds the limit of your roles',
    'read fewer tables, or filter on a key',
  ]),
  formMissing: row('E0528', '0A000', 400, (p: { form: string }) => [
    `the database of this query does not support ${p.form}`,
    'write the query in another way',
  ]),
  shardsRefused: row('E0531', '0A000', 400, (p: { reason: string; hint: string }) => [
    `the database refused the query, which Citus cannot run over distributed tables: ${p.reason}`,
    p.hint,
  ]),
  invalidTask: row('E0532', '22023', 400, (p: { longest: number }) => [
    `the name of a task has 1 to ${p.longest} characters, none of them a control character`,
    TASK_HINT,
  ]),
  missingTask: row('E0532', '22023', 400, (p: { budget: string }) => [
    `a limit counts per task, and this request names none: ${p.budget}`,
    TASK_HINT,
  ]),
  notSubscribable: row('E0533', '0A000', 400, (p: { reason: string }) => [
    `changes of this query cannot be subscribed to: ${p.reason}`,
    'subscribe to the rows, or to count, sum of integers or numeric, min, max of whole numbers, texts and times',
  ]),
  uncountedEntities: row('E0536', '0A000', 400, (p: { entity: string; reason: string; budget: string }) => [
    `it cannot be told which \`${p.entity}\` this query shows, and a limit counts them: ${p.reason} (${p.budget})`,
    'select rows, or group by the primary key as well',
  ]),
  shadowRefused: row('E0534', '55000', 409, (p: { reason: string; hint: string }) => [
    `the shadow policy was not started: ${p.reason}`,
    p.hint,
  ]),
  overlap: row('E0537', '42501', 403, (p: { minimum: number }) => [
    `the answer, together with earlier ones, would show figures of fewer than ${p.minimum} members`,
    'repeat an earlier query, or choose other filters and groups',
  ]),
  overlapSpent: row('E0537', '53400', 429, (p: { until: string; retryAfterSeconds: number }) => [
    `the answers that can be compared with each other are used up until ${p.until}`,
    'repeat earlier queries',
  ]),
  overlapShape: row('E0537', '0A000', 400, (p: { what: string }) => [
    `the query cannot be compared with earlier ones, as the policy requires: it has ${p.what}`,
    'aggregate one relation, joined with its parents at most',
  ]),
  overlapUnknown: row('E0537', '57P03', 503, () => [
    'earlier answers, with which this one must be compared, cannot be read',
    "try again in a moment; the server's log has the cause",
  ]),
  needsApproval: row('E0535', '42501', 403, (p: NeededApproval) => [
    `this query needs a person's approval for ${p.relations}`,
    p.requested === null
      ? SURFACE_PHRASES.approval.rest
      : `requested as ${p.requested.id}, to be decided at ${p.requested.url}; then send the query again`,
  ]),
  noDecoder: row('E0521', '0A000', 503, (p: { operator: string }) => [
    `operator ${p.operator} needs a language model, and none is configured`,
    'encoder operators (SIMILARITY, CLASSIFY, TAG, RANK, …) need none; whoever runs the server can set OSL_CHAT_URL',
  ]),
  contentUnavailable: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the content of facet \`${p.facet}\` is unavailable: ${p.reason}`,
    'the operator can rebuild it with `osl index`',
  ]),
  modelUnavailable: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the embedding model of facet \`${p.facet}\` is unavailable: ${p.reason}`,
    'try again later; the operator should check the endpoint in `OSL_EMBEDDINGS_URL` and the model named by the facet',
  ]),
  rerankerUnavailable: row('E0522', '55000', 503, (p: { reranker: string; reason: string }) => [
    `the reranker \`${p.reranker}\` is unavailable: ${p.reason}`,
    'try again later, or without `rerank`; the operator should check its endpoint in the manifest',
  ]),
  storeClosed: row('E0522', '55000', 503, (p: { facet: string; reason: string }) => [
    `the content of facet \`${p.facet}\` cannot be served: the gateway ${p.reason}`,
    "the server's log names the variable that holds the credentials",
  ]),
  auditUnavailable: row('E5030', '57P03', 503, () => [
    'the audit log cannot be written, so all requests are refused',
  ]),
  auditUnreadable: row('E5037', '58030', 503, () => [
    'the audit log cannot be read, or reading it took too long',
    "the server's log has the cause; verify the audit log to see whether it is intact",
  ]),
  controlUnavailable: row('E5036', '57P03', 503, () => [
    'the control database does not respond: nothing was published',
    'try again; if the change was saved after all, the answer says that it is already published',
  ]),
  limitsUnknown: row('E5038', '57P03', 503, () => [
    'the store of shared rate limits has not responded since this gateway started',
    "try again in a moment; the server's log has the cause",
  ]),
  entitiesUnknown: row('E5038', '57P03', 503, () => [
    'a limit counts what this query shows, and the store of shared limits does not respond',
    "try again in a moment; the server's log has the cause",
  ]),
  overloaded: row('E5031', '53300', 503, (p: { retryAfterSeconds: number }) => [
    'the server is at capacity',
    `try again in ${p.retryAfterSeconds} s`,
  ]),
  answerMemory: row('E5039', '53200', 503, (p: { retryAfterSeconds: number }) => [
    'running queries use all the memory for answers, or yours use half of it',
    `try again in ${p.retryAfterSeconds} s, or read fewer rows; OSL_ANSWER_MEMORY_MIB sets the limit`,
  ]),
  issuerUnavailable: row('E5033', '57P03', 503, (p: { retryAfterSeconds: number }) => [
    "the keys of this token's issuer cannot be fetched now, so the token cannot be checked",
    `try again in ${p.retryAfterSeconds} s; the server's log has the cause`,
  ]),
  ownerUnreached: row('E5034', '08006', 503, () => [
    'the request is recorded, but the policy owner could not be notified',
    "try again later; the server's log has the cause",
  ]),
  shuttingDown: row('E5032', '57P01', 503, () => ['the server is shutting down']),
  internal: row('E5000', 'XX000', 500, () => [
    'something went wrong inside the gateway',
    "the server's log has the cause under this request ID",
  ]),

  // ---- HTTP
  notFound: row('E4040', '42704', 404, (p: { elsewhere?: string }) => [
    'there is nothing at this path',
    p.elsewhere ?? null,
  ]),
  noApproval: row('E4040', '42704', 404, () => [
    'there is no approval request with this id',
    'it may have ended',
  ]),
  noReceipt: row('E4040', '42704', 404, () => [
    'no receipt of yours has this request ID',
    'ask with `Prefer: receipt`, or after `SET osl.receipts = on`; its record can be proved a second later',
  ]),
  noSession: row('E4040', '42704', 404, () => [
    'no session and no running request has this ID',
    'list them again: it may have ended',
  ]),
  foreignOrigin: row('E4030', '28000', 403, () => [
    'this host or origin is not served here',
    'the operator can allow others with OSL_MCP_HOSTS and OSL_MCP_ORIGINS',
  ]),
  methodNotAllowed: row('E4050', '0A000', 405, (p: { allowed: string }) => [
    `this path answers ${p.allowed} only`,
  ]),
  noArrowValue: row('E4060', '22000', 406, (p: { column: string; what: string }) => [
    `column \`${p.column}\` holds ${p.what}, which its Arrow type cannot represent`,
    `select the column as text, leave such values out, or ${SURFACE_PHRASES.json.rest}`,
  ]),
  bodyTooLarge: row('E4130', '54000', 413, (p: { limit: number }) => [
    `the body is larger than ${p.limit} bytes`,
  ]),
  mediaType: row('E4150', '0A000', 415, () => ['the body must be application/json in UTF-8, not compressed']),
});

export type ErrorName = keyof typeof ERRORS;
export type ErrorParameters<N extends ErrorName> = (typeof ERRORS)[N] extends ErrorEntry<infer P> ? P : never;

/** A position in the caller's text. */
export interface Position {
  /** Offset in UTF-16 code units, from 0. */
  readonly offset: number;
  /** Line number, from 1. */
  readonly line: number;
  /** Column in UTF-16 code units, from 1. */
  readonly column: number;
}

/** Maximum length of a JSON Pointer in an error. A longer one would only repeat the caller's own long names. */
const LONGEST_POINTER = 1_000;

/** An error that the caller may see and can usually fix, unlike an `InternalError`. */
export class QueryError extends Error {
  readonly entry: ErrorName;
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly hint: string | null;
  readonly position: Position | null;
  /** JSON Pointer (RFC 6901) to the member of the request at fault; null if none is identified. */
  readonly pointer: string | null;
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
    this.pointer = fields.pointer ?? null;
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }

  /** Returns the same error at `position`, unless it already has one. */
  at(position: Position | null): QueryError {
    if (position === null || this.position !== null) return this;
    return new QueryError(this.entry, this.message, { ...this, position });
  }

  /** Returns the same error about the member at `pointer`, unless it already names one or the pointer is very long. */
  about(pointer: string): QueryError {
    if (this.pointer !== null || pointer.length > LONGEST_POINTER) return this;
    return new QueryError(this.entry, this.message, { ...this, pointer });
  }
}

export interface QueryErrorFields {
  readonly message: string;
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly hint: string | null;
  readonly position: Position | null;
  readonly pointer?: string | null;
  readonly retryAfterSeconds: number | null;
}

/** Creates the error of catalogue entry `name` with its typed parameters. */
export function queryError<N extends ErrorName>(
  name: N,
  parameters: ErrorParameters<N>,
  position: Position | null = null,
): QueryError {
  const found = ERRORS[name] as unknown as ErrorEntry<ErrorParameters<N>>; // one entry of the union, looked up by its key
  const given = parameters as Readonly<Record<string, unknown>>;
  const retry = given['retryAfterSeconds'];
  const sqlstate = given['sqlstate'];
  const pointer = given['pointer'];
  return new QueryError(name, found.message(parameters), {
    code: found.code,
    sqlstate: typeof sqlstate === 'string' ? sqlstate : found.sqlstate,
    http: found.http,
    hint: found.hint(parameters),
    position,
    pointer: typeof pointer === 'string' ? pointer : null,
    retryAfterSeconds: typeof retry === 'number' ? retry : null,
  });
}

/** Throws for a value that the types rule out. An object is shown by `kind` only: it may contain policy or literals. */
export function assertNever(value: never): never {
  const { kind } = Object(value) as { readonly kind?: unknown }; // any value can occur here at run time
  throw new InternalError(`unexpected ${typeof value === 'object' ? String(kind) : JSON.stringify(value)}`);
}
