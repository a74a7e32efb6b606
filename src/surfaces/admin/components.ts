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
  id: text('ID for cancelling or ending it: process ID of a Postgres session, or request ID.'),
  process: PROCESS,
  surface: oneOf('wire', 'rest', 'mcp'),
  user: textOrNull('Postgres user; null for HTTP.'),
  subject: textOrNull('Subject of the caller; null before authentication.'),
  chain: list(text()),
  token_id: textOrNull('ID for revoking the session’s current token; null before authentication.'),
  application: textOrNull(),
  since: text('Start of the session or request, RFC 3339 in UTC.'),
  state: text('State, with the same values as in `pg_stat_activity`.'),
  state_since: text(),
  shape: textOrNull(
    'Running statement, without literals and undeclared names; null if none is running or its text is not available.',
  ),
  fingerprint: textOrNull('Fingerprint of the shape; null if `shape` is null.'),
  objects: list(text()),
});

const POOL_VIEW = object({
  process: PROCESS,
  connector: text(),
  purpose: oneOf('questions', 'short', 'system'),
  standby: textOrNull('Name of the standby to which the sessions are connected; null for the primary.'),
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
  from: text(
    'Start of the first step, RFC 3339 in UTC. Less than a full span ago if the server started during the span.',
  ),
  every_seconds: count(
    'Length of a step in seconds. Each list has one value per step: null if nothing was sampled or, for durations, if no query ended.',
  ),
  lines: list(
    object({
      name: textOrNull(
        'Name of the surface or connector; null for the total, or for queries that use no connector.',
      ),
      questions: list(
        orNull(NUMBER),
        'Number of queries that ended in each step, without those that were refused.',
      ),
      refused: STEPS,
      failed: STEPS,
      cancelled: STEPS,
      p50_ms: list(orNull(NUMBER), 'Median duration of the queries, in milliseconds.'),
      p95_ms: STEPS,
      p99_ms: STEPS,
    }),
  ),
  pools: list(
    object({
      connector: text(),
      running: list(orNull(NUMBER), 'Highest number of running statements, sampled once a second.'),
      waiting: list(orNull(NUMBER), 'Highest number of requests waiting for a database session.'),
      size: STEPS,
    }),
  ),
  audit_waiting: list(orNull(NUMBER), 'Highest number of audit records not yet durable.'),
  memory_bytes: list(orNull(NUMBER), 'Resident memory of the serving processes, in bytes.'),
  wire_sessions: STEPS,
});

const SLOW_STATEMENT = object({
  process: PROCESS,
  request_id: text('ID of the slow request.'),
  at: text('End of the request, RFC 3339 in UTC.'),
  duration_ms: NUMBER,
  surface: oneOf(...SURFACES),
  action: text(),
  form: textOrNull(),
  objects: list(text()),
  outcome: oneOf(...OUTCOMES, 'refused'),
  code: textOrNull(),
  rows: count(),
  shape: text('Statement without literals and undeclared names.'),
  fingerprint: text('Fingerprint of the shape.'),
});

const PROCESS_VIEW = object({
  process: PROCESS,
  pid: count(),
  since: text(),
  draining: flag('True while the process accepts no new sessions and is not ready.'),
  manifest: text(),
  policy: textOrNull('Version of the policy in force; null if none is, so that all requests are refused.'),
  policy_kept_until: textOrNull(
    'Time, RFC 3339 in UTC, until which the last valid policy stays in force because the newest is missing or invalid; otherwise null.',
  ),
  policy_fault: textOrNull('Error in the newest policy, with its position; null if that policy is in force.'),
  audit: object({
    records: count(),
    waiting: count('Number of records not yet durable.'),
    unanchored: count('Number of records not yet covered by a signed checkpoint.'),
    failing: textOrNull(),
  }),
  sessions: count(),
  out_of_service: list(text()),
});

export const REVOCATION = {
  id: text(),
  kind: oneOf('token', 'subject'),
  name: text('ID of the token, or name of the subject.'),
  at: text(
    'Time of the revocation, RFC 3339 in UTC. For a subject, all tokens issued up to this time are revoked.',
  ),
  until: text('Time, RFC 3339 in UTC, by which all revoked tokens have expired.'),
};

const MATRIX_ROW = object({
  object: text(),
  column: text(),
  label: textOrNull(),
  sees: list(VISIBILITY),
  some_rows: list(
    flag(),
    'For each subject, true if it sees the column only in rows that a row filter selects.',
  ),
});

const MATRIX_PAGE = object({
  request_id: REQUEST_ID,
  subjects: list(list(text()), 'Delegation chains, root first. Most consist of a single subject.'),
  next_subject: textOrNull('Value of `after` for the next page; null on the last page.'),
  subject_count: count('Number of subjects whose name matches the search, on all pages.'),
  rows: list(ref('MatrixRow')),
  row_count: count('Number of columns whose name matches the search, on all pages.'),
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
  object: textOrNull('Requested object; null if no object of that name was declared.'),
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
  'A record as stored in the audit log.',
);

const RECORD_PROOF = object({
  seq: count(),
  text: text(),
  verifier_key: text('Public key that verifies the proof, as stored next to the log.'),
});

const JOB = {
  request_id: REQUEST_ID,
  state: oneOf('none', 'never', 'running', 'done', 'failed'),
  began_at: textOrNull(),
  ended_at: textOrNull(),
  by: textOrNull('Subject that started the job; null if the job has not been started.'),
  progress: orNull(NUMBERS_BY_NAME),
  why: textOrNull('Reason why the job failed (`failed`) or cannot run (`none`); null in other states.'),
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
  name: text('Name of the quota in the policy, or its position, such as `limits.subject[0]`.'),
  bucket: text(),
  unit: oneOf('requests', 'rows', 'bytes', 'ms', 'cost', 'tokens', 'entities'),
  most: count(),
  per: oneOf('second', 'minute', 'hour', 'day', 'task'),
  window_seconds: NUMBER,
  role: textOrNull(),
  each: orNull(oneOf('subject', 'chain')),
  whose: textOrNull(
    'Subjects whose use is shown, such as `all subjects`; null if the quota needs a subject or task that the request does not name.',
  ),
  used: orNull(count()),
  ends_in_seconds: orNull(NUMBER),
  renews_at: textOrNull('Time, RFC 3339, at which the count starts again; null if it is zero or not shown.'),
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
  refused: count('Queries that the current policy allows and the shadow policy would refuse.'),
  allowed: count('Queries that the current policy refuses and the shadow policy would allow.'),
  masked: count(
    'Queries that read a column which would become less visible: masked, hidden or usable only in aggregates.',
  ),
  shown: count('Queries that read a column which would become more visible.'),
  narrower: count('Queries whose row filter would be stricter, so that they may read fewer rows.'),
  wider: count('Queries whose row filter would be looser, so that they may read more rows.'),
  other_rows: count(
    'Queries whose row filter would differ in another way, so that they may read more, fewer or other rows.',
  ),
  other_masks: count(
    'Queries with a different mask, a column masked in different rows, or a differently redacted facet.',
  ),
  groups: count('Queries with a different minimum group size or a different rule for groups.'),
} satisfies Readonly<Record<(typeof EFFECTS)[number], JsonShape>>;

const SHADOW_ROW = object({
  chain: list(text(), 'Delegation chain of the caller, root first. The last member sent the queries.'),
  object: text(),
  questions: count('Number of queries with any of the differences below.'),
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
    'The most frequent statements, at most 3, without literals and undeclared names.',
  ),
});

const SHADOW_VIEW = object({
  request_id: REQUEST_ID,
  shadow: orNull(
    object({
      policy: text('Version of the shadow policy.'),
      state: oneOf('running', 'stopped', 'expired'),
      by: text('Subject that started the comparison.'),
      started_at: text(),
      until: text('Time at which the comparison ends, unless it is stopped earlier.'),
      ended_at: textOrNull(),
      questions: count('Number of data queries decided during the comparison.'),
      same: count('Queries that both policies answer in the same way or both refuse.'),
      different: count(),
      waiting: count('Queries not compared yet.'),
      not_compared: object({
        queue_full: count('Queries skipped because too many new statements arrived at once.'),
        too_many: count('Queries skipped because there were too many different statements or callers.'),
        model_changed: count('Queries under a manifest for which the shadow policy was not compiled.'),
        failed: count('Queries refused for a reason other than the policy, or whose comparison failed.'),
      }),
      rows: list(ref('ShadowRow'), 'Differences by caller and object, those with the most queries first.'),
      rows_left_out: count(),
    }),
  ),
  processes: object({ all: count(), comparing: count('Number of processes that run the comparison.') }),
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
