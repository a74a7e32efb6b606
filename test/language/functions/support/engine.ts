import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { emptyDatabaseOfItsOwn } from '../../../support/embedded-data.js';

type Row = Readonly<Record<string, unknown>>;

/** A real Postgres: PGlite, or the server of the URL in OSL_TEST_POSTGRES. */
export interface Engine {
  readonly major: number;
  rows(sql: string): Promise<readonly Row[]>;
  /** Type OID of the first output column of `sql`, or the SQLSTATE with which the engine refuses it. */
  typeOf(sql: string): Promise<number | string>;
  close(): Promise<void>;
}

function sqlstateOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  throw error;
}

interface Answer {
  readonly rows: readonly Row[];
  readonly fields: readonly { readonly dataTypeID: number }[];
}

async function engineOver(
  query: (sql: string) => Promise<Answer>,
  close: () => Promise<void>,
): Promise<Engine> {
  const [version] = (await query(`select current_setting('server_version_num') as n`)).rows;
  return {
    major: Math.floor(Number(version?.['n']) / 10_000),
    rows: async (sql) => (await query(sql)).rows,
    typeOf: async (sql) => {
      try {
        return (await query(sql)).fields[0]?.dataTypeID ?? 0;
      } catch (error) {
        return sqlstateOf(error);
      }
    },
    close,
  };
}

export async function openEngine(): Promise<Engine> {
  const url = process.env['OSL_TEST_POSTGRES'];
  if (url !== undefined) {
    const client = new pg.Client(url);
    await client.connect();
    return engineOver(
      (sql) => client.query<Row>(sql),
      () => client.end(),
    );
  }
  const db = await PGlite.create({ dataDir: await emptyDatabaseOfItsOwn() });
  return engineOver(
    (sql) => db.query<Row>(sql),
    () => db.close(),
  );
}
