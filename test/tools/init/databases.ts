import { LIBRARY, ODD } from '../../model/discovery/databases.js';

/** A database that was not made for this gateway, and what `osl init` is to make of it. */
export interface Foreign {
  readonly name: string;
  /** SQL for a superuser; the role of the gateway is `osl_reader`. */
  readonly script: string;
  readonly flags: readonly string[];
  /** How many entities at least. */
  readonly entities: number;
  /** Some of the tables that must be left out, and how their reason reads. */
  readonly leftOut: ReadonlyMap<string, RegExp>;
}

const readable = (schema: string): string =>
  `GRANT USAGE ON SCHEMA ${schema} TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO osl_reader;`;

/** Tables as an import from files leaves them: no key, no constraint, no comment. */
const IMPORTED = `
CREATE SCHEMA raw;
CREATE TABLE raw.customers (customer_id text, first_name text, e_mail text, "passwordHash" text);
CREATE TABLE raw.order_lines (order_no int, line int, sku text, qty int);
CREATE TABLE raw.events (at timestamptz, what text);
CREATE TABLE raw.later (id int, v text);
CREATE TABLE raw.holes (id int, v text);
INSERT INTO raw.customers SELECT 'C' || n, 'Ann', n || '@example.org', md5(n::text) FROM generate_series(1, 50) n;
INSERT INTO raw.order_lines SELECT n / 3, n % 3, 'S' || n % 7, n % 5 FROM generate_series(1, 90) n;
INSERT INTO raw.events SELECT now(), 'tick' FROM generate_series(1, 5);
INSERT INTO raw.holes VALUES (1, 'a'), (NULL, 'a');
${readable('raw')}`;

/** The catalogs of Postgres as tables of a schema: what each declares, without the types that no table may have. */
const CATALOGS = `
CREATE SCHEMA sys; CREATE SCHEMA info;
DO $$ DECLARE r record; list text; BEGIN
  FOR r IN SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
              AND c.relname NOT IN ('pg_hba_file_rules', 'pg_ident_file_mappings', 'pg_stat_ssl') LOOP
    SELECT string_agg(format('%I AS %I', attname, 'c_' || attname), ', ' ORDER BY attnum) INTO list FROM pg_attribute
     WHERE attrelid = r.oid AND attnum > 0 AND atttypid NOT IN ('anyarray'::regtype, 'pg_statistic[]'::regtype);
    EXECUTE format('CREATE TABLE %I.%I AS SELECT %s FROM %I.%I LIMIT 500',
      CASE r.nspname WHEN 'pg_catalog' THEN 'sys' ELSE 'info' END, r.relname, list, r.nspname, r.relname);
  END LOOP; END $$;
ALTER TABLE sys.pg_class ADD PRIMARY KEY (c_oid);
ALTER TABLE sys.pg_attribute ADD PRIMARY KEY (c_attrelid, c_attnum);
ALTER TABLE sys.pg_namespace ADD UNIQUE (c_nspname);
${readable('sys')} ${readable('info')}`;

const WIDE = `
CREATE SCHEMA wide;
DO $$ BEGIN FOR i IN 1..500 LOOP
  EXECUTE format('CREATE TABLE wide.t%s (id int PRIMARY KEY, up int REFERENCES wide.t%s, a text, b numeric, c date, email text)',
    i, greatest(i - 1, 1));
END LOOP; END $$;
INSERT INTO wide.t1 VALUES (1, 1, 'a', 1, '2020-01-01', 'a@example.org');
${readable('wide')}`;

const none = new Map<string, RegExp>();

export const FOREIGN: readonly Foreign[] = [
  {
    name: 'a library: composite keys, references to itself, links with a payload',
    script: `${LIBRARY} ${readable('lib')} ${readable('"Odd names"')}
      INSERT INTO lib.reader (email) VALUES ('ann@example.org'); INSERT INTO lib.book VALUES ('123X', 'A book', 'in', '{}');
      INSERT INTO lib.loan VALUES (1, '123X', '2026-01-01', 1.5);`,
    flags: [],
    entities: 9,
    leftOut: new Map([['lib.log', /no rows by which/]]),
  },
  {
    name: 'files that were imported: no keys at all',
    script: IMPORTED,
    flags: [],
    entities: 2,
    leftOut: new Map([
      ['raw.events', /no column or pair of columns/],
      ['raw.later', /no rows by which/],
      ['raw.holes', /no column or pair/],
    ]),
  },
  {
    name: 'odd names and types, views, inheritance, foreign tables, tables that nobody may read',
    script: ODD,
    flags: [],
    entities: 8,
    leftOut: new Map([
      ['odd.secret', /may not read it/],
      ['odd.no_columns', /no columns/],
      ['odd.only_odd_types', /no key/],
      ['odd.far', /./],
    ]),
  },
  {
    name: "Postgres' own catalogs, copied",
    script: CATALOGS,
    flags: ['--schemas', 'sys,info'],
    entities: 40,
    leftOut: none,
  },
  { name: 'five hundred tables', script: WIDE, flags: [], entities: 500, leftOut: none },
];
