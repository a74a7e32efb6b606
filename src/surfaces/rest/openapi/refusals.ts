import { ERRORS, type ErrorName } from 'osl-compiler';
import { PROBLEM_REF } from './components.js';

const STATUS_DESCRIPTIONS: ReadonlyMap<number, string> = new Map([
  [400, 'Invalid request or query'],
  [401, 'The token is not valid'],
  [403, 'No token, no access, or denied'],
  [404, 'Not found'],
  [406, 'A value that Arrow cannot represent, such as an infinite date'],
  [409, 'Wrong state for this request, or ended by a change of rights'],
  [412, 'A different version is being served'],
  [413, 'The body is too large'],
  [415, 'The body is not JSON'],
  [422, 'Valid, but not resolvable'],
  [428, 'No base version given'],
  [429, 'Limit exceeded (see `Retry-After`)'],
  [499, 'Cancelled'],
  [500, 'Internal error, shown only as a request ID'],
  [502, 'The database did not run the query'],
  [503, 'Temporarily unavailable, or not available on this server'],
  [504, 'Timed out'],
]);

type RefusalStage =
  | 'http'
  | 'path'
  | 'token'
  | 'access'
  | 'emergency'
  | 'limit'
  | 'body'
  | 'question'
  | 'running'
  | 'encoding'
  | 'sample'
  | 'whole graph'
  | 'upstream'
  | 'authoring'
  | 'draft'
  | 'publishing'
  | 'asking the owner'
  | 'approval'
  | 'operating'
  | 'receipt'
  | 'subscription'
  | 'mcp';

/** The stage at which each error of the catalogue occurs. An error missing here is a compile error. */
const STAGE_OF = {
  overlap: 'running',
  overlapSpent: 'running',
  overlapShape: 'running',
  overlapUnknown: 'running',
  syntax: 'question',
  unsupported: 'question',
  switchedOff: 'question',
  readOnly: 'question',
  temporaryTable: 'question',
  noStatement: 'question',
  oneStatement: 'question',
  tooLarge: 'http',
  tooDeep: 'body',
  tooComplex: 'question',
  draftTooCostly: 'authoring',
  tooManyColumns: 'question',
  malformedBody: 'http',
  inexactNumber: 'body',
  typeMismatch: 'question',
  unknownFunction: 'question',
  unknownOperator: 'question',
  unknownType: 'question',
  ambiguous: 'question',
  duplicateAlias: 'question',
  grouping: 'question',
  windowing: 'question',
  invalidLiteral: 'running',
  unknownZone: 'running',
  negativeCount: 'running',
  unknownLabel: 'question',
  parameterType: 'question',
  declaredType: 'question',
  parameterCount: 'question',
  unknownRelation: 'question',
  unknownColumn: 'question',
  unknownAlias: 'question',
  unknownMetric: 'question',
  outsideAllowlist: 'question',
  mixedWorlds: 'question',
  unknownDimension: 'question',
  mixedBody: 'question',
  unsealedJoin: 'question',
  keyNotClear: 'question',
  emptySql: 'question',
  unknownFacet: 'question',
  unknownModel: 'sample',
  unresolvable: 'question',
  planChanged: 'question',
  notServable: 'publishing',
  wrongState: 'draft',
  baseRequired: 'publishing',
  baseChanged: 'publishing',
  notPublishable: 'draft',
  authorsOnly: 'authoring',
  operatorsOnly: 'operating',
  invalidToken: 'token',
  invalidCertificate: 'token',
  tokenUsed: 'publishing',
  missingToken: 'access',
  noAccess: 'access',
  denied: 'question',
  purposeDenied: 'access',
  needsApproval: 'question',
  notApprover: 'approval',
  noApproval: 'approval',
  approvalsFull: 'approval',
  approvalsUnavailable: 'approval',
  noGlass: 'emergency',
  glassReason: 'emergency',
  glassSpent: 'emergency',
  adminOnly: 'whole graph',
  upstreamForAdmins: 'upstream',
  groupsOnly: 'question',
  decodeDenied: 'question',
  noSnapshot: 'access',
  rightsChanged: 'running',
  limitsUnknown: 'limit',
  rateLimited: 'limit',
  budgetSpent: 'limit',
  entitiesSpent: 'running',
  entitiesUnknown: 'running',
  uncountedEntities: 'question',
  invalidTask: 'limit',
  missingTask: 'limit',
  addressLimited: 'limit',
  tooManySubscriptions: 'subscription',
  rerankBudget: 'running',
  execution: 'running',
  evaluation: 'running',
  databaseDown: 'running',
  sourceDenied: 'running',
  sourceGone: 'running',
  sourceChanged: 'running',
  cancelled: 'running',
  timedOut: 'running',
  rowCap: 'running',
  stepCap: 'running',
  rowTooLarge: 'running',
  costCap: 'running',
  formMissing: 'running',
  shardsRefused: 'running',
  notSubscribable: 'subscription',
  noDecoder: 'question',
  contentUnavailable: 'running',
  modelUnavailable: 'running',
  rerankerUnavailable: 'running',
  storeClosed: 'running',
  auditUnavailable: 'http',
  auditUnreadable: 'operating',
  controlUnavailable: 'publishing',
  overloaded: 'running',
  answerMemory: 'running',
  issuerUnavailable: 'token',
  ownerUnreached: 'asking the owner',
  shuttingDown: 'http',
  internal: 'http',
  notFound: 'path',
  noSession: 'operating',
  shadowRefused: 'operating',
  noReceipt: 'receipt',
  foreignOrigin: 'mcp',
  methodNotAllowed: 'path',
  noArrowValue: 'encoding',
  bodyTooLarge: 'body',
  mediaType: 'body',
} satisfies Record<ErrorName, RefusalStage>;

const ALL_ERRORS = Object.keys(STAGE_OF) as readonly ErrorName[]; // cast: the object is a literal with exactly these keys

export const UNAUTHENTICATED: readonly RefusalStage[] = ['http', 'limit', 'token'];
export const ANY_CALL: readonly RefusalStage[] = [...UNAUTHENTICATED, 'access', 'emergency'];
export const QUESTION: readonly RefusalStage[] = ['question', 'running'];

export function problem(description: string) {
  return { description, content: { 'application/problem+json': { schema: PROBLEM_REF } } };
}

/**
 * Builds the error responses by HTTP status. Each lists the codes of the errors selected by `selection`: all errors of a
 * stage, or a single error.
 */
export function refusals(
  ...selection: readonly (RefusalStage | ErrorName)[]
): Readonly<Record<string, ReturnType<typeof problem>>> {
  const codes = new Map<number, Set<string>>();
  for (const name of ALL_ERRORS) {
    if (!selection.includes(name) && !selection.includes(STAGE_OF[name])) continue;
    const { http, code } = ERRORS[name];
    codes.set(http, (codes.get(http) ?? new Set()).add(code));
  }
  const statuses = [...codes].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([http, codesOfStatus]) => [
      http,
      problem(`${STATUS_DESCRIPTIONS.get(http) ?? ''}: ${[...codesOfStatus].sort().join(', ')}.`),
    ]),
  );
}
