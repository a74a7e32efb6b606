import { ready } from 'osl-compiler';
import { type Manifest, parseManifest } from '../../src/manifest/index.js';

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
export const LIBRARY_MANIFEST = `
version: 1
tenant: lib
connectors:
  db:
    kind: pglite
    tables:
      lib.book: { columns: { isbn: { type: text }, title: { type: text, sensitivity: secret } } }
      lib.reader: { columns: { id: { type: int8 }, email: { type: text, pii: true } } }
      lib.branch: { columns: { city: { type: text }, country: { type: text } } }
      lib.loan: { columns: { due: { type: date, sensitivity: person } } }
entities:
  book: { source: db.lib.book, primary_key: [isbn], columns: [isbn, title] }
  person: { source: db.lib.reader, primary_key: [number], columns: { number: { column: id }, email: } }
  branch: { source: db.lib.branch, primary_key: [country, town], columns: { country: , town: { column: city } } }
`;

export async function libraryManifest(): Promise<Manifest> {
  await ready();
  return parseManifest(LIBRARY_MANIFEST, 'library');
}
