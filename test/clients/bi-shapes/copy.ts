import { PGlite } from '@electric-sql/pglite';
import { oidOf, SCALAR_TYPES } from 'osl-compiler';
import { Client } from 'pg';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';
import type { Cell } from '../../support/frontends.js';
import type { NativePostgres } from '../../support/native-postgres.js';

/** An ungoverned Postgres with the same tables under the names that the gateway gives them. */
export interface Copy {
  /** Rows as the wire would bring them, every value in text. */
  ask(
    sql: string,
  ): Promise<{ readonly columns: readonly string[]; readonly rows: readonly (readonly Cell[])[] }>;
  run(script: string): Promise<void>;
  close(): Promise<void>;
}

export async function openCopy(native: NativePostgres | null): Promise<Copy> {
  return native === null ? embedded() : server(native.url);
}

const asText = (value: string): string => value;

async function embedded(): Promise<Copy> {
  const db = await PGlite.create({ dataDir: await emptyDatabaseOfItsOwn() });
  const oids = SCALAR_TYPES.flatMap((t) => [oidOf(t), oidOf(`${t}[]`)]);
  const parsers = Object.fromEntries(oids.map((oid) => [oid, asText]));
  return {
    async ask(sql) {
      const { rows, fields } = await db.query<Cell[]>(sql, [], { rowMode: 'array', parsers });
      return { columns: fields.map((f) => f.name), rows };
    },
    run: async (script) => void (await db.exec(script)),
    close: () => db.close(),
  };
}

async function server(url: string): Promise<Copy> {
  const client = new Client({ connectionString: url, types: { getTypeParser: () => asText } });
  await client.connect();
  return {
    async ask(text) {
      const { rows, fields } = await client.query<Cell[]>({ text, rowMode: 'array' });
      return { columns: fields.map((f) => f.name), rows };
    },
    run: async (script) => void (await client.query(script)),
    close: () => client.end(),
  };
}
