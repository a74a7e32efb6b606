import { declaredColumn, FEATURES, GRAINS, SCALAR_TYPES, STORED_PATTERN } from 'osl-compiler';
import { LANGUAGES } from '../../facets/languages.js';
import { MODEL_NAME } from '../name.js';
import { TABLE_PART } from '../table-name.js';
import {
  closed,
  DEPRECATED,
  DRAFT,
  list,
  MODEL_RULE,
  NAME_RULE,
  named,
  PHYSICAL_NAME,
  some,
  TEXT,
} from './parts.js';

const TABLE_NAME = {
  type: 'string',
  pattern: `^${TABLE_PART}\\.${TABLE_PART}$`,
  description:
    'A table is written with its schema: `sales.orders`; a part with a dot in quotes: `sales."orders.old"`.',
} as const;

const tableColumn = closed(
  {
    type: {
      type: 'string',
      description:
        'The Postgres type, with its length or precision where it has one: `varchar(20)`, `numeric(12,2)`, `timestamp(3)`. A column without a declared type is not exposed.',
      examples: [
        ...SCALAR_TYPES.filter((type) => declaredColumn(type) !== null),
        ...['bit(8)', 'text[]', 'varchar(20)', 'numeric(12,2)'],
      ],
    },
    stored: {
      type: 'string',
      pattern: STORED_PATTERN,
      description:
        'The type that the database has for it, where it is none of these, or is to be read, masked and joined as text all the same: `app.place`, `app.mood[]`, `inet`. Its text is read, and `type` is `text`, of an array `text[]`; order and equality are those of the text, but for an enum with `labels`. Before the name of an enum, `enum` has an index on the column serve equality.',
    },
    labels: some(
      { type: 'string', pattern: '^[^\\u0000]{1,63}$' },
      'The labels of an enum, in its order: who sees the column unmasked finds the enum in the catalog, and has its values sorted and compared in this order.',
    ),
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
  pattern: `^[^.\\u0000]{1,63}\\.${TABLE_PART}\\.${TABLE_PART}$`,
  properties: { connector: NAME_RULE, table: TABLE_NAME },
  required: ['connector', 'table'],
  additionalProperties: false,
  description: 'Where the rows are: `connector.schema.table`, or `{connector, table}`.',
} as const;

const columns = {
  type: ['object', 'array'],
  propertyNames: MODEL_RULE,
  additionalProperties: {
    type: ['object', 'null'],
    properties: {
      column: { ...PHYSICAL_NAME, description: 'The upstream column; default: the same name.' },
      description: TEXT,
    },
    additionalProperties: false,
    description: 'A column: `{column, description}`, or nothing.',
  },
  items: MODEL_RULE,
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

const computed = closed(
  {
    expression: {
      ...TEXT,
      description:
        'A value of one row, over its columns, its other computed ones, and those of the rows that it refers to, by entity or relationship: `price - cost`, `customer.country`.',
    },
    description: TEXT,
    sensitivity: {
      ...NAME_RULE,
      description:
        'A label of its own, beside those of what it reads: only who is shown it in the clear in every row has the column.',
    },
  },
  ['expression'],
  'A column that stands in no table.',
);

const derived = closed(
  {
    description: TEXT,
    facet: { ...MODEL_RULE, description: 'The facet, about this entity, whose text is read.' },
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

const cache = closed(
  {
    max_age: {
      type: 'integer',
      minimum: 1,
      maximum: 86_400,
      description: 'Seconds for which an answer may be given again, at most.',
    },
    watermark: {
      ...MODEL_RULE,
      description:
        'A number, date or timestamp column whose greatest value every change makes greater: it is looked at for each question. What leaves it alone, as deleting a row does, is seen after `max_age`.',
    },
    notify: {
      type: 'boolean',
      description:
        "Whether the database says that rows changed, by `notify osl_data, '<entity>'`; without a name it is about all entities. Default: false.",
    },
  },
  ['max_age'],
  'Answers that read this entity, and others with `cache` alone, may be given again to callers of the same rights who ask the same. Without it every answer is of now.',
);

const entity = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    primary_key: some(
      MODEL_RULE,
      'Columns of the entity that identify a row. Without it there is no TRAVERSE to it, no `evidence`, no relationship that leads to it and no order among equal rows.',
    ),
    entity_key_columns: list(MODEL_RULE, 'Columns that joins may use; default: the primary key.'),
    columns,
    time_dimension: {
      ...MODEL_RULE,
      description:
        'The date or timestamp column that says when a row happened: `metric_time` of its metrics.',
    },
    composition: {
      enum: ['structured', 'structured+content', 'content'],
      description: 'Default: `structured+content` where there are legs, else `structured`.',
    },
    computed: named(
      MODEL_RULE,
      computed,
      'Columns that are worked out of others; to be used like any column, by who may see all that they read.',
    ),
    legs: list(MODEL_RULE, 'Facets that hold content about this entity.'),
    derived: named(MODEL_RULE, derived, 'Attributes taken from content; selecting one makes a query Joint.'),
    cache,
  },
  ['source', 'columns'],
  'A thing that questions are asked about.',
);

const ENTITY_COLUMN = {
  type: 'string',
  pattern: `^${MODEL_NAME}\\.${MODEL_NAME}$`,
  description: 'A column is written with its entity: `order.customer_id`.',
} as const;

function linkEnd(description: string) {
  return { anyOf: [ENTITY_COLUMN, some(ENTITY_COLUMN, description)], description } as const;
}

const relationship = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    from: linkEnd(
      'A column is written with its entity: `order.customer_id`; of several, each: `[line.country, line.order_no]`.',
    ),
    to: linkEnd(
      'The primary key that `from` refers to: `customer.id`; of several columns, each, in the order of `from`.',
    ),
    kind: { enum: ['many_to_one', 'one_to_one'], description: 'Read from `from` to `to`.' },
  },
  ['from', 'to', 'kind'],
  'A link between two entities, as a foreign key makes it.',
);

const side = closed(
  {
    entity: MODEL_RULE,
    columns: some(MODEL_RULE, "The bridge's columns that hold the entity's primary key, in its order."),
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
  'A table that links many to many. It can be joined, but is no entity.',
);

const MODEL_URL = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  description:
    'The variable with its URL; its key, if it wants one, is in the variable of that name with `_KEY` behind it.',
} as const;

const reranker = closed(
  {
    protocol: {
      enum: ['cohere', 'jina', 'voyage', 'tei'],
      description: 'What the server speaks: `POST /rerank` below its URL, as each of these has it.',
    },
    url_env: MODEL_URL,
    model: { ...TEXT, description: 'Its model; text-embeddings-inference (`tei`) has one and is not told.' },
    candidates: {
      type: 'integer',
      minimum: 1,
      maximum: 250,
      description: 'How many passages it is sent for a question, at most. Default: 50.',
    },
    timeout_ms: {
      type: 'integer',
      minimum: 1,
      maximum: 3_600_000,
      description: 'Milliseconds for one request to it. Default: 10000.',
    },
    concurrency: {
      type: 'integer',
      minimum: 1,
      maximum: 256,
      description: 'Requests to it at a time, over all questions. Default: 4.',
    },
    cache_mib: {
      type: 'integer',
      minimum: 0,
      maximum: 65_536,
      description: 'MiB of its scores that are remembered; 0 for none. Default: 16.',
    },
    passages_per_day: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000_000,
      description: 'Passages that one subject may have sent to it in a day (UTC). Default: no bound.',
    },
  },
  ['protocol', 'url_env', 'model'],
  'A model elsewhere that orders passages by how well they answer the query.',
);

const rollup = closed(
  {
    description: TEXT,
    entity: { ...MODEL_RULE, description: 'The entity whose rows are aggregated.' },
    dimensions: list(
      MODEL_RULE,
      'Columns by which questions group and filter, and which row filters and masks of the policy read: bool, integers, text, uuid, date, timestamp, timestamptz.',
    ),
    time: closed(
      {
        column: { ...MODEL_RULE, description: 'A timestamp or timestamptz column.' },
        grain: { enum: GRAINS, description: 'The period of UTC that is kept of it.' },
      },
      ['column', 'grain'],
      'A moment by whose periods questions group, and on whose first moments they begin and end.',
    ),
    measures: list(
      MODEL_RULE,
      'Columns that are aggregated: how many are not NULL; of integers and numeric their sum, from which averages are made; of integers and times the least and the greatest.',
    ),
    max_age: {
      type: 'integer',
      minimum: 1,
      maximum: 31_536_000,
      description: 'Seconds after which it is not used any more, until `osl rollup build` has built it anew.',
    },
  },
  ['entity', 'max_age'],
  'A table of what was aggregated before, built by `osl rollup build`; a question that it can answer is answered from it.',
);

const facet = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    source,
    entity: { ...MODEL_RULE, description: 'The entity that the content is about.' },
    entity_key: { ...MODEL_RULE, description: "The source's column that holds the entity's primary key." },
    document_id: { ...MODEL_RULE, description: "The source's column that identifies a document." },
    text: { ...MODEL_RULE, description: "The source's column that holds the text." },
    metadata: { ...columns, description: 'Columns that each passage carries.' },
    scalar_indexed: list(MODEL_RULE, 'Metadata that filters and joins may use; `entity_key` may be one.'),
    format: {
      enum: ['text', 'markdown', 'html', 'pdf'],
      description:
        'What the text is written in. `html`: it is read without its tags, headings as Markdown has them. `pdf`: the column is `bytea`, or text in base64. Default: text.',
    },
    chunking: closed(
      {
        by: {
          enum: ['structure', 'heading', 'page', 'sentence', 'fixed'],
          description:
            '`structure`: cuts are best at headings, then paragraphs, sentences, words. `heading`: so too, and each heading begins a passage. `page`: so too, and each page does. `sentence`: at sentences. `fixed`: at words, each passage as long as it may be. Default: `heading` of Markdown and HTML, `page` of PDF, else `structure`.',
        },
        max_chars: { type: 'integer', minimum: 100, maximum: 20_000, description: 'Default: 1200.' },
        overlap_chars: { type: 'integer', minimum: 0, maximum: 5000, description: 'Default: 150.' },
      },
      [],
      'How documents are cut into passages.',
    ),
    embedding: closed(
      {
        model: TEXT,
        endpoint: closed(
          {
            protocol: { enum: ['openai', 'ollama', 'voyage', 'tei'], description: 'What the server speaks.' },
            url_env: MODEL_URL,
          },
          ['protocol', 'url_env'],
          'The server of the model; default: the one at `OSL_EMBEDDINGS_URL`.',
        ),
        dimensions: {
          type: 'integer',
          minimum: 1,
          maximum: 16_000,
          description: 'How many numbers of a vector are asked for; default: as many as the model gives.',
        },
        query_prefix: { type: 'string', maxLength: 1000, description: 'Put before each query.' },
        passage_prefix: { type: 'string', maxLength: 1000, description: 'Put before each passage.' },
        half_precision: {
          type: 'boolean',
          description: 'Keep vectors as `halfvec`: half the store, 16 bits a number. Default: false.',
        },
      },
      ['model'],
      'The embedding model; default: `lexical-v1`, which needs nothing. `words-v1` and `sentences-v1` work offline too, by packages that are installed beside the gateway; `transformers:…` in this process; any other is of the endpoint.',
    ),
    versions: named(
      NAME_RULE,
      closed(
        {
          redact: list(NAME_RULE, 'Sensitivity labels whose values are replaced in the text.'),
          detectors: list(NAME_RULE, 'Detectors whose matches are replaced in the text.'),
          phone_countries: list(
            { type: 'string', pattern: '^[A-Z]{2}$' },
            'Countries (ISO 3166-1) whose phone numbers `phone` also finds as they are written at home.',
          ),
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
    exceptions: list(
      TEXT,
      'Labelled values that are words, such as a person called ReadMe: they stay in the text, in any case and form, for everybody. `osl index` and `osl doctor` name those that are probably missing.',
    ),
    retrieval: closed(
      {
        max_top_k: { type: 'integer', minimum: 1, maximum: 1000 },
        approximate: {
          type: 'boolean',
          description:
            'Allow an approximate index over large permitted sets. Its answers may miss passages, and documents that the caller may not see can change which; without it retrieval is exact.',
        },
        hybrid: {
          type: 'boolean',
          description:
            'Beside the embedding model, passages are found by their words too, from a store of their own; RETRIEVE fuses both unless its `mode` says otherwise.',
        },
        rerankers: some(
          NAME_RULE,
          'Rerankers that its passages may be sent to, where a grant says `decode: true` and RETRIEVE asks for one; `rerank => true` means the first.',
        ),
        language: {
          enum: LANGUAGES,
          description:
            'The language of the text, as its English name: words are found in their other forms, its stop words are left out, and words of Chinese, Japanese and Thai are told apart. Without it words are read as English.',
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
  pattern: MODEL_RULE.pattern,
  properties: {
    metric: MODEL_RULE,
    filter: {
      ...TEXT,
      description: "One more predicate over the rows that the metric takes: `status = 'paid'`.",
    },
  },
  required: ['metric'],
  additionalProperties: false,
  description: 'A metric: its name, or `{metric, filter}`.',
} as const;

const metricFormat = closed(
  {
    kind: {
      enum: ['number', 'percent', 'currency'],
      description: 'percent: a figure of 0.25 is shown as 25 %.',
    },
    currency: { type: 'string', pattern: '^[A-Z]{3}$', description: 'Of a currency: its code, `EUR`.' },
    unit: {
      type: 'string',
      minLength: 1,
      maxLength: 20,
      description: 'Of a number: what is counted or measured, `kg`.',
    },
    decimals: { type: 'integer', minimum: 0, maximum: 10, description: 'Digits behind the point.' },
  },
  ['kind'],
  'How its figures are meant to be shown. Schema and answers tell it, and `osl query` follows it; values stay as they are.',
);

const WINDOW = '^ *[1-9][0-9]{0,3} +(second|minute|hour|day|week|month|quarter|year)s? *$';

const sameColumns = closed(
  {
    base: { ...MODEL_RULE, description: "A column of the base metric's entity." },
    conversion: { ...MODEL_RULE, description: "The column of the conversion metric's entity that is equal." },
  },
  ['base', 'conversion'],
  'A pair of columns.',
);

const metric = closed(
  {
    description: TEXT,
    deprecated: DEPRECATED,
    type: {
      enum: ['simple', 'ratio', 'derived', 'cumulative', 'offset', 'conversion'],
      description:
        'Default: simple (`entity`, `expression`, `filter`). ratio: `numerator`, `denominator`. derived: `expression` over metrics. cumulative: `metric`, and `window` or `grain_to_date`. offset: `metric`, and `offset_window` or `offset_to_grain`. conversion: `base`, `conversion`, what is equal in both (`entity`, `constant_properties`), and `window`.',
    },
    entity: {
      ...MODEL_RULE,
      description:
        'Of a simple metric: the entity whose rows it aggregates. Of a conversion: the entity that the rows of `base` and of `conversion` both lead to, by one relationship each.',
    },
    expression: {
      ...TEXT,
      description:
        "An aggregate over the entity's columns: `sum(amount)`; of a derived metric, an expression over metrics: `revenue - refunds`.",
    },
    filter: {
      ...TEXT,
      description:
        "A predicate over the entity's columns, and over those that a row leads to: `status = 'paid' and buyer.region = 'eu'`.",
    },
    numerator: metricInput,
    denominator: metricInput,
    metric: {
      ...MODEL_RULE,
      description: 'The metric that a cumulative one adds up, or whose earlier figure an offset one is.',
    },
    window: {
      type: 'string',
      pattern: WINDOW,
      description:
        'How far back a cumulative metric looks from the end of each period: `7 days`, `1 month`; of a conversion, how long after an event one may follow it.',
    },
    grain_to_date: {
      enum: GRAINS,
      description: 'A cumulative metric begins anew with each of these: `month` gives month to date.',
    },
    format: metricFormat,
    offset_window: {
      type: 'string',
      pattern: WINDOW,
      description: 'How much earlier the period is whose figure an offset metric is: `1 month`, `1 year`.',
    },
    offset_to_grain: {
      enum: GRAINS,
      description:
        'An offset metric is the figure of the first period in each of these: `year` by month gives January.',
    },
    base: {
      ...MODEL_RULE,
      description: 'Of a conversion: a simple metric; each row that it takes is an event to start from.',
    },
    conversion: {
      ...MODEL_RULE,
      description: 'Of a conversion: a simple metric over the events that follow, which are what is counted.',
    },
    constant_properties: {
      type: 'array',
      items: sameColumns,
      minItems: 1,
      maxItems: 16,
      description: 'Of a conversion: columns in which an event and the one that follows it are equal.',
    },
    calculation: {
      enum: ['conversion_rate', 'conversions'],
      description:
        'Of a conversion: the figure of what followed, over that of `base` (conversion_rate, the default) or by itself.',
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
      description:
        'What `per_hop` may be at most: distinct keys that one hop of a walk may reach. Default: 100000.',
    },
  },
  [],
  'Bounds of TRAVERSE. A walk is held in memory, a few hundred bytes a row.',
);

const operators = closed(
  {
    max_rows: {
      type: 'integer',
      minimum: 1,
      maximum: 50_000,
      description: 'Rows that operators of one SELECT may work on. Default: 10000.',
    },
  },
  [],
  'Bounds of operators over rows of entities, such as CLASSIFY(body). A vector of 4 kB is held for each row.',
);

const features = closed(
  {
    joins: {
      enum: ['declared', 'any'],
      description:
        'What relations may be joined on: `declared` takes equalities of sealed keys alone, derived and common tables included; `any` takes any predicate, or none, as BI tools need. Default: declared.',
    },
    ...Object.fromEntries(
      Object.entries(FEATURES).map(([name, { description }]) => [
        name,
        { type: 'boolean', description: `${description} Default: true.` },
      ]),
    ),
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
      entities: named(MODEL_RULE, entity, 'Entities by name.'),
      relationships: named(MODEL_RULE, relationship, 'Links between entities.'),
      bridges: named(MODEL_RULE, bridge, 'Many-to-many links; they share one set of names with entities.'),
      rollups: named(NAME_RULE, rollup, 'Pre-aggregations, by their names.'),
      rerankers: named(NAME_RULE, reranker, 'Rerankers by name.'),
      facets: named(MODEL_RULE, facet, 'Text facets by name.'),
      metrics: named(MODEL_RULE, metric, 'Metrics by name.'),
      lexicon: named({ type: 'string', minLength: 1, maxLength: 200 }, term, 'Business words.'),
      raw_sql: rawSql,
      traverse,
      operators,
      features,
    },
    ['version', 'connectors', 'entities'],
    'A semantic graph over Postgres.',
  ),
} as const;
