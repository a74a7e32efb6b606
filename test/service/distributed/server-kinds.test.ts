import pg from 'pg';
import t, { type Test } from 'tap';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { osl } from '../../tools/cli/support.js';
import { files, TABLES } from '../operations/store.js';
import { asked, fileArgs, logged, served, tokenFor } from '../operations/support.js';

/** A Postgres that says that it is another, in a database of its own: what the gateway makes of that, seen from outside. */

t.setTimeout(120_000);

const SUMS = 'select name, count(*) as n from osl.entities.account group by grouping sets ((name), ())';
const PLAIN = 'select name, count(*) as n from osl.entities.account group by name order by name';

const COCKROACH = `
  alter function pg_catalog.version() rename to version_of_postgres;
  create function pg_catalog.version() returns text language sql immutable
    as $$ select 'CockroachDB CCL v24.3.1 (x86_64-pc-linux-gnu, built 2024/12/02)' $$`;
const CITUS = `
  insert into pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    values (60001, 'citus', 10, 11, false, '12.1-1')`;

async function pretending(t: Test, script: string): Promise<NativePostgres | null> {
  const postgres = await startNativePostgres();
  if (postgres === null) return null;
  t.teardown(() => postgres.stop());
  const direct = new pg.Client(postgres.url);
  await direct.connect();
  await direct.query(`${TABLES} set allow_system_table_mods = on; ${script}`);
  await direct.end();
  return postgres;
}

t.test('what a CockroachDB does not document is refused before it is sent', async (t) => {
  const postgres = await pretending(t, COCKROACH);
  if (postgres === null) return t.comment(NO_NATIVE);
  const where = files();
  const server = await served(t, where, { STORE_URL: postgres.readerUrl });
  const token = await tokenFor(where.dataDir);
  const authorization = `Bearer ${token}`;
  const ask = (osql: string) => asked(server, '/osl/query', { osql }, { authorization });
  const refused = await ask(SUMS);
  t.match([refused.status, JSON.parse(refused.body)], [400, { code: 'E0528', sqlstate: '0A000' }]);
  t.match(refused.body, /does not support GROUPING SETS/);
  t.match(await ask(PLAIN), { status: 200 });
  const client = await connectPg({ port: server.record()['pgPort'], user: 'user:analyst', password: token });
  t.teardown(() => client.end());
  // Often enough for the fast lane.
  for (let i = 0; i < 6; i++) {
    await t.rejects(client.query(SUMS), { code: '0A000' });
    t.same((await client.query(PLAIN)).rows.length, 2);
  }
  t.ok(
    logged(server).some((line) =>
      /is CockroachDB, on which this gateway was not tried/.test(String(line['msg'])),
    ),
    'the operator is told',
  );
});

t.test('a Citus is sent all of it, and doctor says what it refuses', async (t) => {
  const postgres = await pretending(t, CITUS);
  if (postgres === null) return t.comment(NO_NATIVE);
  const where = files();
  const env = { STORE_URL: postgres.readerUrl };
  const server = await served(t, where, env);
  const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
  t.match(await asked(server, '/osl/query', { osql: SUMS }, { authorization }), { status: 200 });
  const args = ['doctor', ...fileArgs(where)];
  t.match(
    (await osl(args, { env })).stdout,
    /is Citus; refused, .*E0528\): FETCH … WITH TIES; over several shards .* GROUPING SETS, .*E0531/,
  );
});
