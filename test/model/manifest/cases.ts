import { edited, MANIFEST } from './base.js';

/** One change to a good file, and everything that its author is told: `line:column-column CODE message (hint)`. */
export interface Case {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Further changes, each after the one before. */
  readonly and?: readonly (readonly [from: string, to: string])[];
  readonly told: readonly string[];
}

export const MANIFEST_CASES: readonly Case[] = [
  {
    name: 'a tab as indentation',
    from: '  db:\n    kind: pglite',
    to: '  db:\n\tkind: pglite',
    told: ['4:1-2 M0003 tabs are not allowed as indentation (indent with spaces)'],
  },
  {
    name: 'an unclosed bracket',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id\n    entity_key',
    told: ['26:5-6 M0003 flow sequence in block collection must be sufficiently indented and end with a ]'],
  },
  {
    name: 'a repeated key',
    from: 'version: 1',
    to: 'version: 1\nversion: 1',
    told: ['2:1-8 M0004 `version` is given twice'],
  },
  {
    name: 'a repeated entity',
    from: '  customer:\n',
    to: '  order:\n',
    told: ['28:3-8 M0004 `order` is given twice'],
  },
  {
    name: 'a second document',
    from: 'lexicon:\n',
    to: '---\nlexicon:\n',
    told: ['55:1-58:1 M0003 the file holds more than one document'],
  },
  {
    name: 'an alias without anchor',
    from: 'expression: sum(amount)',
    to: 'expression: *sum',
    told: ['54:29-39 M0006 the alias `*sum` has no anchor before it'],
  },
  {
    name: 'an alias that holds itself',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: &a [*a]\n    entity_key',
    told: ['25:22-24 M0005 the file has more than 32 levels'],
  },
  {
    name: 'a link of two columns to one',
    from: 'from: order.customer_id, to',
    to: 'from: [order.customer_id, order.id], to',
    told: [
      '41:21-25 M2005 `from` has 2 columns and `to` one column (give one column of `from` for each of `to`, in its order)',
    ],
  },
  {
    name: 'a link of two columns of two entities',
    from: 'from: order.customer_id, to',
    to: 'from: [order.customer_id, customer.id], to',
    told: [
      '41:47-58 M2005 `customer.id` is not a column of `order` (one end of a link is columns of one entity)',
    ],
  },
  {
    name: 'a link of two columns to less than a key',
    from: 'from: order.customer_id, to: customer.id',
    to: 'from: [order.id, order.customer_id], to: [order.id, order.customer_id]',
    told: [
      '41:58-60 M2007 `order.id`, `order.customer_id` are not unique (the primary key of `order` is id)',
    ],
  },
  {
    name: 'a computed column of an aggregate',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "sum(amount)" } }\n',
    told: [
      '28:34-47 M2011 aggregate `sum` is not allowed in a computed column (work it out in a derived table first)',
    ],
  },
  {
    name: 'a computed column of a subquery',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "(select 1)" } }\n',
    told: ['28:34-46 M2011 a subquery as a value here is not part of OSL-SQL'],
  },
  {
    name: 'a computed column of a parameter',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "$1" } }\n',
    told: ['28:34-38 M2011 $n in a computed column is not part of OSL-SQL'],
  },
  {
    name: 'a computed column of a window',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "row_number() over ()" } }\n',
    told: [
      '28:34-56 M2011 window calls are not allowed in a computed column (work it out in a derived table first)',
    ],
  },
  {
    name: 'a computed column of an unknown column',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "amont" } }\n',
    told: ['28:34-41 M2011 column `amont` is not declared'],
  },
  {
    name: 'a computed column of a way to several',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "tag.weight" } }\n',
    told: ['28:34-46 M2011 object `tag` is not declared'],
  },
  {
    name: 'a computed column of an unknown parent',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "buyers.tax" } }\n',
    told: ['28:34-46 M2011 object `buyers` is not declared'],
  },
  {
    name: 'a computed column of a parent whose name is nearly right',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "custmer.tax" } }\n',
    told: ['28:34-47 M2011 object `custmer` is not declared (perhaps you meant `customer`)'],
  },
  {
    name: 'a computed column of itself',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "c + 1" } }\n',
    told: ['28:34-41 M2011 `order.c` as a part of itself is not part of OSL-SQL'],
  },
  {
    name: 'a computed column of a metric',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "measure(revenue)" } }\n',
    told: [
      '28:34-52 M2011 MEASURE inside of a metric is not part of OSL-SQL (make a derived metric of them)',
    ],
  },
  {
    name: 'a computed column of what depends on a setting',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "id || now()::text" } }\n',
    told: [
      "28:34-53 M2011 timestamptz as text depends on the settings of the session, which policy, metrics and computed columns must not (use to_char(… at time zone 'UTC', '…'))",
    ],
  },
  {
    name: 'a computed column of two expressions',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "1, 2" } }\n',
    told: ['28:34-40 M2011 one expression is needed here'],
  },
  {
    name: 'a computed column of a column of the wrong type',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "upper(amount)" } }\n',
    told: [
      '28:34-49 M2011 function `upper(numeric)` is not part of OSL-SQL (there is upper(text), upper(anyrange), upper(anymultirange))',
    ],
  },
  {
    name: 'a computed column under the name of a column',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { Amount: { expression: "1" }, evidence: { expression: "1" } }\n',
    told: [
      '28:17-23 M2002 `Amount` is also the name of column `amount`',
      '28:46-54 M2010 `evidence` has a meaning of its own in OSL-SQL',
    ],
  },
  {
    name: 'a computed column of another database',
    from: '    source: { connector: db, table: sales.customers }',
    to: '    source: { connector: elsewhere, table: sales.customers }',
    and: [
      [
        'connectors:\n',
        `connectors:\n  elsewhere: { kind: pglite, tables: { sales.customers: { columns: { id: { type: int4 }, tax_no: { type: text } } } } }\n`,
      ],
      [
        'bridges:\n  tag:\n    source: db.sales.tags\n    left: { entity: order, columns: [order_id] }\n    right: { entity: customer, columns: [customer_id] }\n    columns: [order_id, customer_id, weight]\n',
        '',
      ],
      [
        '    columns: [id, customer_id, amount]\n',
        '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "customer.tax" } }\n',
      ],
    ],
    told: ['29:34-48 M2011 a column of `customer`, which is in another database is not part of OSL-SQL'],
  },
  {
    name: 'a computed column of several ways',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { c: { expression: "customer.tax" } }\n',
    and: [
      [
        'relationships:\n',
        'relationships:\n  payer: { from: order.customer_id, to: customer.id, kind: many_to_one }\n',
      ],
    ],
    told: [
      '28:34-48 M2011 several relationships lead to `customer` (name the relationship: `payer`, `order_customer`)',
    ],
  },
  {
    name: 'more computed columns than an entity may have',
    from: '    columns: [id, customer_id, amount]\n',
    to: `    columns: [id, customer_id, amount]\n    computed: { ${Array.from({ length: 201 }, (_, i) => `c${i}: { expression: "1" }`).join(', ')} }\n`,
    told: ['28:5-13 M2009 `order` has 201 computed columns, and 200 is the most'],
  },
  {
    name: 'names in any script',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: { id: , customer_id: , "two words": { column: amount }, 日本: { column: note }, "ä b_1": { column: body } }\n',
    and: [
      [
        'sum(amount), filter: amount > 0',
        `"sum(\\"two words\\")", filter: '"two words" > 0 and 日本 is null'`,
      ],
    ],
    told: [],
  },
  {
    name: 'names that are none',
    from: '    columns: [id, customer_id, amount]\n',
    to: `    columns:\n      id:\n      customer_id:\n      amount:\n      "a.b": { column: note }\n      " a": { column: note }\n      "a  b": { column: note }\n      "a\u200db": { column: note }\n`,
    told: [
      '31:7-12 M1005 `a.b` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
      '32:7-11 M1005 ` a` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
      '33:7-13 M1005 `a  b` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
      '34:7-12 M1005 `a\u200db` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
    ],
  },
  {
    name: 'names that Postgres would cut off, and one that is not composed',
    from: '    columns: [id, customer_id, amount]\n',
    to: `    columns:\n      id:\n      customer_id:\n      amount:\n      "e\u0301": { column: note }\n      ${'ä'.repeat(32)}: { column: note }\n      ${'ä'.repeat(31)}: { column: note }\n`,
    told: [
      '31:7-11 M1005 `e\u0301` cannot be a name here (write it composed (NFC): `\u00e9`)',
      `32:7-39 M1005 \`${'ä'.repeat(32)}\` cannot be a name here (a name has 63 bytes of UTF-8 at most: give a shorter one, and the upstream one as \`column\`)`,
    ],
  },
  {
    name: 'names of the database that Postgres would truncate',
    from: '      sales.customers:\n        columns:\n',
    to: `      sales."${'c'.repeat(64)}": { columns: { id: { type: int4 } } }\n      sales.customers:\n        columns:\n          ${'ä'.repeat(32)}: { type: text }\n          ${'ä'.repeat(31)}: { type: text }\n`,
    told: [
      `13:7-79 M1005 \`${'c'.repeat(64)}\` is longer than 63 bytes of UTF-8 (Postgres truncates longer names: give the name that the database has)`,
      `16:11-43 M1005 \`${'ä'.repeat(32)}\` is longer than 63 bytes of UTF-8 (Postgres truncates longer names: give the name that the database has)`,
    ],
  },
  {
    name: 'computed columns that are sound',
    from: '    columns: [id, customer_id, amount]\n',
    to: '    columns: [id, customer_id, amount]\n    computed: { t: { expression: "order_customer.tax || d" }, d: { expression: "customer.tax" } }\n',
    told: [],
  },
  {
    name: 'an empty file',
    from: MANIFEST,
    to: '',
    told: ['1:1-1 M1001 the file must be a mapping, not nothing (A semantic model over Postgres.)'],
  },
  {
    name: 'a list instead of a mapping',
    from: MANIFEST,
    to: '- 1\n',
    told: ['1:1-4 M1001 the file must be a mapping, not a list (A semantic model over Postgres.)'],
  },
  {
    name: 'a misspelt key at the top',
    from: 'lexicon:',
    to: 'lexikon:',
    told: ['55:1-8 M1002 unknown key `lexikon` (perhaps you meant `lexicon`)'],
  },
  {
    name: 'a misspelt key below',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primarykey: [id]\n    entity_key',
    told: ['25:5-15 M1002 unknown key `primarykey` (perhaps you meant `primary_key`)'],
  },
  {
    name: 'an unrelated key',
    from: '  order:\n    source',
    to: '  order:\n    colour: red\n    source',
    told: [
      '24:5-11 M1002 unknown key `colour` (known here: description, deprecated, source, primary_key, entity_key_columns, columns, time_dimension, composition, computed, legs, derived, cache)',
    ],
  },
  {
    name: 'a merge key',
    from: '  order:\n    source',
    to: '  order:\n    <<: {}\n    source',
    told: [
      '24:5-7 M1002 unknown key `<<` (known here: description, deprecated, source, primary_key, entity_key_columns, columns, time_dimension, composition, computed, legs, derived, cache)',
    ],
  },
  {
    name: 'text for a list',
    from: 'primary_key: [id]\n    columns:',
    to: 'primary_key: id\n    columns:',
    told: [
      '30:18-20 M1001 `primary_key` must be a list, not text (Columns that identify a row. Without it there is no TRAVERSE to the entity, no `evidence`, no relationship that leads to it, and no fixed order of equal rows.)',
    ],
  },
  {
    name: 'a number for text',
    from: 'sum(amount), filter: amount > 0',
    to: '3',
    told: [
      "54:41-42 M1001 `expression` must be text, not a number (Aggregate over the entity's columns: `sum(amount)`; for a derived metric an expression over metrics: `revenue - refunds`.)",
    ],
  },
  {
    name: 'a type of values, which no column has',
    from: 'body: { type: text }',
    to: 'body: { type: json }',
    told: ['12:25-29 M2004 type `json` is not known ({ type: text, stored: json } reads the column as text)'],
  },
  {
    name: 'a length that is none',
    from: 'body: { type: text }',
    to: "body: { type: 'varchar(0)' }",
    told: ['12:25-37 M2004 type `varchar(0)` is not known (a length or precision that the type has)'],
  },
  {
    name: 'labels of what is no enum',
    from: 'tax_no: { type: varchar, sensitivity: secret }',
    to: 'tax_no: { type: text, stored: sales.tax, labels: [a, b], sensitivity: secret }',
    told: ['16:52-58 M2009 labels are those of an enum (say `stored: enum schema.name`)'],
  },
  {
    name: 'a word for a truth value',
    from: 'body: { type: text }',
    to: 'body: { type: true, pii: maybe }',
    told: [
      '12:25-29 M1001 `type` must be text, not true or false (Postgres type with its length or precision, if any: `varchar(20)`, `numeric(12,2)`, `timestamp(3)`. A column without a declared type is not exposed.)',
      '12:36-41 M1001 `pii` must be true or false, not text (True for personal data; short for `sensitivity: pii`.)',
    ],
  },
  {
    name: 'an unknown connector kind',
    from: 'kind: pglite',
    to: 'kind: pglight',
    told: [
      '4:11-18 M1004 `kind` must be one of pglite, postgres (`pglite`: the embedded engine. `postgres`: a server at the URL in `url_env`.)',
    ],
  },
  {
    name: 'another format version',
    from: 'version: 1',
    to: 'version: 2',
    told: ['1:10-11 M1004 `version` must be 1 (Version of this format: 1.)'],
  },
  {
    name: 'an entity name with a hyphen',
    from: '  customer:\n',
    to: '  my-customer:\n',
    told: [
      '28:3-14 M1005 `my-customer` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
    ],
  },
  {
    name: 'an entity named __proto__',
    from: '  customer:\n',
    to: '  __proto__:\n',
    told: [
      '28:3-12 M1005 `__proto__` cannot be a name here (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
    ],
  },
  {
    name: 'an entity named constructor without a shape',
    from: '  customer:\n    source',
    to: '  constructor: 1\n  customer:\n    source',
    told: [
      '28:16-17 M1001 `constructor` must be a mapping, not a number (A thing that can be queried, such as a customer.)',
    ],
  },
  {
    name: 'a table without schema',
    from: '      sales.tags:',
    to: '      tags:',
    told: [
      '17:7-11 M1005 `tags` cannot be a name here (Table with its schema: `sales.orders`; quote a part that contains a dot: `sales."orders.old"`.)',
    ],
  },
  {
    name: 'a source of two parts',
    from: 'source: db.sales.orders\n    primary',
    to: 'source: sales.orders\n    primary',
    told: [
      '24:13-25 M1005 `source` cannot be `sales.orders` (Table with the rows: `connector.schema.table`, or `{connector, table}`.)',
    ],
  },
  {
    name: 'a column twice in a list',
    from: 'columns: [id, customer_id, amount]',
    to: 'columns: [id, customer_id, id]',
    told: [
      '27:5-12 M1004 `columns` names `id` twice (Exposed columns, in the order of `*`: a list of names, or names with `{column, description}`.)',
    ],
  },
  {
    name: 'an empty key',
    from: 'primary_key: [id]\n    columns:',
    to: 'primary_key: []\n    columns:',
    told: [
      '30:5-16 M1004 `primary_key` must not be empty (Columns that identify a row. Without it there is no TRAVERSE to the entity, no `evidence`, no relationship that leads to it, and no fixed order of equal rows.)',
    ],
  },
  {
    name: 'a server without its URL',
    from: 'kind: pglite',
    to: 'kind: postgres',
    told: ['3:3-5 M1003 `db` has no `url_env` (name the variable that holds the URL)'],
  },
  {
    name: 'an embedded engine with a URL',
    from: 'kind: pglite',
    to: 'kind: pglite\n    url_env: X',
    told: ['5:5-12 M2009 the embedded engine has no URL (remove it, or use `kind: postgres`)'],
  },
  {
    name: 'pii and sensitivity that disagree',
    from: 'note: { type: text, pii: true }',
    to: 'note: { type: text, pii: true, sensitivity: secret }',
    told: ['11:31-34 M2009 `pii` and `sensitivity` disagree (keep one of them)'],
  },
  {
    name: 'a system schema',
    from: '      sales.tags:',
    to: '      pg_catalog.pg_class: { columns: {} }\n      sales.tags:',
    told: ['17:7-26 M2010 `pg_catalog` is a system schema (system catalogs cannot be published)'],
  },
  {
    name: 'a column without a declared type',
    from: 'columns: [id, customer_id, amount]',
    to: 'columns: [id, customer_id, amonut]',
    told: [
      '27:32-38 M2003 column `amonut` of `sales.orders` has no declared type (perhaps you meant `amount`)',
      '54:41-52 M2011 column `amount` is not declared',
    ],
  },
  {
    name: 'a column whose upstream name is not declared',
    from: 'column: tax_no',
    to: 'column: vat',
    told: [
      '33:22-25 M2003 column `vat` of `sales.customers` has no declared type (declare its type under tables.sales.customers.columns)',
    ],
  },
  {
    name: 'columns that differ in case',
    from: 'columns: [id, customer_id, amount]',
    to: 'columns: [id, customer_id, amount, ID]',
    told: ['27:40-42 M2002 column `ID` is declared twice (`id` is the same name: case does not count)'],
  },
  {
    name: 'a reserved column',
    from: 'tax: { column',
    to: 'evidence: { column',
    told: [
      '33:7-15 M2010 `evidence` has a meaning of its own in OSL-SQL (choose another name for the column)',
    ],
  },
  {
    name: 'a primary key that is not a column',
    from: 'primary_key: [id]\n    columns:',
    to: 'primary_key: [tax_no]\n    columns:',
    told: [
      '30:19-25 M2005 key `tax_no` is not a column of `customer` (a key must be among its columns)',
      '41:50-61 M2006 `customer.id` is not a sealed key, so nothing may join on it (add `id` to entity_key_columns of `customer`)',
      '41:50-61 M2007 `customer.id` is not unique (the primary key of `customer` is tax_no)',
    ],
  },
  {
    name: 'a sealed key that is not a column',
    from: 'entity_key_columns: [id, customer_id]',
    to: 'entity_key_columns: [id, customer_id, note]',
    told: ['26:43-47 M2005 key `note` is not a column of `order` (a key must be among its columns)'],
  },
  {
    name: 'a nullable primary key',
    from: 'sales.orders:\n        columns:\n          id: { type: int8 }',
    to: 'sales.orders:\n        columns:\n          id: { type: int8, nullable: true }',
    told: ['27:15-17 M2009 primary key column `id` is declared nullable'],
  },
  {
    name: 'a bridge with the name of an entity',
    from: '  tag:\n',
    to: '  Order:\n',
    told: [
      '35:3-8 M2002 `Order` is declared twice (entities and bridges share one set of names, and case does not count: `order`)',
    ],
  },
  {
    name: 'a bridge to an unknown entity',
    from: 'left: { entity: order',
    to: 'left: { entity: ordr',
    told: ['37:21-25 M2001 entity `ordr` is not declared (perhaps you meant `order`)'],
  },
  {
    name: 'a bridge to a bridge',
    from: 'left: { entity: order',
    to: 'left: { entity: tag',
    told: ['37:21-24 M2001 entity `tag` is not declared'],
  },
  {
    name: 'a bridge with too many columns on a side',
    from: 'columns: [order_id] }',
    to: 'columns: [order_id, weight] }',
    told: [
      '37:28-35 M2005 the primary key of `order` is (id), 2 columns are given (give one column for each of the key)',
    ],
  },
  {
    name: 'a bridge side of another type',
    from: 'columns: [order_id] }',
    to: 'columns: [weight] }',
    told: ['37:38-44 M2008 `weight` is float8, but `id` is int8 (both ends of a link have one type)'],
  },
  {
    name: 'a bridge side that is not a column',
    from: 'columns: [order_id, customer_id, weight]',
    to: 'columns: [order_id, weight]',
    told: ['38:42-53 M2005 key `customer_id` is not a column of `tag` (a key must be among its columns)'],
  },
  {
    name: 'a relationship from an unknown entity',
    from: 'from: order.customer_id',
    to: 'from: orders.customer_id',
    told: ['41:27-45 M2001 entity `orders` is not declared (perhaps you meant `order`)'],
  },
  {
    name: 'a relationship to an unknown column',
    from: 'to: customer.id',
    to: 'to: customer.idd',
    told: ['41:50-62 M2001 column `customer.idd` is not declared (perhaps you meant `customer.id`)'],
  },
  {
    name: 'a relationship on a column that is not sealed',
    from: 'from: order.customer_id',
    to: 'from: order.amount',
    told: [
      '41:27-39 M2006 `order.amount` is not a sealed key, so nothing may join on it (add `amount` to entity_key_columns of `order`)',
      '41:27-39 M2008 `amount` is numeric, but `id` is int4 (both ends of a link have one type)',
    ],
  },
  {
    name: 'a relationship to a column that is not unique',
    from: 'to: customer.id',
    to: 'to: order.customer_id',
    told: ['41:50-67 M2007 `order.customer_id` is not unique (the primary key of `order` is id)'],
  },
  {
    name: 'a one-to-one from a column that is not unique',
    from: 'kind: many_to_one',
    to: 'kind: one_to_one',
    told: ['41:27-44 M2007 `order.customer_id` is not unique (the primary key of `order` is id)'],
  },
  {
    name: 'a facet about an unknown entity',
    from: 'entity: order\n    entity_key',
    to: 'entity: ordre\n    entity_key',
    told: ['45:13-18 M2001 entity `ordre` is not declared (perhaps you meant `order`)'],
  },
  {
    name: 'a facet whose text is not text',
    from: 'text: body',
    to: 'text: amount',
    told: ['48:11-17 M2008 `amount` is numeric, but a facet reads text'],
  },
  {
    name: 'a language that is none',
    from: 'retrieval: { max_top_k: 50 }',
    to: 'retrieval: { max_top_k: 50, language: germann }',
    told: [
      '52:43-50 M1004 `language` must be one of arabic, armenian, danish, dutch, english, finnish, french, german, greek, hindi, hungarian, indonesian, irish, italian, nepali, norwegian, portuguese, romanian, russian, spanish, swedish, tamil, turkish, chinese, japanese, thai (perhaps you meant `german`)',
    ],
  },
  {
    name: 'a language where nothing is found by words',
    from: 'retrieval: { max_top_k: 50 }',
    to: 'embedding: { model: toy }\n    retrieval: { max_top_k: 50, language: german }',
    told: ['53:43-49 M2009 `toy` does not find by words (leave `language` out, or set `hybrid: true`)'],
  },
  {
    name: 'a facet key of another type',
    from: 'entity_key: id',
    to: 'entity_key: body',
    told: [
      '46:17-21 M2008 `body` is text, but `id` is int8 (both ends of a link have one type)',
      '50:22-24 M2001 metadata `id` is not declared',
    ],
  },
  {
    name: 'an indexed field that is no metadata',
    from: 'scalar_indexed: [id, customer_id]',
    to: 'scalar_indexed: [id, amount]',
    told: ['50:26-32 M2001 metadata `amount` is not declared'],
  },
  {
    name: 'an overlap as large as the chunk',
    from: 'retrieval: { max',
    to: 'chunking: { max_chars: 200, overlap_chars: 200 }\n    retrieval: { max',
    told: ['52:48-51 M2009 an overlap of 200 is more than half of 200 (passages would mostly repeat)'],
  },
  {
    name: 'a leg that is not a facet',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    legs: [note]\n    entity_key',
    told: ['26:12-16 M2001 facet `note` is not declared (perhaps you meant `notes`)'],
  },
  {
    name: 'an attribute derived from no facet',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { kind: { facet: note, operator: CLASSIFY, labels: [a] } }\n    entity_key',
    told: ['26:31-35 M2001 facet `note` is not declared (perhaps you meant `notes`)'],
  },
  {
    name: 'a derived attribute with the name of a column',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { amount: { facet: notes, operator: CLASSIFY, labels: [a] } }\n    entity_key',
    told: ['26:16-22 M2002 `amount` is also the name of column `amount`'],
  },
  {
    name: 'a derived attribute called evidence',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { evidence: { facet: notes, operator: CLASSIFY, labels: [a] } }\n    entity_key',
    told: ['26:16-24 M2010 `evidence` has a meaning of its own in OSL-SQL'],
  },
  {
    name: 'a derived attribute with a label twice',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { kind: { facet: notes, operator: CLASSIFY, labels: [a, a] } }\n    entity_key',
    told: ['26:16-20 M2011 CLASSIFY has label `a` twice'],
  },
  {
    name: 'a class with labels that are none',
    from: 'primary_key: [id]\n    entity_key',
    to: "primary_key: [id]\n    derived: { kind: { facet: notes, operator: CLASSIFY, labels: [' '] } }\n    entity_key",
    told: ['26:16-20 M2011 CLASSIFY needs labels that are texts, and not empty'],
  },
  {
    name: 'a class with a threshold',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { kind: { facet: notes, operator: CLASSIFY, labels: [a], threshold: 0.1 } }\n    entity_key',
    told: ['26:16-20 M2011 CLASSIFY has no argument `threshold`'],
  },
  {
    name: 'an operator that does not derive',
    from: 'primary_key: [id]\n    entity_key',
    to: 'primary_key: [id]\n    derived: { kind: { facet: notes, operator: RANK, labels: [a] } }\n    entity_key',
    told: [
      '26:48-52 M1004 `operator` must be one of CLASSIFY, TAG (`CLASSIFY`: the best label. `TAG`: all labels that score at least `threshold`.)',
    ],
  },
  {
    name: 'an attribute derived from text about another entity',
    from: '    source: { connector: db, table: sales.customers }',
    to: '    source: { connector: db, table: sales.customers }\n    derived: { kind: { facet: notes, operator: CLASSIFY, labels: [a] } }',
    told: ['30:31-36 M2009 facet `notes` is about `order`, not about `customer`'],
  },
  {
    name: 'a metric of a bridge',
    from: 'revenue: { entity: order',
    to: 'revenue: { entity: tag',
    told: ['54:22-25 M2001 entity `tag` is not declared'],
  },
  {
    name: 'metrics that differ in case',
    from: 'lexicon:\n',
    to: '  Revenue: { entity: order, expression: count(*) }\nlexicon:\n',
    told: ['55:3-10 M2002 `Revenue` is declared twice (`revenue` is the same name: case does not count)'],
  },
  {
    name: 'a metric over an unknown column',
    from: 'sum(amount)',
    to: 'sum(amuont)',
    told: ['54:41-52 M2011 column `amuont` is not declared (perhaps you meant `amount`)'],
  },
  {
    name: 'a metric that is not an aggregate',
    from: 'sum(amount), filter: amount > 0',
    to: 'amount + 1',
    told: ['54:41-51 M2011 column `order.amount` must stand in GROUP BY or inside an aggregate'],
  },
  {
    name: 'a metric that is a query',
    from: 'sum(amount), filter: amount > 0',
    to: '(select 1)',
    told: ['54:41-51 M2011 a subquery as a value here is not part of OSL-SQL'],
  },
  {
    name: 'a metric of two expressions',
    from: 'sum(amount), filter',
    to: '"sum(amount), 1", filter',
    told: ['54:41-57 M2011 one expression is needed here'],
  },
  {
    name: 'a simple metric without an entity',
    from: 'lexicon:\n',
    to: '  m: { expression: count(*) }\nlexicon:\n',
    told: ['55:3-4 M1003 `m` has no `entity` (a simple metric needs it)'],
  },
  {
    name: 'a ratio without a denominator',
    from: 'lexicon:\n',
    to: '  m: { type: ratio, numerator: revenue }\nlexicon:\n',
    told: ['55:3-4 M1003 `m` has no `denominator` (a ratio metric needs it)'],
  },
  {
    name: 'a ratio with an expression',
    from: 'lexicon:\n',
    to: '  m: { type: ratio, numerator: revenue, denominator: revenue, expression: count(*) }\nlexicon:\n',
    told: ['55:63-73 M1004 a ratio metric has no `expression` (it has numerator, denominator)'],
  },
  {
    name: 'a ratio of an unknown metric',
    from: 'lexicon:\n',
    to: '  m: { type: ratio, numerator: revenue, denominator: revenu }\nlexicon:\n',
    told: ['55:54-60 M2001 metric `revenu` is not declared (perhaps you meant `revenue`)'],
  },
  {
    name: 'a ratio whose filter names no column',
    from: 'lexicon:\n',
    to: '  m: { type: ratio, numerator: { metric: revenue, filter: amuont > 1 }, denominator: revenue }\nlexicon:\n',
    told: ['55:59-69 M2011 column `amuont` is not declared (perhaps you meant `amount`)'],
  },
  {
    name: 'metrics that are made of each other',
    from: 'lexicon:\n',
    to: '  a: { type: derived, expression: b + 1 }\n  b: { type: derived, expression: a + revenue }\nlexicon:\n',
    told: ['56:35-46 M2009 a metric cannot be made of itself: `a` → `b` → `a`'],
  },
  {
    name: 'a derived metric of an unknown one',
    from: 'lexicon:\n',
    to: '  m: { type: derived, expression: revenue - refund }\nlexicon:\n',
    told: ['55:35-51 M2001 metric `refund` is not declared'],
  },
  {
    name: 'a derived metric with an aggregate',
    from: 'lexicon:\n',
    to: '  m: { type: derived, expression: sum(revenue) }\nlexicon:\n',
    told: [
      '55:35-47 M2011 aggregate `sum` is not allowed in a derived metric (work it out in a derived table first)',
    ],
  },
  {
    name: 'a derived metric without a metric',
    from: 'lexicon:\n',
    to: '  m: { type: derived, expression: 1 + 1 }\nlexicon:\n',
    told: ['55:35-40 M2011 `m` names no metric'],
  },
  {
    name: 'a derived metric that does not parse',
    from: 'lexicon:\n',
    to: '  m: { type: derived, expression: revenue - }\nlexicon:\n',
    told: ['55:35-44 M2011 syntax error at end of input'],
  },
  {
    name: 'a derived metric that is a query',
    from: 'lexicon:\n',
    to: '  m: { type: derived, expression: revenue + (select 1) }\nlexicon:\n',
    told: ['55:35-55 M2011 a subquery as a value here is not part of OSL-SQL'],
  },
  {
    name: 'a derived metric that explodes',
    from: 'lexicon:\n',
    to: '  a: { type: derived, expression: revenue }\n  a1: { type: ratio, numerator: a, denominator: a }\n  a2: { type: ratio, numerator: a1, denominator: a1 }\n  a3: { type: ratio, numerator: a2, denominator: a2 }\n  a4: { type: ratio, numerator: a3, denominator: a3 }\n  a5: { type: ratio, numerator: a4, denominator: a4 }\n  a6: { type: ratio, numerator: a5, denominator: a5 }\n  a7: { type: ratio, numerator: a6, denominator: a6 }\n  a8: { type: ratio, numerator: a7, denominator: a7 }\nlexicon:\n',
    told: ['62:3-5 M1004 `a7` is made of more than 100 metrics'],
  },
  {
    name: 'a derived metric at the end of a long chain',
    from: 'lexicon:\n',
    to: `${Array.from({ length: 30 }, (_, i) => `  m${i}: { type: derived, expression: m${i + 1} }\n`).join('')}  m30: { type: derived, expression: revenue }\nlexicon:\n`,
    told: ['74:37-40 M1004 metrics are made of metrics more than 20 times here'],
  },
  {
    name: 'a long chain of metrics, each after the one that it is made of',
    from: 'lexicon:\n',
    to: `  m0: { type: derived, expression: revenue }\n${Array.from({ length: 20 }, (_, i) => `  m${i + 1}: { type: derived, expression: m${i} }\n`).join('')}lexicon:\n`,
    told: ['74:37-40 M1004 metrics are made of metrics more than 20 times here'],
  },
  {
    name: 'a cumulative metric without a time',
    from: 'lexicon:\n',
    to: '  m: { type: cumulative, metric: revenue }\nlexicon:\n',
    told: ['55:34-41 M2009 `order` has no time dimension to add up along (add `time_dimension` to `order`)'],
  },
  {
    name: 'a window and a grain to date',
    from: 'lexicon:\n',
    to: '  m: { type: cumulative, metric: revenue, window: 7 days, grain_to_date: month }\nlexicon:\n',
    told: [
      '55:34-41 M2009 `order` has no time dimension to add up along (add `time_dimension` to `order`)',
      '55:59-72 M2009 `window` and `grain_to_date` exclude each other (say one of them, or none)',
    ],
  },
  {
    name: 'an offset to nowhere, and one to two places',
    from: 'lexicon:\n',
    to: '  m: { type: offset, metric: revenue }\n  n: { type: offset, metric: revenue, offset_window: 1 month, offset_to_grain: year }\nlexicon:\n',
    told: [
      '55:3-4 M1003 `m` has no `offset_window` (an offset metric needs it, or `offset_to_grain`)',
      '56:30-37 M2009 `order` has no time dimension to add up along (add `time_dimension` to `order`)',
      '56:63-78 M2009 `offset_window` and `offset_to_grain` exclude each other (say one of them)',
    ],
  },
  {
    name: 'conversions of what has no time, and by nothing',
    from: 'lexicon:\n',
    to: `  m: { type: conversion, base: revenue, conversion: revenue, entity: customer }
  n: { type: conversion, base: revenue, conversion: revenue }
lexicon:\n`,
    told: [
      '55:32-39 M2009 `order` has no time dimension (add `time_dimension` to `order`)',
      '56:3-4 M1003 nothing says which `conversion` follows which `base` (add `entity`, or `constant_properties`)',
    ],
  },
  {
    name: 'a conversion along no one relationship, and in columns that there are not',
    from: MANIFEST,
    to: MANIFEST.replace('body: { type: text }', 'body: { type: text }\n          at: { type: date }')
      .replace(
        'columns: [id, customer_id, amount]',
        'columns: [id, customer_id, amount, at]\n    time_dimension: at',
      )
      .replace(
        'lexicon:',
        `  twice: { type: ratio, numerator: revenue, denominator: revenue }
  m: { type: conversion, base: revenue, conversion: revenue, entity: tag }
  n: { type: conversion, base: revenue, conversion: revenue, constant_properties: [{ base: amuont, conversion: id }] }
  o: { type: conversion, base: revenue, conversion: revenue, constant_properties: [{ base: amount, conversion: at }] }
  p: { type: conversion, base: revenue, conversion: twice, entity: customer }
  q: { type: cumulative, metric: r }
  r: { type: conversion, base: revenue, conversion: revenue, entity: customer }
lexicon:`,
      ),
    told: [
      '58:70-73 M2009 no relationship leads from `order` to `tag` (declare one relationship, or write `constant_properties`)',
      '59:92-98 M2001 column `amuont` is not declared (perhaps you meant `amount`)',
      '60:3-4 M2011 operator `numeric = date` is not part of OSL-SQL (an explicit cast may help)',
      '61:53-58 M2009 `twice` is not a simple metric (events are the rows of one entity)',
      '62:34-35 M2009 `r` takes rows of other times already (name the metric that it is made of)',
    ],
  },
  {
    name: 'a format with what another has',
    from: 'lexicon:\n',
    to: '  m: { entity: order, expression: count(*), format: { kind: percent, unit: kg, currency: EUR } }\nlexicon:\n',
    told: [
      '55:70-74 M1004 a format of kind `percent` has no `unit` (it is of kind `number`)',
      '55:80-88 M1004 a format of kind `percent` has no `currency` (it is of kind `currency`)',
    ],
  },
  {
    name: 'a window of nothing',
    from: 'lexicon:\n',
    to: '  m: { type: cumulative, metric: revenue, window: 0 days }\nlexicon:\n',
    told: [
      '55:51-57 M1005 `window` cannot be `0 days` (Cumulative metric: length of the window before the end of each period: `7 days`, `1 month`. Conversion: maximum time between an event and the one that follows.)',
    ],
  },
  {
    name: 'a grain that is none',
    from: 'lexicon:\n',
    to: '  m: { type: cumulative, metric: revenue, grain_to_date: fortnight }\nlexicon:\n',
    told: [
      '55:58-67 M1004 `grain_to_date` must be one of second, minute, hour, day, week, month, quarter, year (Period at whose start a cumulative metric restarts: `month` gives month to date.)',
    ],
  },
  {
    name: 'a time dimension that is not a column',
    from: '    columns: [id, customer_id, amount]',
    to: '    columns: [id, customer_id, amount]\n    time_dimension: amuont',
    told: ['28:21-27 M2001 column `order.amuont` is not declared (perhaps you meant `order.amount`)'],
  },
  {
    name: 'a time dimension that is not time',
    from: '    columns: [id, customer_id, amount]',
    to: '    columns: [id, customer_id, amount]\n    time_dimension: amount',
    told: [
      '28:21-27 M2008 `amount` is numeric, which is not time (a time dimension is a date, timestamp or timestamptz)',
    ],
  },
  {
    name: 'a filter that is no truth value',
    from: 'filter: amount > 0',
    to: 'filter: amount',
    told: ['54:62-68 M2011 a value of type numeric cannot be used as bool here (an explicit cast may help)'],
  },
  {
    name: 'a filter that does not parse',
    from: 'filter: amount > 0',
    to: 'filter: amount >',
    told: ['54:62-70 M2011 syntax error at end of input'],
  },
  {
    name: 'a filter over what only policies know',
    from: 'filter: amount > 0',
    to: "filter: amount = attribute('x')",
    told: ['54:62-85 M2011 function `attribute` is not part of OSL-SQL'],
  },
  {
    name: 'a word for nothing',
    from: 'refers_to: revenue',
    to: 'refers_to: revenu',
    told: ['56:26-32 M2001 object `revenu` is not declared (perhaps you meant `revenue`)'],
  },
  {
    name: 'a word for an unknown column',
    from: 'refers_to: revenue',
    to: 'refers_to: order.amuont',
    told: ['56:26-38 M2001 column `order.amuont` is not declared (perhaps you meant `order.amount`)'],
  },
  {
    name: 'a table for raw SQL that no connector has',
    from: 'lexicon:\n',
    to: 'raw_sql: { allow: [db.sales.order] }\nlexicon:\n',
    told: ['55:20-34 M2001 table `sales.order` is not declared (perhaps you meant `sales.orders`)'],
  },
  {
    name: 'a table for raw SQL that a bridge governs',
    from: 'lexicon:\n',
    to: 'raw_sql: { allow: [db.sales.tags] }\nlexicon:\n',
    told: [],
  },
  {
    name: 'a table for raw SQL that nothing governs',
    from: 'entities:\n',
    to: '      sales.loose: { columns: { id: { type: int4 } } }\nraw_sql: { allow: [db.sales.loose] }\nentities:\n',
    told: [
      '23:20-34 M2012 no entity governs table `sales.loose` (declare an entity of it: its grants are those of the entity)',
    ],
  },
  {
    name: 'a table for raw SQL with two entities',
    from: 'bridges:\n',
    to: '  buyer: { source: db.sales.customers, primary_key: [id], columns: [id] }\nraw_sql: { allow: [db.sales.customers] }\nbridges:\n',
    told: [
      '35:20-38 M2009 table `sales.customers` is governed 2 times (it must be the source of one entity or bridge, not of `customer`, `buyer`)',
    ],
  },
  {
    name: 'a table for raw SQL, twice',
    from: 'lexicon:\n',
    to: 'raw_sql: { allow: [db.sales.orders, { connector: db, table: sales.orders }] }\nlexicon:\n',
    told: ['55:37-75 M2002 table `sales.orders` is allowed twice'],
  },
  {
    name: 'two tables for raw SQL, each with its connector apart',
    from: 'lexicon:\n',
    to: 'raw_sql: { allow: [{ connector: db, table: sales.orders }, { connector: db, table: sales.tags }] }\nlexicon:\n',
    told: [],
  },
  {
    name: 'metadata under the name of the entity key',
    from: 'metadata: [customer_id]',
    to: 'metadata: { customer_id: , id: { column: amount } }',
    told: [
      '49:32-34 M2002 `id` is also the name of the entity key, which is another column (choose another name for the column)',
    ],
  },
  {
    name: 'a table under a second name',
    from: '      sales.customers:\n',
    to: '      sales."orders": { columns: { note: { type: text } } }\n      sales.customers:\n',
    told: [
      '13:7-21 M2009 `sales."orders"` is the table `sales.orders`, which is declared above (declare it once)',
    ],
  },
  {
    name: 'a table for raw SQL whose column has two names',
    from: 'tax: { column: tax_no, description: Tax number }',
    to: 'tax: { column: tax_no }\n      vat: { column: tax_no }\nraw_sql: { allow: [db.sales.customers] }',
    told: [
      '35:20-38 M2009 column `tax_no` of `sales.customers` is exposed twice (`tax` and `vat` of `customer` both are it)',
    ],
  },
  {
    name: 'a table for raw SQL in the schema of entities',
    from: '          weight: { type: float8 }\nentities:\n',
    to: '          weight: { type: float8 }\n      entities.x: { columns: { id: { type: int4 } } }\nraw_sql: { allow: [db.entities.x] }\nentities:\n  x: { source: db.entities.x, primary_key: [id], columns: [id] }\n',
    told: [
      '23:20-33 M2010 a table of schema `entities` cannot be named in raw SQL (in OSL-SQL it is where entities stand)',
    ],
  },
];
export const POLICY_CASES: readonly Case[] = [
  {
    name: 'an order of an entity whose name is not ASCII',
    from: 'masks:',
    to: 'order: { große bestellung: by_key }\nmasks:',
    told: [],
  },
  {
    name: 'a star without quotes',
    from: 'columns: "*"',
    to: 'columns: *',
    told: ['8:31-32 M0003 an alias has no name (a value that begins with `*` needs quotes: "*")'],
  },
  {
    name: 'a mask that YAML reads as nothing',
    from: 'pii: redact',
    to: 'pii: null',
    told: [
      '9:15-19 M1004 `pii` must be one of redact, null, hash, partial, year, deny (Display of a masked cell; write "null" in quotes.)',
    ],
  },
  {
    name: 'an unknown mask',
    from: 'pii: redact',
    to: 'pii: redacted',
    told: [
      '9:15-23 M1004 `pii` must be one of redact, null, hash, partial, year, deny (perhaps you meant `redact`)',
    ],
  },
  {
    name: 'an attribute that is nothing',
    from: 'region: eu',
    to: 'region: ~',
    told: [
      '4:49-50 M1001 `region` must be text or a number or true or false or a list or a mapping, not nothing (A value (text, a number, true or false), a list of values, or `{any: true}`.)',
    ],
  },
  {
    name: 'an attribute that is a number',
    from: 'region: eu',
    to: 'region: [4, true]',
    told: [],
  },
  {
    name: 'an attribute of an unknown form',
    from: '{ any: true }',
    to: '{ all: true }',
    told: ['4:68-72 M1003 `team` has no `any`', '4:76-79 M1002 unknown key `all` (known here: any)'],
  },
  {
    name: 'a role without grants',
    from: '    grants:\n      - { on: order, columns: "*", rows: amount > 0 }',
    to: '    description: x',
    told: ['6:3-4 M1003 `r` has no `grants`'],
  },
  {
    name: 'a limit of nothing',
    from: 'masks:',
    to: 'limits: { query: 0 }\nmasks:',
    told: ['9:18-19 M1004 `query` must be > 0 (Requests per second of each subject.)'],
  },
  {
    name: 'a subject with a blank',
    from: 'user:a:',
    to: 'user a:',
    told: [
      '4:3-9 M1005 `user a` cannot be a name here (The `sub` of a token, e.g. `user:maria` or `agent:scout`.)',
    ],
  },
  {
    name: 'a column list that holds a star',
    from: 'columns: "*"',
    to: 'columns: ["*"]',
    told: [
      '8:32-35 M1005 `columns[0]` cannot be `*` (A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.)',
    ],
  },
  {
    name: 'a predicate that is a truth value',
    from: 'rows: amount > 0',
    to: 'rows: true',
    told: [
      '8:42-46 M1001 `rows` must be text, not true or false (SQL predicate that selects the visible rows; times are UTC. Default: all rows.)',
    ],
  },
  {
    name: 'no tenant',
    from: 'tenant: demo\n',
    to: '',
    told: ['1:1-11 M1003 the file has no `tenant`'],
  },
];

/** The text of a case over the manifest. */
export function brokenManifest({ from, to, and = [] }: Case): string {
  return and.reduce((before, [a, b]) => edited(before, a, b), edited(MANIFEST, from, to));
}
