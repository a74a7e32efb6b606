import { GRAINS } from 'osl-compiler';
import { closed, DEPRECATED, DRAFT, list, NAME_RULE, named, PHYSICAL_NAME, some, TEXT } from './parts.js';

const TABLE_NAME = {
  type: 'string',
  pattern: '^[^.\\u0000]{1,63}\\.[^.\\u0000]{1,63}$',
  description: 'A table is written with its schema: `sales.orders`.',
} as const;

const tableColumn = closed(
  {
    type: {
      type: 'string',
      description: 'The Postgres type. A column without a declared type is not exposed.',
      examples: [
        ...['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'bpchar', 'uuid', 'date'],
        ...['time', 'timestamp', 'timestamptz', 'interval', 'bytea', 'jsonb', 'text[]'],
      ],
    },
    pii: { type: 'boolean', description: 'Personal data: short for `sensitivity: pii`.' },
    sensitivity: {
      ...NAME_RULE,
      description: 'A label that the policy gives a mask: `pii`, `secret`, … Never guessed from names.',
    },
    nullable: { type: 'boolean', description: 'Default: true, and false for a primary key.' },
  },
  ['type'],
  'A column as the upstream table has it.',
);

const connector = closed(
  {
    kind: {
      enum: ['pglite', 'postgres'],
      description: '`pglite`: the embedded engine. `postgres`: a server, reached by `url_env`.',
    },
    url_env: {
      type: 'string',
      pattern: '^[A-Z][A-Z0-9_]*$',
      description:
        'Name of the environment variable that holds the connection URL; URLs and passwords are never written here.',
    },
    row_security: {
      type: 'boolean',
      description:
        'Whether row-security policies of the database stand behind the gateway: `osl row-security` writes them.',
    },
    tables: named(
      TABLE_NAME,
      closed(
        { columns: named(PHYSICAL_NAME, tableColumn, 'Columns by name.') },
        ['columns'],
        'An upstream table.',
      ),
      'Tables by `schema.table`.',
    ),
  },
  ['kind', 'tables'],
  'A database, and what is declared about its tables.',
);

const source = {
  type: ['string', 'object'],
  pattern: '^[^.\\u0000]{1,63}\\.[^.\\u0000]{1,63}\\.[^.\\u0000]{1,63}$',
  properties: { connector: NAME_RULE, table: TABLE_NAME },
  required: ['connector', 'table'],
  additionalProperties: false,
  description: 'Where the rows are: `connector.schema.table`, or `{connector, table}`.',
} as const;

const columns = {
  type: ['object', 'array'],
  propertyNames: NAME_RULE,
  additionalProperties: {
    type: ['object', 'null'],
    properties: {
      column: { ...PHYSICAL_NAME, description: 'The upstream column; default: the same name.' },
      description: TEXT,
    },
    additionalProperties: false,
    description: 'A column: `{column, description}`, or nothing.',
  },
  items: NAME_RULE,
  uniqueItems: true,
  description:
    'What is exposed, in the order of `*`: a list of names, or names with `{column, description}`.',
} as const;

const label = {
  type: ['string', 'object'],
  minLength: 1,
  properties: {
    label: TEXT,
    description: TEXT,
    examples: list(TEXT, 'Texts that stand for the label.'),
  },
  required: ['label'],
  additionalProperties: false,
  description: 'A label, or `{label, description, examples}`: few words that are its own serve best.',
} as const;

const derived = closed(
  {
    description: TEXT,
    facet: { ...NAME_RULE, description: 'The facet, about this entity, whose text is read.' },
    operator: {
      enum: ['CLASSIFY', 'TAG'],
      description: '`CLASSIFY`: the one best label. `TAG`: all labels of at least `threshold`.',
    },
    labels: { type: 'array', items: label, minItems: 1, description: 'What the text is compared with.' },
    min_score: {
      type: 'number',
      minimum: -1,
      maximum: 1,
      description: 'CLASSIFY: below this cosine there is no value.',
    },
    threshold: {
      type: 'number',
      minimum: -1,
      maximum: 1,
      description: 'TAG: the least cosine. Default: 0.2.',
    },
  },
  ['facet', 'operator', 'labels'],
  'An attribute that is taken from text when that is indexed.',
);

const entity = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    primary_key: some(NAME_RULE, 'Columns of the entity that identify a row.'),
    entity_key_columns: list(NAME_RULE, 'Columns that joins may use; default: the primary key.'),
    columns,
    time_dimension: {
      ...NAME_RULE,
      description:
        'The date or timestamp column that says when a row happened: `metric_time` of its metrics.',
    },
    composition: {
      enum: ['structured', 'structured+content', 'content'],
      description: 'Default: `structured+content` where there are legs, else `structured`.',
    },
    legs: list(NAME_RULE, 'Facets that hold content about this entity.'),
    derived: named(NAME_RULE, derived, 'Attributes taken from content; selecting one makes a query Joint.'),
  },
  ['source', 'primary_key', 'columns'],
  'A thing that questions are asked about.',
);

const ENTITY_COLUMN = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_]*\\.[A-Za-z_][A-Za-z0-9_]*$',
  description: 'A column is written with its entity: `order.customer_id`.',
} as const;

const relationship = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    from: ENTITY_COLUMN,
    to: { ...ENTITY_COLUMN, description: 'The primary key that `from` refers to: `customer.id`.' },
    kind: { enum: ['many_to_one', 'one_to_one'], description: 'Read from `from` to `to`.' },
  },
  ['from', 'to', 'kind'],
  'A link between two entities, as a foreign key makes it.',
);

const side = closed(
  {
    entity: NAME_RULE,
    columns: some(NAME_RULE, "The bridge's columns that hold the entity's primary key, in its order."),
  },
  ['entity', 'columns'],
  'One end of a bridge.',
);

const bridge = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    left: side,
    right: side,
    primary_key: some(NAME_RULE, 'Default: the columns of both sides.'),
    columns,
  },
  ['source', 'left', 'right', 'columns'],
  'A table that links many to many. It can be joined, but is no entity.',
);

const facet = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    entity: { ...NAME_RULE, description: 'The entity that the content is about.' },
    entity_key: { ...NAME_RULE, description: "The source's column that holds the entity's primary key." },
    document_id: { ...NAME_RULE, description: "The source's column that identifies a document." },
    text: { ...NAME_RULE, description: "The source's column that holds the text." },
    metadata: { ...columns, description: 'Columns that each passage carries.' },
    scalar_indexed: list(NAME_RULE, 'Metadata that filters and joins may use; `entity_key` may be one.'),
    chunking: closed(
      {
        max_chars: { type: 'integer', minimum: 100, maximum: 20_000, description: 'Default: 1200.' },
        overlap_chars: { type: 'integer', minimum: 0, maximum: 5000, description: 'Default: 150.' },
      },
      [],
      'How documents are cut into passages.',
    ),
    embedding: closed(
      { model: TEXT },
      ['model'],
      'The embedding model; default: `lexical-v1`, which works offline.',
    ),
    versions: named(
      NAME_RULE,
      closed(
        {
          redact: list(NAME_RULE, 'Sensitivity labels whose values are replaced in the text.'),
          detectors: list(NAME_RULE, 'Detectors whose matches are replaced in the text.'),
        },
        [],
        'A redaction of the content.',
      ),
      'Stored redactions of the content; each is a store of its own.',
    ),
    labels: {
      type: 'array',
      items: label,
      minItems: 1,
      maxItems: 1000,
      description:
        'What `CLASSIFY(text)` and `TAG(text)` compare passages with where the question names no labels; without it, the words of its `query`. Whoever may read the facet sees them.',
    },
    dictionary: {
      enum: ['tenant', 'key'],
      description:
        'Whose labelled values are replaced. `key`: those of the rows of its key and of what declared links lead to from there; values of other rows stay. `tenant`: those of every row, so that who may write a text learns from what is replaced which values exist. Default: key.',
    },
    retrieval: closed(
      {
        max_top_k: { type: 'integer', minimum: 1, maximum: 1000 },
        approximate: {
          type: 'boolean',
          description:
            'Allow an approximate index over large permitted sets. Its answers may miss passages, and documents that the caller may not see can change which; without it retrieval is exact.',
        },
      },
      ['max_top_k'],
      'What one retrieval may ask for.',
    ),
  },
  ['source', 'entity', 'entity_key', 'document_id', 'text', 'versions', 'retrieval'],
  'Text about an entity, to be retrieved by meaning.',
);

const metricInput = {
  type: ['string', 'object'],
  pattern: NAME_RULE.pattern,
  properties: {
    metric: NAME_RULE,
    filter: {
      ...TEXT,
      description: "One more predicate over the rows that the metric takes: `status = 'paid'`.",
    },
  },
  required: ['metric'],
  additionalProperties: false,
  description: 'A metric: its name, or `{metric, filter}`.',
} as const;

const metric = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    type: {
      enum: ['simple', 'ratio', 'derived', 'cumulative'],
      description:
        'Default: simple (`entity`, `expression`, `filter`). ratio: `numerator`, `denominator`. derived: `expression` over metrics. cumulative: `metric`, and `window` or `grain_to_date`.',
    },
    entity: { ...NAME_RULE, description: 'Of a simple metric: the entity whose rows it aggregates.' },
    expression: {
      ...TEXT,
      description:
        "An aggregate over the entity's columns: `sum(amount)`; of a derived metric, an expression over metrics: `revenue - refunds`.",
    },
    filter: { ...TEXT, description: "A predicate over the entity's columns: `status = 'paid'`." },
    numerator: metricInput,
    denominator: metricInput,
    metric: { ...NAME_RULE, description: 'The metric that a cumulative one adds up.' },
    window: {
      type: 'string',
      pattern: '^ *[1-9][0-9]{0,3} +(second|minute|hour|day|week|month|quarter|year)s? *$',
      description: 'How far back a cumulative metric looks from the end of each period: `7 days`, `1 month`.',
    },
    grain_to_date: {
      enum: GRAINS,
      description: 'A cumulative metric begins anew with each of these: `month` gives month to date.',
    },
  },
  [],
  'A named figure.',
);

const term = closed(
  {
    refers_to: { ...TEXT, description: 'An entity, `entity.column`, a metric or a facet.' },
    synonyms: list(TEXT, 'Other words for the same.'),
  },
  ['refers_to'],
  'What a business word means.',
);

const rawSql = closed(
  {
    allow: list(
      { ...source, description: 'A table: `connector.schema.table`, or `{connector, table}`.' },
      'Tables that raw SQL may name; each must be the source of exactly one entity or bridge, whose policy holds.',
    ),
  },
  ['allow'],
  'SQL over tables, for callers who have it already. Without this there is none.',
);

const traverse = closed(
  {
    max_per_hop: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000,
      description: 'What `per_hop` may be at most: rows that one hop of a walk may find. Default: 100000.',
    },
  },
  [],
  'Bounds of TRAVERSE. A walk is held in memory, a few hundred bytes a row.',
);

const features = closed(
  {
    set_operations: { type: 'boolean', description: 'UNION, INTERSECT and EXCEPT. Default: true.' },
    subqueries: {
      type: 'boolean',
      description:
        'Subqueries inside a value: scalar ones, IN and EXISTS. Derived tables and WITH are none of them. Default: true.',
    },
  },
  [],
  'What questions may be made of.',
);

/** JSON Schema (draft 7) of a manifest file. */
export const MANIFEST_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL manifest',
  ...closed(
    {
      version: { const: 1, description: 'The version of this format: 1.' },
      tenant: { ...NAME_RULE, description: 'Tokens of another tenant are refused.' },
      connectors: named(NAME_RULE, connector, 'Databases by name.'),
      entities: named(NAME_RULE, entity, 'Entities by name.'),
      relationships: named(NAME_RULE, relationship, 'Links between entities.'),
      bridges: named(NAME_RULE, bridge, 'Many-to-many links; they share one set of names with entities.'),
      facets: named(NAME_RULE, facet, 'Text facets by name.'),
      metrics: named(NAME_RULE, metric, 'Metrics by name.'),
      lexicon: named({ type: 'string', minLength: 1, maxLength: 200 }, term, 'Business words.'),
      raw_sql: rawSql,
      traverse,
      features,
    },
    ['version', 'connectors', 'entities'],
    'A semantic graph over Postgres.',
  ),
} as const;
