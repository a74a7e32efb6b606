import { Client } from 'pg';
import { type NativePostgres, startNativePostgres } from '../../test/support/native-postgres.js';

/** Runs `work` with a native Postgres, after running `scripts` on it. @throws Error if none is installed */
export async function withPostgres<T>(
  scripts: readonly string[],
  work: (postgres: NativePostgres) => Promise<T>,
): Promise<T> {
  const postgres = await startNativePostgres();
  if (postgres === null) {
    throw new Error('no native Postgres: set OSL_TEST_POSTGRES_URL or install the server binaries');
  }
  try {
    await withClient(postgres.url, async (client) => {
      for (const script of scripts) await client.query(script);
    });
    return await work(postgres);
  } finally {
    await postgres.stop();
  }
}

export async function withClient<T>(
  connectionString: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Accounts that the benches of the surfaces read; `bench/wire/manifest.yaml` declares them. */
export function accounts(rows: number): readonly string[] {
  const table = `
    create schema bench;
    create table bench.account (
      id int8 primary key, region text not null, owner text not null, balance int4 not null, opened date not null
    );
    insert into bench.account
      select i, 'eu', 'owner ' || i, i % 10000, date '2020-01-01' + (i % 2000)::int
      from generate_series(1, ${rows}) as i;
    grant usage on schema bench to osl_reader;
    grant select on bench.account to osl_reader;
  `;
  return [table, 'vacuum analyze bench.account'];
}
