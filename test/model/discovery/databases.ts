import { ready } from 'osl-compiler';
import { type Manifest, parseManifest } from '../../../src/model/manifest/index.js';
import { manifestText } from '../../support/model-text.js';

/** As a dump would restore it: keys by ALTER TABLE, names that need quotes, and every sort of link. */
export const LIBRARY = `
CREATE SCHEMA lib;
CREATE SCHEMA "Odd names";
CREATE DOMAIN lib.isbn AS text CHECK (VALUE ~ '^[0-9X-]+$');
CREATE DOMAIN lib.short_isbn AS lib.isbn;
CREATE TYPE lib.state AS ENUM ('in', 'out');
CREATE TABLE lib.branch (country char(2) NOT NULL, city varchar(40) NOT NULL, opened date);
CREATE TABLE lib.book (isbn lib.short_isbn NOT NULL, title text NOT NULL, state lib.state, tags varchar(10)[]);
CREATE TABLE lib.reader (id bigint GENERATED ALWAYS AS IDENTITY, email text, recruited_by bigint);
CREATE TABLE lib.holding (isbn lib.isbn NOT NULL, country char(2) NOT NULL, city varchar(40) NOT NULL);
CREATE TABLE lib.favourite (id serial, reader_id bigint NOT NULL, isbn text NOT NULL, noted timestamptz DEFAULT now());
CREATE TABLE lib.wish (instead_of text DEFAULT 'x', reader_id bigint NOT NULL, isbn text NOT NULL);
CREATE TABLE lib.loan (reader_id bigint NOT NULL, isbn text NOT NULL, due date NOT NULL, fine numeric(8,2));
CREATE TABLE lib.friend (a bigint NOT NULL, b bigint NOT NULL);
CREATE TABLE lib.visit (reader_id bigint NOT NULL, country char(2) NOT NULL, city varchar(40) NOT NULL, isbn text NOT NULL);
CREATE TABLE lib.log (at timestamptz, line text);
CREATE TABLE lib.code (code text NOT NULL, wide text, label text);
CREATE TABLE lib.event (id int NOT NULL, at date NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE lib.event_2020 PARTITION OF lib.event FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE VIEW lib.lent AS SELECT isbn, count(*) AS loans FROM lib.loan GROUP BY isbn;
CREATE TABLE "Odd names"."Order ""items""" ("the id" int NOT NULL, "select" text, "__proto__" text);
CREATE TABLE "Odd names"."__proto__" (id int PRIMARY KEY);
CREATE TEMPORARY TABLE scratch (id int PRIMARY KEY);
ALTER TABLE lib.branch ADD CONSTRAINT branch_pk PRIMARY KEY (country, city);
ALTER TABLE lib.book ADD PRIMARY KEY (isbn);
ALTER TABLE lib.reader ADD PRIMARY KEY (id);
ALTER TABLE lib.holding ADD PRIMARY KEY (isbn, country, city);
ALTER TABLE lib.favourite ADD PRIMARY KEY (id);
ALTER TABLE lib.favourite ADD UNIQUE (reader_id, isbn);
ALTER TABLE lib.loan ADD PRIMARY KEY (reader_id, isbn);
ALTER TABLE lib.wish ADD PRIMARY KEY (reader_id, isbn);
ALTER TABLE lib.friend ADD PRIMARY KEY (a, b);
ALTER TABLE lib.visit ADD PRIMARY KEY (reader_id, country, city, isbn);
ALTER TABLE lib.code ADD UNIQUE (code);
ALTER TABLE lib.code ADD UNIQUE (wide);
ALTER TABLE lib.event ADD PRIMARY KEY (id, at);
CREATE UNIQUE INDEX ON lib.log (line) WHERE at IS NULL;
CREATE UNIQUE INDEX ON lib.log (lower(line));
ALTER TABLE "Odd names"."Order ""items""" ADD PRIMARY KEY ("the id");
ALTER TABLE lib.reader ADD CONSTRAINT recruiter FOREIGN KEY (recruited_by) REFERENCES lib.reader (id);
ALTER TABLE lib.holding ADD FOREIGN KEY (isbn) REFERENCES lib.book (isbn);
ALTER TABLE lib.holding ADD CONSTRAINT holding_branch FOREIGN KEY (city, country) REFERENCES lib.branch (city, country);
ALTER TABLE lib.favourite ADD FOREIGN KEY (reader_id) REFERENCES lib.reader (id);
ALTER TABLE lib.favourite ADD FOREIGN KEY (isbn) REFERENCES lib.book (isbn);
ALTER TABLE lib.wish ADD FOREIGN KEY (instead_of) REFERENCES lib.book (isbn);
ALTER TABLE lib.wish ADD FOREIGN KEY (reader_id) REFERENCES lib.reader (id);
ALTER TABLE lib.wish ADD FOREIGN KEY (isbn) REFERENCES lib.book (isbn);
ALTER TABLE lib.loan ADD FOREIGN KEY (reader_id) REFERENCES lib.reader (id);
ALTER TABLE lib.loan ADD FOREIGN KEY (isbn) REFERENCES lib.book (isbn);
ALTER TABLE lib.friend ADD FOREIGN KEY (a) REFERENCES lib.reader (id);
ALTER TABLE lib.friend ADD FOREIGN KEY (b) REFERENCES lib.reader (id);
ALTER TABLE lib.visit ADD FOREIGN KEY (reader_id) REFERENCES lib.reader (id);
ALTER TABLE lib.visit ADD FOREIGN KEY (country, city) REFERENCES lib.branch (country, city);
ALTER TABLE lib.visit ADD FOREIGN KEY (isbn) REFERENCES lib.book (isbn);
COMMENT ON TABLE lib.loan IS 'Who has which book';
COMMENT ON COLUMN lib.loan.due IS 'Back by then';
INSERT INTO lib.code SELECT n::text, NULL, 'label' FROM generate_series(1, 1000) n;
ANALYZE lib.code;
`;

/** The books, readers and branches of the library are adopted; the rest is not. */
export const LIBRARY_MANIFEST = manifestText(
  'lib',
  {
    'lib.book': 'isbn text, title text secret',
    'lib.reader': 'id int8, email text pii',
    'lib.branch': 'city text, country bpchar',
    'lib.loan': 'due date person',
  },
  `entities:
  book: { source: db.lib.book, primary_key: [isbn], columns: [isbn, title] }
  person: { source: db.lib.reader, primary_key: [number], columns: { number: { column: id }, email: } }
  branch: { source: db.lib.branch, primary_key: [country, town], columns: { country: , town: { column: city } } }
`,
);

export async function libraryManifest(): Promise<Manifest> {
  await ready();
  return parseManifest(LIBRARY_MANIFEST, 'library');
}

/** 63 bytes, in 21 characters of three each. */
export const LONG_NAME = '名'.repeat(21);

/** Objects of a schema beside plain tables, and names that nobody would choose. Runs on both engines. */
export const ODD = `
CREATE SCHEMA odd;
CREATE SCHEMA "UPPER case";
CREATE TYPE odd.mood AS ENUM ('good', 'bad');
CREATE DOMAIN odd.amount AS numeric(10, 2) CHECK (VALUE >= 0);
CREATE TABLE odd."Select" (id int PRIMARY KEY, "from" text, "User" text, "user" text, evidence text, "a.b" text);
CREATE TABLE odd."it's ""quoted""" ("the id" int PRIMARY KEY, "new
line" text);
CREATE TABLE "UPPER case"."${LONG_NAME}" ("${LONG_NAME}" int PRIMARY KEY, naïve text, "😀" text);
CREATE TABLE odd."dotted.table" (id int PRIMARY KEY);
CREATE TABLE odd.typed (id uuid PRIMARY KEY, m odd.mood, ms odd.mood[], paid odd.amount, n name, at inet, b bit(3),
  r int4range, p point, x xml, j json, t tsvector, o oid, c "char", v varchar(3)[], i interval, y bytea);
CREATE TABLE odd.only_odd_types (m odd.mood, r int4range);
CREATE TABLE odd.no_columns ();
CREATE TABLE odd.parent (id int PRIMARY KEY, kind text);
CREATE TABLE odd.child (extra text) INHERITS (odd.parent);
CREATE TABLE odd.measured (id int NOT NULL, at date NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE odd.measured_2020 PARTITION OF odd.measured FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE odd.made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED,
  gone text, also_gone int UNIQUE);
ALTER TABLE odd.made DROP COLUMN gone, DROP COLUMN also_gone;
CREATE TABLE odd.line (doc int, no int, of_doc int, of_no int, PRIMARY KEY (no, doc),
  FOREIGN KEY (of_doc, of_no) REFERENCES odd.line (doc, no));
CREATE TABLE odd.remark (id int PRIMARY KEY, line_no int, line_doc int,
  FOREIGN KEY (line_no, line_doc) REFERENCES odd.line (no, doc));
CREATE VIEW odd.parents AS SELECT id, kind FROM odd.parent;
CREATE MATERIALIZED VIEW odd.counted AS SELECT kind, count(*) AS n FROM odd.parent GROUP BY kind;
CREATE UNIQUE INDEX ON odd.counted (kind);
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER far FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE odd.far (id int NOT NULL, v text) SERVER far;
CREATE TABLE odd.secret (id int PRIMARY KEY, v text);
CREATE TABLE odd.partly (id int PRIMARY KEY, open text, closed text);
GRANT USAGE ON SCHEMA odd, "UPPER case" TO osl_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA odd, "UPPER case" TO osl_reader;
REVOKE SELECT ON odd.secret, odd.partly FROM osl_reader;
GRANT SELECT (id, open) ON odd.partly TO osl_reader;
INSERT INTO odd."Select" VALUES (1, 'a', 'b', 'c', 'd', 'e');
INSERT INTO odd.parent VALUES (1, 'x');
INSERT INTO odd.child VALUES (1, 'x', 'the same number');
INSERT INTO "UPPER case"."${LONG_NAME}" VALUES (1, 'a', 'b');
`;
