import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { arrayOf, oidOf, SCALAR_TYPES } from 'osl-compiler';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';

/** What a statement yields: rows in text format, or the SQLSTATE with which it fails. */
export interface Answer {
  readonly oids: readonly number[];
  readonly rows: readonly (readonly (string | null)[])[];
  readonly sqlstate: string | null;
}

/** A real Postgres of one process, its values left as the text that it sends. */
export interface Engine {
  /** Runs statements as the owner of everything. */
  readonly setUp: (sql: string) => Promise<void>;
  /** Runs one governed statement as a role that may only read, with nothing but pg_catalog to look names up in. */
  readonly ask: (sql: string, values: readonly (string | null)[]) => Promise<Answer>;
  readonly close: () => Promise<void>;
}

const asText = Object.fromEntries(
  SCALAR_TYPES.flatMap((t) => [oidOf(t), oidOf(arrayOf(t))]).map((oid) => [oid, (v: string) => v]),
);

/** @param vectors whether passages can be searched in it */
export async function openEngine(schemas: readonly string[], vectors = false): Promise<Engine> {
  const extensions = vectors ? { vector } : {};
  const db = await PGlite.create({
    dataDir: await emptyDatabaseOfItsOwn(),
    parsers: asText,
    serializers: asText,
    extensions,
  });
  if (vectors) await db.exec('drop extension if exists vector; create extension vector schema pg_catalog');
  await db.exec(`create role reader; set timezone = 'UTC'`);
  await db.exec(
    schemas
      .map(
        (s) => `create schema if not exists ${s}; grant usage on schema ${s} to reader;
    alter default privileges in schema ${s} grant select on tables to reader`,
      )
      .join(';'),
  );
  await db.exec(`set search_path = pg_catalog; set default_transaction_read_only = on; set role reader`);
  return {
    setUp: async (sql) => {
      await db.exec('reset role; set default_transaction_read_only = off');
      await db.exec(sql);
      await db.exec('set default_transaction_read_only = on; set role reader');
    },
    ask: async (sql, values) => {
      try {
        const { fields, rows } = await db.query<(string | null)[]>(sql, [...values], { rowMode: 'array' });
        return { oids: fields.map((f) => f.dataTypeID), rows, sqlstate: null };
      } catch (error) {
        return { oids: [], rows: [], sqlstate: sqlstateOf(error) };
      }
    },
    close: () => db.close(),
  };
}

function sqlstateOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  throw error;
}
