import { SPAN_NAMES } from '../../ask/operating/history/history.js';
import type { EFFECTS } from '../../ask/shadow/shadow-report.js';
import { VISIBILITIES } from '../../model/graph/index.js';
import { PROBLEM } from '../rest/problem.js';
import {
  count,
  flag,
  type JsonShape,
  list,
  object,
  oneOf,
  orNull,
  ref,
  text,
  textOrNull,
} from '../rest/shape.js';
import { DECISIONS, KINDS, OUTCOMES, SURFACES } from './requests.js';

/** JSON schemas of the admin listener's responses. `npm run client` generates the console's types from them. */

export const REQUEST_ID = text('ID of this request, also in the audit log.');
const VERSIONS = object({ manifest: text(), policy: text() });
const NUMBER: JsonShape<number> = { type: 'number' };
const VISIBILITY = ref('Sight');
const NEXT = textOrNull('Value of `from` for the next page; null on the last page.');
const PROCESS = text('Name of the process, such as `server` or `worker 2`.');
const ANY_OBJECT: JsonShape<object> = { type: 'object' };
const NUMBERS_BY_NAME: JsonShape<object> = { type: 'object', additionalProperties: NUMBER };

const SESSION_VIEW = object({
  id: text('ID by which to cancel or end it: process ID of a Postgres session, or request ID.'),
  process: PROCESS,
  surface: oneOf('wire', 'rest', 'mcp'),
  user: textOrNull('Postgres user; null for HTTP.'),
  subject: textOrNull('Subject of the caller; null before authentication.'),
  chain: list(text()),
  token_id: textOrNull('ID to revoke the current token of the session; null before authentication.'),
  application: textOrNull(),
  since: text('Start of the session or request, RFC 3339 in UTC.'),
  state: text('State, with the values of `pg_stat_activity`.'),
  state_since: text(),
  shape: textOrNull('Running statement, without literals and undeclared names; null if there is none.'),
  fingerprint: textOrNull('Fingerprint of the shape; null if there is none.'),
  objects: list(text()),
});

const POOL_VIEW = object({
  process: PROCESS,
  connector: text(),
  purpose: oneOf('questions', 'short', 'system'),
  standby: textOrNull('Name of the standby that the sessions are with; null for the primary.'),
  size: count(),
  open: count(),
  running: count(),
  waiting: count(),
  reach: oneOf('open', 'full', 'lost'),
});

const CACHE_VIEW = object({
  process: PROCESS,
  cache: text(),
  entries: count(),
  bytes: count(),
  hits: count(),
  misses: count(),
});

const STEPS = list(orNull(NUMBER));

const HISTORY = object({
  request_id: REQUEST_ID,
  span: oneOf(...SPAN_NAMES),
  from: text('Start of the first step, RFC 3339 in UTC; less than the span ago if the server began later.'),
  every_seconds: count('Length of a step. Each list has one value per step; null: not sampled, or no query.'),
  lines: list(
    object({
      name: textOrNull('Surface or connector; null for everything, or for queries without a connector.'),
      questions: list(orNull(NUMBER), 'Queries that were run, in the step in which they ended.'),
      refused: STEPS,
      failed: STEPS,
      cancelled: STEPS,
      p50_ms: list(orNull(NUMBER), 'Half of the queries took at most this long, in milliseconds.'),
      p95_ms: STEPS,
      p99_ms: STEPS,
    }),
  ),
  pools: list(
    object({
      connector: text(),
      running: list(orNull(NUMBER), 'Highest number of running statements, sampled each second.'),
      waiting: list(orNull(NUMBER), 'Highest number of requests that waited for a database session.'),
      size: STEPS,
    }),
  ),
  audit_waiting: list(orNull(NUMBER), 'Highest number of audit records that were not yet durable.'),
  memory_bytes: list(orNull(NUMBER), 'Resident memory of the processes that serve.'),
  wire_sessions: STEPS,
});

const SLOW_STATEMENT = object({
  process: PROCESS,
  request_id: text('ID of the request that was slow.'),
  at: text('End of the request, RFC 3339 in UTC.'),
  duration_ms: NUMBER,
  surface: oneOf(...SURFACES),
  action: text(),
  form: textOrNull(),
  objects: list(text()),
  outcome: oneOf(...OUTCOMES, 'refused'),
  code: textOrNull(),
  rows: count(),
  shape: text('Statement, without literals and undeclared names.'),
  fingerprint: text('Fingerprint of the shape.'),
});

const PROCESS_VIEW = object({
  process: PROCESS,
  pid: count(),
  since: text(),
  draining: flag('True while the process accepts no new sessions and is not ready.'),
  manifest: text(),
  policy: textOrNull('Version of the policy in force; null if there is none.'),
  policy_kept_until: textOrNull(
    'Time, RFC 3339 in UTC, until which the last valid policy stays in force because the newest is missing or invalid; otherwise null.',
  ),
  policy_fault: textOrNull('Error in the newest policy, with its position; null if that policy is in force.'),
  audit: object({
    records: count(),
    waiting: count('Records not yet durable.'),
    unanchored: count('Records not yet covered by a signed checkpoint.'),
    failing: textOrNull(),
  }),
  sessions: count(),
  out_of_service: list(text()),
});

export const REVOCATION = {
  id: text(),
  kind: oneOf('token', 'subject'),
  name: text('ID of the token, or name of the subject.'),
  at: text('Time of the revocation, RFC 3339 in UTC. For a subject, tokens issued up to then are revoked.'),
  until: text('Time, RFC 3339 in UTC, by which all revoked tokens have expired.'),
};

const MATRIX_ROW = object({
  object: text(),
  column: text(),
  label: textOrNull(),
  sees: list(VISIBILITY),
  some_rows: list(flag(), 'True for subjects who see the column only in the rows that a row filter selects.'),
});

const MATRIX_PAGE = object({
  request_id: REQUEST_ID,
  subjects: list(list(text()), 'Delegation chains, root first; usually of a single subject.'),
  next_subject: textOrNull('Value of `after` for the next page; null on the last page.'),
  subject_count: count('Number of subjects whose name matches.'),
  rows: list(ref('MatrixRow')),
  row_count: count('Number of columns whose name matches.'),
  versions: VERSIONS,
});

const OFFER = object({
  declared: flag(),
  sees: VISIBILITY,
  roles: list(
    object({ role: text(), sees: VISIBILITY, also: object({ count: count(), first: list(text()) }) }),
  ),
  grant: orNull(ANY_OBJECT),
});

const ACCESS_REQUEST_VIEW = object({
  request_id: text(),
  at: text(),
  subject: textOrNull(),
  chain: list(text()),
  object: textOrNull('Requested object; null if no object had that name.'),
  offer: { anyOf: [ref('Offer'), { type: 'null' }] },
});

const AUDIT_RECORD = object(
  {
    ts: text(),
    kind: oneOf(...KINDS),
    request_id: text(),
    tenant: text(),
    subject: textOrNull(),
    chain: list(text()),
    surface: oneOf(...SURFACES),
    action: text(),
    form: textOrNull(),
    objects: list(text()),
    objects_omitted: count(),
    decision: orNull(oneOf(...DECISIONS)),
    code: textOrNull(),
    outcome: orNull(oneOf(...OUTCOMES)),
    rows: orNull(count()),
    duration_us: orNull(count()),
    'plan?': text(),
    'standby?': object({ as_of: text(), name: text() }),
    'detail?': text(),
    versions: orNull(object({ manifest: textOrNull(), policy: textOrNull() })),
    statement_hmac: textOrNull(),
    writer: text(),
    epoch: count(),
    seq: count(),
  },
  'A record as stored in the log.',
);

const RECORD_PROOF = object({
  seq: count(),
  text: text(),
  verifier_key: text('Public key that verifies the proof, as stored beside the log.'),
});

const JOB = {
  request_id: REQUEST_ID,
  state: oneOf('none', 'never', 'running', 'done', 'failed'),
  began_at: textOrNull(),
  ended_at: textOrNull(),
  by: textOrNull('Subject that started the job; null if it never ran.'),
  progress: orNull(NUMBERS_BY_NAME),
  why: textOrNull('Reason why the job failed (`failed`) or cannot run (`none`); otherwise null.'),
};

const CHAIN_VERDICT = object({
  chain: text(),
  verifier_key: textOrNull(),
  integrity: oneOf('intact', 'damaged'),
  completeness: oneOf('complete', 'incomplete', 'unknown'),
  anchor: orNull(object({ size: count(), time: textOrNull(), ageMs: orNull(NUMBER) })),
  records: count(),
  kept: orNull(object({ from: count(), since: textOrNull() })),
  unanchored: count(),
  recovered: list(object({ epoch: count(), from: count(), to: count() })),
  openDecisions: count(),
  tornBytes: count(),
  sync: oneOf('disk', 'kernel'),
  problem: orNull(object({ kind: text(), segment: text(), offset: count(), seq: count(), message: text() })),
});

const VERIFICATION_JOB = object({
  ...JOB,
  result: orNull(object({ ok: flag(), chains: list(ref('ChainVerdict')) })),
});

const POLICY_TESTS_JOB = object({
  ...JOB,
  result: orNull(
    object({
      ok: flag(),
      results: list(object({ name: text(), ok: flag(), faults: list(text()) })),
      coverage: orNull(
        object({
          changes: count(),
          held: count(),
          unheld: list(object({ rule: text(), change: text() })),
        }),
      ),
      claims: list(
        object({ name: text(), verdict: oneOf('proved', 'refuted', 'unknown'), shows: list(text()) }),
      ),
      tested: object({ manifest: text(), policy: textOrNull() }),
    }),
  ),
});

const FORM_LATENCY = object({
  form: text(),
  surface: text(),
  count: count(),
  sum: NUMBER,
  buckets: list(object({ le: orNull(NUMBER), count: count() })),
});

const FIGURES = object({
  request_id: REQUEST_ID,
  latency: list(
    ref('FormLatency'),
    'Latency of allowed requests in seconds, as histograms by form and surface.',
  ),
  stages: list(object({ stage: text(), count: count(), sum: NUMBER })),
  requests: list(object({ decision: text(), outcome: text(), count: count() })),
  refusals: list(object({ code: text(), count: count() })),
  lineage: list(
    object({
      endpoint: text(),
      pending: count(),
      dead: count(),
      delivered: count(),
      failed: count(),
      dropped: count(),
      disabled: flag(),
    }),
  ),
  lineage_lag: orNull(count()),
  workers: orNull(object({ wanted: count(), serving: count(), replaced: count() })),
  wire_sessions: count(),
});

const QUOTA_VIEW = object({
  name: text('The name in the policy, or the place there.'),
  bucket: text(),
  unit: oneOf('requests', 'rows', 'bytes', 'ms', 'cost', 'tokens', 'entities'),
  most: count(),
  per: oneOf('second', 'minute', 'hour', 'day', 'task'),
  window_seconds: NUMBER,
  role: textOrNull(),
  each: orNull(oneOf('subject', 'chain')),
  whose: textOrNull('Whose use is shown; null if nobody, or no task, was named.'),
  used: orNull(count()),
  ends_in_seconds: orNull(NUMBER),
  renews_at: textOrNull('RFC 3339 time at which the count begins again; null if nothing is used.'),
});

const LIMITS = object({
  request_id: REQUEST_ID,
  per_second: list(object({ bucket: text(), most: count() })),
  quotas: list(ref('QuotaView')),
  subject: textOrNull(),
});

const FRESHNESS = object({
  request_id: REQUEST_ID,
  indexes: list(object({ facet: text(), indexed_at: textOrNull() })),
  rollups: orNull(
    list(
      object({
        rollup: text(),
        entity: text(),
        state: oneOf('ready', 'not built', 'changed', 'old'),
        built_at: textOrNull(),
        rows: orNull(count()),
        max_age_seconds: NUMBER,
      }),
    ),
  ),
  published: orNull(object({ number: count(), id: text(), at: text() })),
  activation: orNull(count()),
  versions: VERSIONS,
});

const QUESTIONS_OF_EFFECT = {
  refused: count('Answered now, and refused by the shadow policy.'),
  allowed: count('Refused now, and answered by the shadow policy.'),
  masked: count('A column that they read is masked or hidden, and is not now, or less.'),
  shown: count('A column that they read is shown, and is masked or hidden now.'),
  narrower: count('The row filter has more conditions.'),
  wider: count('The row filter has fewer conditions.'),
  other_rows: count('Another row filter, which may show more or fewer rows.'),
  other_masks: count('Another mask, or a column is masked in other rows.'),
  groups: count('Another minimum group size or another rule of groups.'),
} satisfies Readonly<Record<(typeof EFFECTS)[number], JsonShape>>;

const SHADOW_ROW = object({
  chain: list(text(), 'Chain of the callers, root first; the last one asked.'),
  object: text(),
  questions: count('Questions with any of these differences.'),
  ...QUESTIONS_OF_EFFECT,
  codes: list(text(), 'Codes of the refusals that would be added or lifted.'),
  masked_columns: list(
    object({
      column: text(),
      mask: oneOf('redact', 'null', 'hash', 'partial', 'year', 'deny', 'aggregates', 'hidden'),
    }),
  ),
  shown_columns: list(text()),
  first_at: text(),
  last_at: text(),
  examples: list(
    object({ fingerprint: text(), shape: text(), questions: count() }),
    'The most frequent statements, without literals and without names that are not declared; at most 3.',
  ),
});

const SHADOW_VIEW = object({
  request_id: REQUEST_ID,
  shadow: orNull(
    object({
      policy: text('Version of the shadow policy.'),
      state: oneOf('running', 'stopped', 'expired'),
      by: text('Subject that started it.'),
      started_at: text(),
      until: text('When it ends, unless it is stopped earlier.'),
      ended_at: textOrNull(),
      questions: count('Data questions that were decided meanwhile.'),
      same: count('Questions that both policies answer alike, or both refuse.'),
      different: count(),
      waiting: count('Questions that are not compared yet.'),
      not_compared: object({
        queue_full: count('Too many new statements at once.'),
        too_many: count('Too many different statements and callers.'),
        model_changed: count('The shadow policy was not compiled against the manifest that was served.'),
        failed: count('Refused for another reason than the policy, or not compiled in time.'),
      }),
      rows: list(ref('ShadowRow'), 'Differences by caller and object, most questions first.'),
      rows_left_out: count(),
    }),
  ),
  processes: object({ all: count(), comparing: count('Processes that compare.') }),
});

const RECORD_PAGE = object({ request_id: REQUEST_ID, records: list(ref('AuditRecord')), next: NEXT });

export const ACCESS_REQUESTS = object({
  request_id: REQUEST_ID,
  requests: list(ref('AccessRequestView')),
  next: NEXT,
});

/** Schema components of the admin listener's OpenAPI document, by name. */
export const ADMIN_COMPONENTS: ReadonlyMap<string, JsonShape> = new Map<string, JsonShape>([
  ['Problem', PROBLEM],
  ['Sight', oneOf(...VISIBILITIES)],
  ['MatrixRow', MATRIX_ROW],
  ['MatrixPage', MATRIX_PAGE],
  ['Offer', OFFER],
  ['AccessRequestView', ACCESS_REQUEST_VIEW],
  ['AuditRecord', AUDIT_RECORD],
  ['RecordPage', RECORD_PAGE],
  ['RecordProof', RECORD_PROOF],
  ['ChainVerdict', CHAIN_VERDICT],
  ['VerificationJob', VERIFICATION_JOB],
  ['PolicyTestsJob', POLICY_TESTS_JOB],
  ['FormLatency', FORM_LATENCY],
  ['Figures', FIGURES],
  ['QuotaView', QUOTA_VIEW],
  ['ShadowRow', SHADOW_ROW],
  ['ShadowView', SHADOW_VIEW],
  ['Limits', LIMITS],
  ['Freshness', FRESHNESS],
  ['ProcessView', PROCESS_VIEW],
  ['SessionView', SESSION_VIEW],
  ['PoolView', POOL_VIEW],
  ['CacheView', CACHE_VIEW],
  ['History', HISTORY],
  ['SlowStatement', SLOW_STATEMENT],
]);
