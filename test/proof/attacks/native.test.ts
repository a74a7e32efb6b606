import { Client } from 'pg';
import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { type Asker, SURFACES, startFrontends, WireClient } from '../../support/frontends.js';
import { type NativePostgres, NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import { startTestService } from '../../support/service.js';
import { expectedOf, readings, shown } from './reading.js';
import { CLERK, MANIFEST, policy, REAL, shopScript } from './shop.js';
import { ATTACKS } from './table.js';

/** Attacks that need a server of its own: what an upstream's own objects and roles could change, also for other tests. */
t.setTimeout(600_000);

/**
 * A schema that anybody may write to, first in the role's own search path, with a function, an aggregate, operators
 * and a table of the names that questions use: found by name, they would answer instead of Postgres' own.
 */
const SHADOWS = `
create schema evil; grant all on schema evil to public;
create function evil.lower(text) returns text language sql as 'select ''SECRET-SHADOW''::text';
create function evil.count(int4) returns int8 language sql as 'select 770077007::int8';
create function evil.eq(int4, int4) returns bool language sql as 'select true';
create operator evil.= (leftarg = int4, rightarg = int4, function = evil.eq);
create function evil.texteq(text, text) returns bool language sql as 'select true';
create operator evil.= (leftarg = text, rightarg = text, function = evil.texteq);
create function evil.gt(int4, int4) returns bool language sql as 'select true';
create operator evil.> (leftarg = int4, rightarg = int4, function = evil.gt);
create table evil.customer (id int4, name text); insert into evil.customer values (1, 'SECRET-SHADOW');
grant select on evil.customer to public;
alter role osl_reader set search_path = evil, pg_catalog, public;
`;

/** Parts of a governed parent under names of their own: a partition, a foreign table beside the child that is there. */
const PARTS = `
create table shop.visit (id int4, region text, note text) partition by list (region);
create table shop.visit_us partition of shop.visit for values in ('us');
insert into shop.visit values (1, 'us', 'SECRET-VISIT');
create foreign data wrapper nowhere; create server nowhere foreign data wrapper nowhere;
create foreign table shop.customer_far (id int4, ssn text) server nowhere;
grant select on all tables in schema shop to osl_reader;
`;

const native = await startOwnPostgres();
if (native === null) {
  t.test('attacks on a native server', { skip: NO_BINARIES }, async () => undefined);
} else {
  t.teardown(() => native.stop());
  await run(native);
}

async function run(postgres: NativePostgres): Promise<void> {
  const service = await startTestService({
    postgres,
    manifest: MANIFEST,
    policy: policy(),
    script: shopScript(REAL),
  });
  await service.engine.system.script(generatedSql(SHADOWS + PARTS));
  const fronts = await startFrontends(service.open);
  const askers: Asker[] = [];
  t.teardown(async () => {
    for (const a of askers) a.end();
    await fronts.stop();
    await service.close();
  });

  t.test('the shadows are there for whoever looks names up', async (t) => {
    const client = new Client({ connectionString: postgres.readerUrl });
    await client.connect();
    const { rows } = await client.query('select lower(name) as l, id = 7 as same from customer');
    t.strictSame(rows, [{ l: 'SECRET-SHADOW', same: true }]);
    t.match((await client.query('select note from shop.visit_us')).rows, [{ note: 'SECRET-VISIT' }]);
    await client.end();
  });

  for (const surface of SURFACES) {
    t.test(surface, async (t) => {
      for (const { n, name, tries, benign } of ATTACKS.filter((a) => [34, 35, 37, 43].includes(a.n))) {
        await t.test(`${n}. ${name}`, async (t) => {
          for (const [text, expected, caller = CLERK] of [...tries, ...benign]) {
            const asker = await fronts.asker(surface, caller);
            for (const [i, reading] of readings(text).entries())
              t.strictSame(shown(await asker.ask(reading), text), expectedOf(expected, text, i), reading);
            asker.end();
          }
        });
      }
      const asker = await fronts.asker(surface, CLERK);
      askers.push(asker);
      for (const table of ['shop.visit', 'shop.visit_us', 'shop.customer_far', 'evil.customer']) {
        const { outcome } = await asker.ask(`select * from ${table}`);
        t.match(outcome, { kind: 'refused', sqlstate: '42P01' }, `35. ${table}`);
      }
    });
  }

  t.test('31. one upstream session keeps nothing of a caller', async (t) => {
    const asker = await WireClient.login(fronts.pgPort, CLERK.subject, await fronts.token(CLERK));
    await asker.simple("set application_name = 'SECRET-APPLICATION'");
    await asker.simple('begin');
    t.match((await asker.simple('select id from customer where id = 1')).outcome, { rows: [['1']] });
    const upstream = await service.engine.system.query(
      sql`select application_name as name, query from pg_stat_activity where usename = 'osl_reader'`,
    );
    t.ok(upstream.length > 0, 'the upstream sessions are seen');
    for (const { name, query } of upstream) t.notMatch(`${name} ${query}`, /SECRET/);
    asker.end();
    const other = await fronts.asker('extended wire', CLERK);
    t.match((await other.ask('select joined::text from customer where id = 1')).outcome, {
      rows: [['2024-02-01 12:00:00+00']],
    });
    other.end();
  });

  t.test('36. a superuser upstream, or one that bypasses row security, is sent no question', async (t) => {
    const admin = new Client({ connectionString: postgres.url });
    await admin.connect();
    for (const right of ['BYPASSRLS', 'SUPERUSER']) {
      await admin.query(`alter role osl_reader ${right}`);
      await t.rejects(
        startTestService({ postgres, manifest: MANIFEST, policy: policy(), script: 'select 1' }),
        /does not respond/,
        right,
      );
      await admin.query(`alter role osl_reader NO${right}`);
    }
    await admin.end();
  });
}
