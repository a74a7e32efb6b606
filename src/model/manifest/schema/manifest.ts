import { declaredColumn, FEATURES, GRAINS, SCALAR_TYPES, STORED_PATTERN } from 'osl-compiler';
import { LANGUAGES } from '../../facets/retrieval-options.js';
import { MODEL_NAME, TABLE_PART } from '../name.js';
import {
  choice,
  closed,
  DEPRECATED,
  DRAFT,
  flag,
  integer,
  list,
  MODEL_RULE,
  modelName,
  NAME_RULE,
  named,
  PHYSICAL_NAME,
  ruledName,
  some,
  TEXT,
  text,
} from './json-schema.js';

const TABLE_NAME = {
  type: 'string',
  pattern: `^${TABLE_PART}\\.${TABLE_PART}$`,
  description:
    'Table with its schema: `sales.orders`; quote a part that contains a dot: `sales."orders.old"`.',
} as const;

const tableColumn = closed(
  {
    type: {
      type: 'string',
      description:
        'Postgres type with its length or precision, if any: `varchar(20)`, `numeric(12,2)`, `timestamp(3)`. A column without a declared type is not exposed.',
      examples: [
        ...SCALAR_TYPES.filter((type) => declaredColumn(type) !== null),
        ...['bit(8)', 'text[]', 'varchar(20)', 'numeric(12,2)'],
      ],
    },
    stored: {
      type: 'string',
      pattern: STORED_PATTERN,
      description:
        'Type of the column in the database, if it is none of these types or is to be treated as text anyway: `app.place`, `app.mood[]`, `inet`. The column is then read as text: `type` is `text`, or `text[]` for an array. It sorts and compares as text, except an enum with `labels`. Write `enum` before the name of an enum so that comparisons with = can use an index.',
    },
    labels: some(
      { type: 'string', pattern: '^[^\\u0000]{1,63}$' },
      'Labels of an enum, in its order. For callers who see the column unmasked, the catalog lists the enum, and values sort and compare in this order.',
    ),
    pii: flag('True for personal data; short for `sensitivity: pii`.'),
    sensitivity: ruledName(
      'Sensitivity label, for which the policy defines a mask: `pii`, `secret`, … Never guessed from names.',
    ),
    nullable: flag('True if the column may be NULL. Default: true; false for a primary key.'),
  },
  ['type'],
  'A column of the upstream table.',
);

const connector = closed(
  {
    kind: choice(
      ['pglite', 'postgres'],
      '`pglite`: the embedded engine. `postgres`: a server at the URL in `url_env`.',
    ),
    url_env: {
      type: 'string',
      pattern: '^[A-Z][A-Z0-9_]*$',
      description:
        'Name of the environment variable with the connection URL. URLs and passwords do not belong in this file.',
    },
    standbys: closed(
      {
        url_envs: some(
          {
            type: 'string',
            pattern: '^[A-Z][A-Z0-9_]*$',
          },
          'Names of the environment variables with the URLs of the standbys, one server each.',
        ),
        max_lag_ms: {
          type: 'integer',
          minimum: 100,
          maximum: 3_600_000,
          description:
            'Maximum age of what a standby answers, in milliseconds. Default: 5000. An older standby is not asked.',
        },
      },
      ['url_envs'],
      'Streaming standbys of the database, which answer queries instead of it while their data are recent enough.',
    ),
    row_security: flag(
      'True if the policy is also enforced by row security in the database; `osl row-security` writes it.',
    ),
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
  'A database and its tables.',
);

const source = {
  type: ['string', 'object'],
  pattern: `^[^.\\u0000]{1,63}\\.${TABLE_PART}\\.${TABLE_PART}$`,
  properties: { connector: NAME_RULE, table: TABLE_NAME },
  required: ['connector', 'table'],
  additionalProperties: false,
  description: 'Table with the rows: `connector.schema.table`, or `{connector, table}`.',
} as const;

const columns = {
  type: ['object', 'array'],
  propertyNames: MODEL_RULE,
  additionalProperties: {
    type: ['object', 'null'],
    properties: {
      column: { ...PHYSICAL_NAME, description: 'Upstream column. Default: the same name.' },
      description: TEXT,
    },
    additionalProperties: false,
    description: 'A column: `{column, description}`, or nothing.',
  },
  items: MODEL_RULE,
  uniqueItems: true,
  description:
    'Exposed columns, in the order of `*`: a list of names, or names with `{column, description}`.',
} as const;

const label = {
  type: ['string', 'object'],
  minLength: 1,
  properties: {
    label: TEXT,
    description: TEXT,
    examples: list(TEXT, 'Example texts for the label.'),
  },
  required: ['label'],
  additionalProperties: false,
  description: 'A label, or `{label, description, examples}`. A few words typical of the label work best.',
} as const;

const computed = closed(
  {
    expression: text(
      'Expression over one row: its columns, other computed columns, and columns of the rows it refers to, by entity or relationship: `price - cost`, `customer.country`.',
    ),
    description: TEXT,
    sensitivity: ruledName(
      'Additional label, beside those of the columns it reads. Only callers who see this label unmasked in every row have the column.',
    ),
  },
  ['expression'],
  'A column computed from others.',
);

const derived = closed(
  {
    description: TEXT,
    facet: modelName('Facet of this entity whose text is read.'),
    operator: choice(
      ['CLASSIFY', 'TAG'],
      '`CLASSIFY`: the best label. `TAG`: all labels that score at least `threshold`.',
    ),
    labels: {
      type: 'array',
      items: label,
      minItems: 1,
      description: 'Labels with which the text is compared.',
    },
    min_score: {
      type: 'number',
      minimum: -1,
      maximum: 1,
      description: 'CLASSIFY: the value is NULL if the best cosine similarity is lower.',
    },
    threshold: {
      type: 'number',
      minimum: -1,
      maximum: 1,
      description: 'TAG: minimum cosine similarity. Default: 0.2.',
    },
  },
  ['facet', 'operator', 'labels'],
  'An attribute computed from text when it is indexed.',
);

const cache = closed(
  {
    max_age: integer(1, 86_400, 'Maximum age, in seconds, of a reused result.'),
    watermark: modelName(
      'Number, date or timestamp column whose maximum grows with every change; it is checked for each query. A change that does not raise it, such as a deleted row, is noticed after `max_age`.',
    ),
    notify: flag(
      "True if the database announces changes with `notify osl_data, '<entity>'` (without a name: all entities). Default: false.",
    ),
  },
  ['max_age'],
  'Allows results to be reused for callers with the same rights who send the same query, if all entities it reads have `cache`. Without it every query reads the database.',
);

const entity = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    primary_key: some(
      MODEL_RULE,
      'Columns that identify a row. Without it there is no TRAVERSE to the entity, no `evidence`, no relationship that leads to it, and no fixed order of equal rows.',
    ),
    entity_key_columns: list(MODEL_RULE, 'Join keys: columns that joins may use. Default: the primary key.'),
    columns,
    time_dimension: modelName(
      'Date or timestamp column with the time of the event; `metric_time` of its metrics.',
    ),
    composition: choice(
      ['structured', 'structured+content', 'content'],
      'Default: `structured+content` if there are `legs`, otherwise `structured`.',
    ),
    computed: named(
      MODEL_RULE,
      computed,
      'Columns computed from others. They can be used like any column by callers who may see everything they read.',
    ),
    legs: list(MODEL_RULE, 'Facets with text about this entity.'),
    derived: named(
      MODEL_RULE,
      derived,
      'Attributes computed from text; a query that selects one is of the form Joint.',
    ),
    cache,
  },
  ['source', 'columns'],
  'A thing that can be queried, such as a customer.',
);

const ENTITY_COLUMN = {
  type: 'string',
  pattern: `^${MODEL_NAME}\\.${MODEL_NAME}$`,
  description: 'Column with its entity: `order.customer_id`.',
} as const;

function linkEnd(description: string) {
  return { anyOf: [ENTITY_COLUMN, some(ENTITY_COLUMN, description)], description } as const;
}

const relationship = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    from: linkEnd(
      'Column with its entity: `order.customer_id`; for a key of several columns a list: `[line.country, line.order_no]`.',
    ),
    to: linkEnd(
      'Primary key that `from` refers to: `customer.id`; for a key of several columns a list in the order of `from`.',
    ),
    kind: choice(['many_to_one', 'one_to_one'], 'Cardinality, from `from` to `to`.'),
  },
  ['from', 'to', 'kind'],
  'A link between two entities, like a foreign key.',
);

const side = closed(
  {
    entity: MODEL_RULE,
    columns: some(MODEL_RULE, "Columns of the bridge with the entity's primary key, in its order."),
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
    primary_key: some(MODEL_RULE, 'Default: the columns of both sides.'),
    columns,
  },
  ['source', 'left', 'right', 'columns'],
  'A table that links two entities many to many. It can be joined but is not an entity.',
);

const MODEL_URL = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  description:
    'Name of the environment variable with its URL. An API key, if needed, is in the variable of the same name with the suffix `_KEY`.',
} as const;

const reranker = closed(
  {
    protocol: choice(
      ['cohere', 'jina', 'voyage', 'tei'],
      'API of the server: `POST /rerank` below its URL, in the format of one of these.',
    ),
    url_env: MODEL_URL,
    model: text('Model name. text-embeddings-inference (`tei`) serves one model and is not sent the name.'),
    candidates: integer(1, 250, 'Maximum number of passages sent to it per query. Default: 50.'),
    timeout_ms: integer(1, 3_600_000, 'Timeout of one request, in milliseconds. Default: 10000.'),
    concurrency: integer(1, 256, 'Maximum number of concurrent requests, over all queries. Default: 4.'),
    cache_mib: integer(0, 65_536, 'Size of the score cache in MiB; 0 disables it. Default: 16.'),
    passages_per_day: integer(
      1,
      1_000_000_000,
      'Passages that may be sent for one subject per day (UTC). Default: no limit.',
    ),
  },
  ['protocol', 'url_env', 'model'],
  'An external model that orders passages by relevance to the query.',
);

const rollup = closed(
  {
    description: TEXT,
    entity: modelName('The entity whose rows are aggregated.'),
    dimensions: list(
      MODEL_RULE,
      'Columns by which queries group and filter, and which row filters and masks of the policy read: bool, integers, text, uuid, date, timestamp, timestamptz.',
    ),
    time: closed(
      {
        column: modelName('Timestamp or timestamptz column.'),
        grain: choice(GRAINS, 'Period to which it is truncated, in UTC.'),
      },
      ['column', 'grain'],
      'Time column. Queries group by its periods, and their time ranges begin and end at period boundaries.',
    ),
    measures: list(
      MODEL_RULE,
      'Aggregated columns: the count of non-NULL values; for integers and numeric the sum, also used for averages; for integers and times the minimum and maximum.',
    ),
    max_age: integer(
      1,
      31_536_000,
      'Seconds after which the rollup is no longer used until `osl rollup build` has rebuilt it.',
    ),
  },
  ['entity', 'max_age'],
  'A table of precomputed aggregates, built by `osl rollup build`. Queries that it can answer read it.',
);

const facet = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    entity: modelName('Entity that the text is about.'),
    entity_key: modelName("Column of the source with the entity's primary key."),
    document_id: modelName('Column of the source that identifies a document.'),
    text: modelName('Column of the source with the text.'),
    metadata: { ...columns, description: 'Columns returned with each passage.' },
    scalar_indexed: list(
      MODEL_RULE,
      'Metadata columns that filters and joins may use; may include `entity_key`.',
    ),
    format: choice(
      ['text', 'markdown', 'html', 'pdf'],
      'Format of the text. `html`: tags are removed, headings become Markdown headings. `pdf`: the column is `bytea`, or base64 text. Default: text.',
    ),
    chunking: closed(
      {
        by: choice(
          ['structure', 'heading', 'page', 'sentence', 'fixed'],
          'Boundaries at which documents are cut. `structure`: preferably at headings, then paragraphs, sentences, words. `heading`: the same, and each heading begins a passage. `page`: the same, and each page begins a passage. `sentence`: at sentences. `fixed`: at words, with passages as long as allowed. Default: `heading` for Markdown and HTML, `page` for PDF, otherwise `structure`.',
        ),
        max_chars: integer(100, 20_000, 'Default: 1200.'),
        overlap_chars: integer(0, 5000, 'Default: 150.'),
      },
      [],
      'Cutting of documents into passages.',
    ),
    embedding: closed(
      {
        model: TEXT,
        endpoint: closed(
          {
            protocol: choice(['openai', 'ollama', 'voyage', 'tei'], 'API of the server.'),
            url_env: MODEL_URL,
          },
          ['protocol', 'url_env'],
          'Server of the model. Default: the one at `OSL_EMBEDDINGS_URL`.',
        ),
        dimensions: integer(
          1,
          16_000,
          'Requested number of dimensions. Default: as many as the model returns.',
        ),
        query_prefix: { type: 'string', maxLength: 1000, description: 'Text put before each query.' },
        passage_prefix: { type: 'string', maxLength: 1000, description: 'Text put before each passage.' },
        half_precision: flag(
          'Store vectors as `halfvec`: 16 bits per number, half the size. Default: false.',
        ),
      },
      ['model'],
      'Embedding model. Default: `lexical-v1`, which needs nothing. `words-v1` and `sentences-v1` also work offline, with packages installed beside the gateway; `transformers:…` runs in this process; any other name is a model of the endpoint.',
    ),
    versions: named(
      NAME_RULE,
      closed(
        {
          redact: list(NAME_RULE, 'Sensitivity labels; values of their columns are replaced in the text.'),
          detectors: list(NAME_RULE, 'Detectors; their matches are replaced in the text.'),
          phone_countries: list(
            { type: 'string', pattern: '^[A-Z]{2}$' },
            'Countries (ISO 3166-1) whose national phone number formats the detector `phone` also finds.',
          ),
        },
        [],
        'A redacted version of the text.',
      ),
      'Redacted versions of the text; each is stored separately.',
    ),
    labels: {
      type: 'array',
      items: label,
      minItems: 1,
      maxItems: 1000,
      description:
        'Labels with which `CLASSIFY(text)` and `TAG(text)` compare passages if the query names none. Default: the words of its `query`. Everyone who may read the facet sees them.',
    },
    dictionary: choice(
      ['tenant', 'key'],
      'Rows whose labelled values are replaced. `key`: the rows with the key of the text and those that declared links lead to from there; values of other rows stay. `tenant`: all rows; then anyone who can write a text learns from the replacements which values exist. Default: key.',
    ),
    exceptions: list(
      TEXT,
      'Labelled values that are ordinary words, such as a person named ReadMe. They are not replaced, in any case and form, for anyone. `osl index` and `osl doctor` suggest missing ones.',
    ),
    retrieval: closed(
      {
        max_top_k: { type: 'integer', minimum: 1, maximum: 1000 },
        approximate: flag(
          'Allow an approximate index for large sets of permitted passages. Results may miss passages, and which ones may depend on documents that the caller cannot see. Without it retrieval is exact.',
        ),
        hybrid: flag(
          'Also find passages by their words, from a separate index; RETRIEVE combines both unless its `mode` says otherwise.',
        ),
        rerankers: some(
          NAME_RULE,
          'Rerankers to which passages may be sent if a grant has `decode: true` and RETRIEVE requests one; `rerank => true` means the first.',
        ),
        language: choice(
          LANGUAGES,
          'Language of the text, by its English name: used for word forms, stop words, and splitting Chinese, Japanese and Thai into words. Default: English.',
        ),
      },
      ['max_top_k'],
      'Options and limits of retrieval.',
    ),
  },
  ['source', 'entity', 'entity_key', 'document_id', 'text', 'versions', 'retrieval'],
  'Text about an entity, searchable by meaning.',
);

const metricInput = {
  type: ['string', 'object'],
  pattern: MODEL_RULE.pattern,
  properties: {
    metric: MODEL_RULE,
    filter: text("Additional predicate over the metric's rows: `status = 'paid'`."),
  },
  required: ['metric'],
  additionalProperties: false,
  description: 'A metric: its name, or `{metric, filter}`.',
} as const;

const metricFormat = closed(
  {
    kind: choice(['number', 'percent', 'currency'], 'percent: 0.25 is shown as 25 %.'),
    currency: { type: 'string', pattern: '^[A-Z]{3}$', description: 'ISO 4217 code of the currency: `EUR`.' },
    unit: {
      type: 'string',
      minLength: 1,
      maxLength: 20,
      description: 'Unit of a number: `kg`.',
    },
    decimals: integer(0, 10, 'Number of decimal places.'),
  },
  ['kind'],
  'Display format. Schema and responses contain it, and `osl query` uses it; values are unchanged.',
);

const WINDOW = '^ *[1-9][0-9]{0,3} +(second|minute|hour|day|week|month|quarter|year)s? *$';

const sameColumns = closed(
  {
    base: modelName("Column of the base metric's entity."),
    conversion: modelName("Column of the conversion metric's entity with the same value."),
  },
  ['base', 'conversion'],
  'A pair of columns.',
);

const metric = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    type: choice(
      ['simple', 'ratio', 'derived', 'cumulative', 'offset', 'conversion'],
      'simple (default): `entity`, `expression`, `filter`. ratio: `numerator`, `denominator`. derived: `expression` over metrics. cumulative: `metric`, and `window` or `grain_to_date`. offset: `metric`, and `offset_window` or `offset_to_grain`. conversion: `base`, `conversion`, what must be equal in both (`entity`, `constant_properties`), and `window`.',
    ),
    entity: modelName(
      'Simple metric: the entity whose rows are aggregated. Conversion: the entity to which the rows of `base` and of `conversion` both lead, by one relationship each.',
    ),
    expression: text(
      "Aggregate over the entity's columns: `sum(amount)`; for a derived metric an expression over metrics: `revenue - refunds`.",
    ),
    filter: text(
      "Predicate over the entity's columns and those of linked rows: `status = 'paid' and buyer.region = 'eu'`.",
    ),
    numerator: metricInput,
    denominator: metricInput,
    metric: modelName(
      'Metric that a cumulative metric accumulates, or whose earlier value an offset metric returns.',
    ),
    window: {
      type: 'string',
      pattern: WINDOW,
      description:
        'Cumulative metric: length of the window before the end of each period: `7 days`, `1 month`. Conversion: maximum time between an event and the one that follows.',
    },
    grain_to_date: choice(
      GRAINS,
      'Period at whose start a cumulative metric restarts: `month` gives month to date.',
    ),
    format: metricFormat,
    offset_window: {
      type: 'string',
      pattern: WINDOW,
      description:
        'Distance to the earlier period whose value an offset metric returns: `1 month`, `1 year`.',
    },
    offset_to_grain: choice(
      GRAINS,
      'An offset metric returns the value of the first period within this one: `year`, by month, gives January.',
    ),
    base: modelName('Conversion: a simple metric; each of its rows is a starting event.'),
    conversion: modelName('Conversion: a simple metric over the events that follow; these are counted.'),
    constant_properties: {
      type: 'array',
      items: sameColumns,
      minItems: 1,
      maxItems: 16,
      description: 'Conversion: columns in which an event and the one that follows must be equal.',
    },
    calculation: choice(
      ['conversion_rate', 'conversions'],
      'Conversion: `conversion_rate` (default) divides the value of the following events by that of `base`; `conversions` returns it alone.',
    ),
  },
  [],
  'A named aggregate.',
);

const term = closed(
  {
    refers_to: text('Entity, `entity.column`, metric or facet.'),
    synonyms: list(TEXT, 'Synonyms.'),
  },
  ['refers_to'],
  'A business term.',
);

const rawSql = closed(
  {
    // Not `uniqueItems`: the compiler finds repeated tables, also in different notations.
    allow: {
      type: 'array',
      items: { ...source, description: 'Table: `connector.schema.table`, or `{connector, table}`.' },
      description:
        'Tables that raw SQL may name. Each must be the source of exactly one entity or bridge, whose policy applies.',
    },
  },
  ['allow'],
  'SQL over the original table names, for existing queries. Without this key it is disabled.',
);

const traverse = closed(
  {
    max_per_hop: integer(
      1,
      1_000_000,
      'Maximum of `per_hop`: distinct keys that one hop may reach. Default: 100000.',
    ),
  },
  [],
  'Limits of TRAVERSE. A traversal is held in memory, a few hundred bytes per row.',
);

const operators = closed(
  {
    max_rows: integer(1, 50_000, 'Maximum number of rows for the operators of one SELECT. Default: 10000.'),
  },
  [],
  'Limits of operators over entity rows, such as CLASSIFY(body). A vector of 4 kB is held in memory for each row.',
);

const features = closed(
  {
    joins: choice(
      ['declared', 'any'],
      'Allowed joins: `declared` allows only equality of join keys (`entity_key_columns`), also in subqueries and WITH; `any` allows any predicate, or none, as BI tools need. Default: declared.',
    ),
    ...Object.fromEntries(
      Object.entries(FEATURES).map(([name, { description }]) => [
        name,
        flag(`${description} Default: true.`),
      ]),
    ),
  },
  [],
  'Parts of the language that are enabled.',
);

/** JSON Schema (draft 7) of a manifest file. */
export const MANIFEST_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL manifest',
  ...closed(
    {
      version: { const: 1, description: 'Version of this format: 1.' },
      tenant: ruledName('Owner of the model; tokens of another tenant are refused.'),
      connectors: named(NAME_RULE, connector, 'Databases by name.'),
      entities: named(MODEL_RULE, entity, 'Entities by name.'),
      relationships: named(MODEL_RULE, relationship, 'Links between entities, by name.'),
      bridges: named(
        MODEL_RULE,
        bridge,
        'Many-to-many links by name; the names must differ from those of entities.',
      ),
      rollups: named(NAME_RULE, rollup, 'Rollups (pre-aggregations) by name.'),
      rerankers: named(NAME_RULE, reranker, 'Rerankers by name.'),
      facets: named(MODEL_RULE, facet, 'Text facets by name.'),
      metrics: named(MODEL_RULE, metric, 'Metrics by name.'),
      lexicon: named({ type: 'string', minLength: 1, maxLength: 200 }, term, 'Business terms.'),
      raw_sql: rawSql,
      traverse,
      operators,
      features,
    },
    ['version', 'connectors', 'entities'],
    'A semantic model over Postgres.',
  ),
} as const;
