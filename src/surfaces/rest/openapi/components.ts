import { FEATURES } from 'osl-compiler';
import { ORIGINS } from '../../../ask/data/explain.js';
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
  'Display format; does not affect the value: 0.25 for 25 percent.',
);

const COLUMN = object({
  name: text(),
  type: text(
    'Type in the model, such as `int4` or `text[]`. The entity key of a passage is `text` in JSON, whatever its type.',
  ),
  source: textOrNull('Full name of the entity column that is returned unchanged; null for other values.'),
  redacted: flag(
    'True if the policy masks values of the column for this caller, in some rows at least. For passages and evidence: true if a returned value is redacted; in a plan (`explain`), if one may be.',
  ),
  'format?': FORMAT,
});

const REDACTED_COLUMNS = list(
  text(),
  'Entity columns in the answer that are masked for this caller, in some rows at least: `<entity>.<column>`.',
);
const REDACTED_FIELDS = list(
  text(),
  'Passage fields in the answer that are redacted in at least one of the passages used for it.',
);
const NOTICE_MEMBERS = {
  'redacted_conditions?': list(
    text(),
    'Masked columns that are not in the answer but influence it, such as in a filter, a grouping or an order: `<entity>.<column>`.',
  ),
  'partial_columns?': list(text(), 'Columns of the answer that aggregate values masked in some rows.'),
  'notices?': list(text(), 'Notes on how to read the answer; they depend on the query, not on the data.'),
} as const;

const INDEXED_AT = textOrNull(
  'Start of the last regular indexing run, RFC 3339 in UTC; text written before it is in the index. Null if unknown.',
);

const FRESHNESS = object(
  {
    from: oneOf('live', 'standby', 'cache', 'rollup'),
    as_of: text(
      'Time, RFC 3339 in UTC: the answer includes all changes made before it; later ones may be missing.',
    ),
  },
  'Source and age of the answer, if the manifest allows cached or precomputed answers or answers of standbys. Absent: the answer is current.',
);

const RECEIPT = object(
  {
    proof: text('C2SP tlog-proof of the record of this answer in the audit log.'),
    salt: text(
      'Salt of the digests in that record, base64url. Whoever has it can test guesses of the answer.',
    ),
  },
  'Receipt of the answer, if the request has `Prefer: receipt`.',
);

const RECORDED_RECEIPT = object({
  proof: text('C2SP tlog-proof of the record of the answer in the audit log.'),
  verifier_key: text('Key that checks the proof. Trust a copy that was kept elsewhere.'),
});

const DASHBOARD_LIST = object({
  request_id: text('ID of this request, also in the audit log.'),
  dashboards: list({
    type: 'object',
    description: 'Content of a dashboard’s file, without its roles: `osl_dashboard`, `title`, `panels`.',
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
        'Values by column name. int8 and numeric are strings, timestamps are in RFC 3339, bytea is in base64, NaN and infinities are strings.',
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
      'Passages for which a decoder operator failed, with the reason.',
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
    grants: list(text(), 'Opaque IDs of the grants that apply.'),
    columns: list(COLUMN),
    redacted_columns: REDACTED_COLUMNS,
    ...NOTICE_MEMBERS,
    'deprecated?': list(
      object({ object: text(), reason: text() }),
      'Deprecated objects in the query, with the reason.',
    ),
    'sql?': text('SQL that would be sent to the database; only for callers with an admin role.'),
    'upstream?': object(
      {
        sql: text('SQL statement for the database.'),
        parameters: list(
          object({
            type: text('Postgres type of the parameter.'),
            from: {
              ...oneOf(...ORIGINS),
              description:
                'Origin of the value: a literal of the query text (`literal`), the caller’s `$n` (`parameter`), the policy, a metric or the compiler (`gateway`), an attribute of the caller (`attribute`), an earlier step (`step`), or the key of masks (`mask_key`).',
            },
            'value?': text('Value of a `literal`, in Postgres’ text format; absent for other origins.'),
            'number?': {
              type: 'integer',
              minimum: 1,
              description: 'Number `n` of the caller’s `$n`; absent for other origins.',
            },
          }),
          'Parameters of the statement, in the order of `$1`, `$2` and so on.',
        ),
        'plan?': text(
          'Generic plan of the database, independent of parameter values: the text of EXPLAIN without ANALYZE.',
        ),
        'truncated?': flag('True if the end of the plan was cut off by a limit.'),
      },
      'Database statement, and its plan if requested; present if the request has `upstream`.',
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
    description: 'Rows in which the caller sees, or may see, masked values.',
  },
  use: {
    ...oneOf('rows', 'aggregates'),
    description: '`rows`: the column can be selected. `aggregates`: only aggregates may use it.',
  },
  synonyms: list(text()),
  'sensitivity?': textOrNull('Sensitivity label; null if there is none. Only in the full view.'),
});
const END = object({ entity: text(), columns: list(text()) });
const DESCRIBED = { name: text(), description: textOrNull() } as const;
const DEPRECATABLE = {
  ...DESCRIBED,
  deprecated: textOrNull('Reason for deprecation; null if not deprecated.'),
} as const;
const SHOWN = {
  synonyms: list(text()),
  examples: list(text(), 'Example queries that this caller can run.'),
} as const;

const SCHEMA = object({
  version: text(
    'Version of the schema. Full view: that of the manifest. Governed view: changes only if the visible schema changes.',
  ),
  etag: text(),
  entities: list(
    object({
      ...DEPRECATABLE,
      fqn: text(),
      composition: oneOf('structured', 'structured+content', 'content'),
      primary_key: list(text()),
      entity_key_columns: list(text(), 'Columns that joins may use.'),
      time_dimension: textOrNull(
        'Column used as `metric_time` of the entity’s metrics; null if there is none that the caller sees.',
      ),
      columns: list(SCHEMA_COLUMN),
      derived: list(
        object({ ...DESCRIBED, type: text(), facet: text(), synonyms: list(text()) }),
        'Attributes computed from text; they can be selected if WHERE names the keys.',
      ),
      minimum_group_size: {
        type: ['integer', 'null'],
        description:
          'Minimum number of entities in a group, for columns whose `use` is `aggregates`; null if there is no minimum.',
      },
      facets: list(text()),
      metrics: list(text()),
      ...SHOWN,
    }),
  ),
  facets: list(
    object({
      ...DEPRECATABLE,
      fqn: text(),
      entity: text(),
      entity_key: text(),
      embedding_model: text(),
      indexed_at: INDEXED_AT,
      retrieval: object({
        max_top_k: count(),
        modes: list(text(), 'Values of `mode` in RETRIEVE; the first is the default.'),
        rerankers: list(text(), 'Values of `rerank` in RETRIEVE; `true` stands for the first.'),
      }),
      labels: list(text()),
      columns: list(SCHEMA_COLUMN),
      scalar_indexed: list(text(), 'Columns that WHERE and joins may use.'),
      ...SHOWN,
    }),
  ),
  metrics: list(
    object({
      ...DEPRECATABLE,
      fqn: text(),
      entity: textOrNull('Entity whose rows are aggregated; null if the metric uses rows of several.'),
      kind: oneOf('simple', 'ratio', 'derived', 'cumulative', 'offset', 'conversion'),
      type: text(),
      format: { anyOf: [{ type: 'null' }, FORMAT] },
      measurable: flag(
        'True if MEASURE over its entity alone can compute it; a metrics query accepts every metric.',
      ),
      ...SHOWN,
    }),
  ),
  relationships: list(
    object({
      ...DEPRECATABLE,
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
  id: text('`<bridge>~<a>:<b>`; without a bridge `<link>~<a>:<b>`.'),
  source: text(),
  target: text(),
  kind: {
    ...oneOf('nn', 'n1', '11'),
    description: '`nn`: through a bridge. `n1`, `11`: along a foreign key, from source to target.',
  },
  label: text(),
  declared: flag('True if the manifest declares the link; false if it was only found in a database.'),
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
  { since: text(), until: text(), seconds_left: count('Seconds left until `until`, rounded up.') },
  'Present if the newest policy is missing or invalid: the last valid one stays in force until `until`.',
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
    'Number of servers behind the databases, such as those of foreign tables, that do not respond.',
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
    object({ request_id: text('ID of the check in the audit log.'), versions: VERSIONS }),
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
