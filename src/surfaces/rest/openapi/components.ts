import { FEATURES } from 'osl-compiler';
import { PARAMETER_ORIGINS } from '../../../ask/data/explain.js';
import { METRICS_COMPONENTS } from '../bodies/metrics.js';
import { QUERY, SAMPLE_REQUEST, SUBSCRIPTION } from '../bodies/query.js';
import { PROBLEM } from '../problem.js';
import { count, flag, type JsonShape, list, object, oneOf, ref, text, textOrNull } from '../shape.js';
import { ACCESS } from './access-components.js';
import { AUTHORING, PUBLISHING } from './authoring-components.js';

const FORM_NAMES = ['structured', 'retrieve', 'traverse', 'joint', 'cross_modal'] as const;
const FORMS = oneOf(...FORM_NAMES, 'sql', 'metrics');
const VERSIONS = object({ manifest: text(), policy: text() });

const FORMAT = object(
  {
    kind: oneOf('number', 'percent', 'currency'),
    'currency?': text('ISO 4217 code of the currency.'),
    'unit?': text('Unit of the number, such as `kg`.'),
    'decimals?': count(),
  },
  'Display format. It does not change the value: 25 percent is returned as 0.25.',
);

const COLUMN = object({
  name: text(),
  type: text(
    'Type in the model, such as `int4` or `text[]`. In JSON, the entity key of a passage is always `text`.',
  ),
  source: textOrNull('Full name of the entity column, if it is returned unchanged; otherwise null.'),
  redacted: flag(
    'True if values of the column are masked for this caller in at least some rows. For passages and evidence: true if a returned value is redacted or, in a plan (`explain`), may be redacted.',
  ),
  'format?': FORMAT,
});

const REDACTED_COLUMNS = list(
  text(),
  'Entity columns in the answer that are masked for this caller in at least some rows, as `<entity>.<column>`.',
);
const REDACTED_FIELDS = list(
  text(),
  'Passage fields in the answer that are redacted in at least one passage used for it.',
);
const NOTICE_MEMBERS = {
  'redacted_conditions?': list(
    text(),
    'Masked columns, as `<entity>.<column>`, that affect the answer without being in it, for example in a filter, a grouping or an order.',
  ),
  'partial_columns?': list(
    text(),
    'Columns of the answer that aggregate values which are masked in some rows.',
  ),
  'notices?': list(text(), 'Notes on how to read the answer; they depend on the query, not on the data.'),
} as const;

const INDEXED_AT = textOrNull(
  'Start of the last regular indexing run, RFC 3339 in UTC; null if unknown. Text committed before this time is in the index.',
);

const FRESHNESS = object(
  {
    from: oneOf('live', 'standby', 'cache', 'rollup'),
    as_of: text(
      'Time, RFC 3339 in UTC. The answer includes all changes made before it; later changes may be missing.',
    ),
  },
  'Source and age of the answer. Absent if the primary answered and the answer cannot be cached; it is then current.',
);

const RECEIPT = object(
  {
    proof: text('C2SP tlog-proof of the record of this answer in the audit log.'),
    salt: text(
      'Salt of the digests in that record, in base64url. Keep it secret: anyone who has it can test guesses of the answer.',
    ),
  },
  'Receipt of the answer, if the request has `Prefer: receipt`.',
);

const RECORDED_RECEIPT = object({
  proof: text('C2SP tlog-proof of the record of the answer in the audit log.'),
  verifier_key: text('Key that verifies the proof. To be safe, use a copy that was stored elsewhere.'),
});

const DASHBOARD_LIST = object({
  request_id: text('ID of this request, also in the audit log.'),
  dashboards: list({
    type: 'object',
    description: 'Content of a dashboard file without its `roles`: `osl_dashboard`, `title` and `panels`.',
  }),
});

const ANSWER = object(
  {
    request_id: text('ID of this request, also in the audit log.'),
    form: FORMS,
    columns: list(COLUMN),
    rows: list({
      type: 'object',
      description:
        'Values by column name. int8, numeric, NaN and infinities are strings, timestamps are in RFC 3339, and bytea is in base64.',
    }),
    row_count: count(),
    truncated: flag('True if rows were left out because of a limit.'),
    redacted_columns: REDACTED_COLUMNS,
    redacted_fields: REDACTED_FIELDS,
    ...NOTICE_MEMBERS,
    'indexes?': list(
      object({ facet: text(), indexed_at: INDEXED_AT }),
      'Text indexes that the answer is based on, one per facet.',
    ),
    'errors?': list(
      object({ chunk_id: text(), reason: text() }),
      'Passages for which a decoder operator failed and returned NULL, with the reason.',
    ),
    'freshness?': FRESHNESS,
    versions: VERSIONS,
    'receipt?': RECEIPT,
  },
  'Result of a query.',
);

const PLAN = object(
  {
    request_id: text('ID of this request, also in the audit log.'),
    form: FORMS,
    plan: object({ step: text(), detail: { type: 'object' }, inputs: list({ type: 'object' }) }),
    objects: list(text(), 'Full names of the objects that would be read.'),
    grants: list(text(), 'Opaque IDs of the grants that apply to the query.'),
    columns: list(COLUMN),
    redacted_columns: REDACTED_COLUMNS,
    ...NOTICE_MEMBERS,
    'deprecated?': list(
      object({ object: text(), reason: text() }),
      'Deprecated objects in the query, with the reason.',
    ),
    'sql?': text('SQL that would be sent to the database. Only for callers with an admin role.'),
    'upstream?': object(
      {
        sql: text('SQL statement for the database.'),
        parameters: list(
          object({
            type: text('Postgres type of the parameter.'),
            from: {
              ...oneOf(...PARAMETER_ORIGINS),
              description:
                'Origin of the value: `literal` (in the query text), `parameter` (the caller’s `$n`), `gateway` (policy, metric or compiler), `attribute` (of the caller), `step` (an earlier step) or `mask_key` (key for masks).',
            },
            'value?': text('Value of a `literal`, in the text format of Postgres; absent for other origins.'),
            'number?': {
              type: 'integer',
              minimum: 1,
              description: 'Number `n` of the caller’s `$n`; absent for other origins.',
            },
          }),
          'Parameters of the statement, in the order of `$1`, `$2` and so on.',
        ),
        'plan?': text(
          'Generic execution plan, independent of parameter values: output of EXPLAIN without ANALYZE.',
        ),
        'truncated?': flag('True if a limit cut off the end of the plan.'),
      },
      'Statement for the database, with its plan if requested. Present if the request has `upstream`.',
    ),
    versions: VERSIONS,
  },
  'Plan of a query that was not run.',
);

const SAMPLE = object({
  request_id: text('ID of this request, also in the audit log.'),
  kind: oneOf('table', 'facet'),
  name: text(),
  rows: list({
    type: 'object',
    description: 'Values by column name; a masked value of any type is the string `[redacted]`.',
  }),
  redacted_columns: REDACTED_COLUMNS,
  redacted_fields: REDACTED_FIELDS,
});

const SCHEMA_COLUMN = object({
  name: text(),
  type: text(),
  description: textOrNull(),
  nullable: flag(),
  masked: {
    ...oneOf('none', 'some', 'all'),
    description: 'Rows in which values are, or may be, masked for the caller.',
  },
  use: {
    ...oneOf('rows', 'aggregates'),
    description: '`rows`: the column can be selected. `aggregates`: it can only be used in aggregates.',
  },
  synonyms: list(text()),
  'sensitivity?': textOrNull('Sensitivity label; null if the column has none. Only in the full view.'),
});
const END = object({ entity: text(), columns: list(text()) });
const DESCRIPTION_MEMBERS = { name: text(), description: textOrNull() } as const;
const DEPRECATABLE_MEMBERS = {
  ...DESCRIPTION_MEMBERS,
  deprecated: textOrNull('Reason for deprecation; null if the object is not deprecated.'),
} as const;
const OBJECT_MEMBERS = {
  synonyms: list(text()),
  examples: list(text(), 'Example queries that this caller can run.'),
} as const;

const SCHEMA = object({
  version: text(
    'In the full view, the version of the manifest. In the governed view, a version that changes only if the visible schema changes.',
  ),
  etag: text(),
  entities: list(
    object({
      ...DEPRECATABLE_MEMBERS,
      fqn: text(),
      composition: oneOf('structured', 'structured+content', 'content'),
      primary_key: list(text()),
      entity_key_columns: list(text(), 'Columns that joins may use.'),
      time_dimension: textOrNull(
        'Column used as `metric_time` of the entity’s metrics; null if the caller sees no such column.',
      ),
      columns: list(SCHEMA_COLUMN),
      derived: list(
        object({ ...DESCRIPTION_MEMBERS, type: text(), facet: text(), synonyms: list(text()) }),
        'Attributes computed from text. They can be selected in queries whose WHERE picks rows by key.',
      ),
      minimum_group_size: {
        type: ['integer', 'null'],
        description:
          'Minimum number of entities in a group, for columns whose `use` is `aggregates`; null if there is no minimum.',
      },
      facets: list(text()),
      metrics: list(text()),
      ...OBJECT_MEMBERS,
    }),
  ),
  facets: list(
    object({
      ...DEPRECATABLE_MEMBERS,
      fqn: text(),
      entity: text(),
      entity_key: text(),
      embedding_model: text(),
      indexed_at: INDEXED_AT,
      retrieval: object({
        max_top_k: count(),
        modes: list(text(), 'Allowed values of `mode` in RETRIEVE; the first is the default.'),
        rerankers: list(text(), 'Allowed values of `rerank` in RETRIEVE; `true` selects the first.'),
      }),
      labels: list(text()),
      columns: list(SCHEMA_COLUMN),
      scalar_indexed: list(text(), 'Columns that WHERE and joins may use.'),
      ...OBJECT_MEMBERS,
    }),
  ),
  metrics: list(
    object({
      ...DEPRECATABLE_MEMBERS,
      fqn: text(),
      entity: textOrNull(
        'Entity whose rows are aggregated; null if the metric uses rows of several entities.',
      ),
      kind: oneOf('simple', 'ratio', 'derived', 'cumulative', 'offset', 'conversion'),
      type: text(),
      format: { anyOf: [{ type: 'null' }, FORMAT] },
      measurable: flag(
        'True if MEASURE can compute the metric over its entity alone. A metrics query accepts every metric.',
      ),
      ...OBJECT_MEMBERS,
    }),
  ),
  relationships: list(
    object({
      ...DEPRECATABLE_MEMBERS,
      kind: oneOf('many_to_one', 'one_to_one', 'many_to_many'),
      from: END,
      to: END,
      bridge: { anyOf: [{ type: 'null' }, object({ name: text(), columns: list(SCHEMA_COLUMN) })] },
      examples: list(text()),
    }),
  ),
  functions: list(object({ name: text(), kind: text(), signatures: list(text()) })),
  operators: list(object({ name: text(), class: text(), signatures: list(text()), available: flag() })),
  forms: list(
    object({ name: oneOf(...FORM_NAMES), shape: text(), rules: list(text()), examples: list(text()) }),
  ),
  features: object({
    joins: oneOf('declared', 'any'),
    ...Object.fromEntries(Object.keys(FEATURES).map((name) => [name, flag()])),
  }),
});

const NODE = object({
  id: text('`entity:<Name>` or `metric:<name>`'),
  kind: oneOf('entity', 'metric', 'candidate'),
  name: text(),
  plane: oneOf('mixed', 'structured'),
  state: oneOf('existing', 'deprecated', 'discovered'),
  composition: textOrNull(),
  description: textOrNull(),
  attributes: list(
    object({
      name: text(),
      role: oneOf('pk', 'column', 'derived', 'metric'),
      type: textOrNull(),
      description: textOrNull(),
    }),
  ),
  meta: {
    type: 'object',
    description:
      'Entity: `pk`, `model`, `legs`. Candidate: `pk`, `source`, `proposal`, `confidence`. Metric: empty.',
  },
});

const EDGE = object({
  id: text('`<bridge>~<from>:<to>` or, without a bridge, `<link>~<from>:<to>`.'),
  source: text(),
  target: text(),
  kind: {
    ...oneOf('nn', 'n1', '11'),
    description:
      '`nn`: many to many, through a bridge. `n1`: many to one, `11`: one to one, along a foreign key from source to target.',
  },
  label: text(),
  declared: flag('True if the manifest declares the link; false if it was only found in the database.'),
  source_attr: text(),
  target_attr: text(),
});

const DOMAIN_MAP = object({
  nodes: list(NODE),
  edges: list(EDGE),
  bridges: list(text()),
  'unread?': list(
    object({ connector: text(), reason: text() }),
    'Connectors whose candidates could not be read, with the reason. Only in the full view.',
  ),
  'truncated?': flag('True if a database has more relations than the gateway reads.'),
});

const RESOLUTION = object({
  term: text(),
  matches: list(
    object({
      fqn: text(),
      kind: oneOf('entity', 'column', 'derived', 'metric', 'facet', 'bridge'),
      score: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
      via: oneOf('name', 'lexicon', 'description'),
    }),
    'Matches, best first; at most 20.',
  ),
});

const KEPT_POLICY = object(
  { since: text(), until: text(), seconds_left: count('Number of seconds until `until`, rounded up.') },
  'Present if the newest policy is missing or invalid. The last valid policy then stays in force until `until`.',
);

const HEALTH = object({
  status: oneOf('ok', 'degraded'),
  'waiting_for?': list(oneOf('engines', 'policy', 'control', 'clock', 'limits', 'issuers')),
  'audit_sync?': oneOf('kernel'),
  'kept_policy?': KEPT_POLICY,
});

const READINESS = object({
  status: oneOf('ready', 'not_ready'),
  checks: { type: 'object' },
  'objects_out_of_service?': count(
    'Number of entities and bridges with a table or column that is missing in the database.',
  ),
  'data_nodes_unreachable?': count(
    'Number of unreachable servers behind the databases, such as those of foreign tables.',
  ),
  'kept_policy?': KEPT_POLICY,
});

export const COMPONENTS: ReadonlyMap<string, JsonShape> = new Map<string, JsonShape>([
  ['Problem', PROBLEM],
  ['Query', QUERY],
  ...METRICS_COMPONENTS,
  ['Answer', ANSWER],
  ['AnswerColumn', COLUMN],
  ['ValueFormat', FORMAT],
  ['RecordedReceipt', RECORDED_RECEIPT],
  ['DashboardList', DASHBOARD_LIST],
  ['Plan', PLAN],
  ['Subscription', SUBSCRIPTION],
  [
    'SubscriptionState',
    object({ request_id: text('ID of this run of the query, also in the audit log.'), versions: VERSIONS }),
  ],
  ['SampleRequest', SAMPLE_REQUEST],
  ['Sample', SAMPLE],
  ['Schema', SCHEMA],
  ['SchemaColumn', SCHEMA_COLUMN],
  ['DomainMap', DOMAIN_MAP],
  ['Resolution', RESOLUTION],
  ...AUTHORING,
  ...PUBLISHING,
  ...ACCESS,
  ['Health', HEALTH],
  ['Readiness', READINESS],
  ['KeptPolicy', KEPT_POLICY],
]);

export const PROBLEM_REF = ref('Problem');
