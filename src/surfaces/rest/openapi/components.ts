import { FEATURES } from 'osl-compiler';
import { ORIGINS } from '../../../ask/data/explain.js';
import { QUERY, SAMPLE_REQUEST } from '../bodies/query.js';
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
    'currency?': text('Its code by ISO 4217.'),
    'unit?': text('What is counted or measured.'),
    'decimals?': count(),
  },
  'How a figure is meant to be shown; the value itself is as it was computed: 0.25 for 25 percent.',
);

const COLUMN = object({
  name: text(),
  type: text(
    'A type of the model, such as `int4` or `text[]`. The key that a passage carries is `text` in JSON, whatever its type.',
  ),
  source: textOrNull('The column of an entity that it is, unchanged.'),
  redacted: flag(
    'Something in it is masked for this caller, in some rows at least. Of passages and evidence their rows decide; in a plan (`explain`) it says what may be.',
  ),
  'format?': FORMAT,
});

const REDACTED_COLUMNS = list(
  text(),
  'Columns of entities that are in the answer and masked for this caller, in some rows at least: `<entity>.<column>`.',
);
const REDACTED_FIELDS = list(text(), 'Fields in the answer that are redacted in a passage that it rests on.');
const NOTICE_MEMBERS = {
  'redacted_conditions?': list(
    text(),
    'Masked columns that are not in the answer, but in what decides of it: a filter, a group, an order.',
  ),
  'partial_columns?': list(text(), 'Aggregates over columns that are masked in some rows.'),
  'notices?': list(text(), 'What the question should know of its answer, whatever the data.'),
} as const;

const INDEXED_AT = textOrNull(
  'When the text was last read in turn, by RFC 3339; the index has what was written before. Null where that is not known.',
);

const FRESHNESS = object(
  {
    from: oneOf('live', 'cache', 'rollup'),
    as_of: text('By RFC 3339: what was there then is in the answer, and what came later need not be.'),
  },
  'How old the answer is, where the manifest lets it be older than the question; without it, it is of now.',
);

const ANSWER = object(
  {
    request_id: text('The call in the audit log.'),
    form: FORMS,
    columns: list(COLUMN),
    rows: list({
      type: 'object',
      description:
        'int8 and numeric are strings, timestamps RFC 3339, bytea base64, NaN and infinities strings.',
    }),
    row_count: count(),
    truncated: flag('A cap held rows back.'),
    redacted_columns: REDACTED_COLUMNS,
    redacted_fields: REDACTED_FIELDS,
    ...NOTICE_MEMBERS,
    'indexes?': list(
      object({ facet: text(), indexed_at: INDEXED_AT }),
      'The indexes that the answer rests on, by facet.',
    ),
    'errors?': list(object({ chunk_id: text(), reason: text() }), 'Passages for which a decoder failed.'),
    'freshness?': FRESHNESS,
    versions: VERSIONS,
  },
  'Rows.',
);

const PLAN = object(
  {
    request_id: text('The call in the audit log.'),
    form: FORMS,
    plan: object({ step: text(), detail: { type: 'object' }, inputs: list({ type: 'object' }) }),
    objects: list(text(), 'Full names of what would be read.'),
    grants: list(text(), 'Opaque ids of the grants that decide.'),
    columns: list(COLUMN),
    redacted_columns: REDACTED_COLUMNS,
    ...NOTICE_MEMBERS,
    'deprecated?': list(
      object({ object: text(), reason: text() }),
      'Objects that should not be used any more.',
    ),
    'sql?': text('What the database would get; for admins.'),
    'upstream?': object(
      {
        sql: text('The statement.'),
        parameters: list(
          object({
            type: text('A type of Postgres.'),
            from: {
              ...oneOf(...ORIGINS),
              description:
                'A literal of the text, `$n` of the asker, policy or a metric, an attribute, a step, a key.',
            },
            'value?': text('Of a literal of the text, as Postgres reads it.'),
            'number?': { type: 'integer', minimum: 1, description: "`n` of the asker's `$n`." },
          }),
          'In the order of `$1 …`.',
        ),
        'plan?': text('How the database would run it whatever the values: EXPLAIN, without ANALYZE.'),
        'truncated?': flag('A cap held back the end of the plan.'),
      },
      'What was asked for by `upstream`.',
    ),
    versions: VERSIONS,
  },
  'A plan; nothing was run.',
);

const SAMPLE = object({
  request_id: text('The call in the audit log.'),
  kind: oneOf('table', 'facet'),
  name: text(),
  rows: list({ type: 'object', description: 'A masked cell of any type is `[redacted]`.' }),
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
    description: 'In which rows the caller sees, or may see, a mask.',
  },
  use: {
    ...oneOf('rows', 'aggregates'),
    description: 'Whether rows show it, or aggregates only may use it.',
  },
  synonyms: list(text()),
  'sensitivity?': textOrNull('In the full view only.'),
});
const END = object({ entity: text(), columns: list(text()) });
const DESCRIBED = { name: text(), description: textOrNull() } as const;
const DEPRECATABLE = {
  ...DESCRIBED,
  deprecated: textOrNull('Why it should not be used any more; null where it may.'),
} as const;
const SHOWN = {
  synonyms: list(text()),
  examples: list(text(), 'Questions that this caller can send.'),
} as const;

const SCHEMA = object({
  version: text('Of what is shown: unchanged while that is.'),
  etag: text(),
  entities: list(
    object({
      ...DEPRECATABLE,
      fqn: text(),
      composition: oneOf('structured', 'structured+content', 'content'),
      primary_key: list(text()),
      entity_key_columns: list(text(), 'The columns that joins may use.'),
      columns: list(SCHEMA_COLUMN),
      derived: list(
        object({ ...DESCRIBED, type: text(), facet: text(), synonyms: list(text()) }),
        'Taken from its text; selected by key.',
      ),
      minimum_group_size: { type: ['integer', 'null'], description: 'For columns of `aggregates`.' },
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
        modes: list(text(), 'What RETRIEVE takes as `mode`; the first one unless told.'),
        rerankers: list(text(), 'What RETRIEVE takes as `rerank`; true means the first one.'),
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
      entity: textOrNull('Null where it takes rows of several.'),
      kind: oneOf('simple', 'ratio', 'derived', 'cumulative', 'offset', 'conversion'),
      type: text(),
      format: { anyOf: [{ type: 'null' }, FORMAT] },
      measurable: flag('Whether MEASURE over its entity alone has it; a metrics body has them all.'),
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
      'Of an entity `pk`, `model`, `legs`; of a candidate `pk`, `source`, `proposal`, `confidence`.',
  },
});

const EDGE = object({
  id: text('`<bridge>~<a>:<b>`'),
  source: text(),
  target: text(),
  kind: { ...oneOf('nn', 'n1', '11'), description: 'Through a bridge, or along a foreign key.' },
  label: text(),
  declared: flag('False for what was only discovered.'),
  source_attr: text(),
  target_attr: text(),
});

const DOMAIN_MAP = object({
  nodes: list(NODE),
  edges: list(EDGE),
  bridges: list(text()),
  'unread?': list(
    object({ connector: text(), reason: text() }),
    'In the full view: connectors whose candidates could not be read.',
  ),
  'truncated?': flag('Some database has more relations than are read.'),
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
    'Best first, at most 20.',
  ),
});

export const COMPONENTS: ReadonlyMap<string, JsonShape> = new Map<string, JsonShape>([
  ['Problem', PROBLEM],
  ['Query', QUERY],
  ['Answer', ANSWER],
  ['Plan', PLAN],
  ['SampleRequest', SAMPLE_REQUEST],
  ['Sample', SAMPLE],
  ['Schema', SCHEMA],
  ['DomainMap', DOMAIN_MAP],
  ['Resolution', RESOLUTION],
  ...AUTHORING,
  ...PUBLISHING,
  ...ACCESS,
]);

export const PROBLEM_REF = ref('Problem');
