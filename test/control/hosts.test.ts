import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { controlUrl, listenForChanges, migrate, openControl } from '../../src/base/control/index.js';
import { sql } from '../../src/base/sql.js';
import { listenOn } from '../../src/engine/index.js';
import { NO_BINARIES } from '../support/native-postgres.js';
import { startPair } from '../support/replicated-postgres.js';

/** A control database of several hosts: the primary is used, also once another server is it. */

const pair = await startPair();

t.test('which URLs are accepted', async (t) => {
  const url = 'postgres://u:p@127.0.0.1:1,localhost:2/d';
  t.equal(controlUrl({ url }), `${url}?target_session_attrs=primary`);
  t.equal(
    controlUrl({ url: `${url}?sslmode=disable` }),
    `${url}?sslmode=disable&target_session_attrs=primary`,
  );
  for (const [refused, why] of [
    [`${url}?target_session_attrs=standby`, /is written to/],
    [`${url}?target_session_attrs=leader`, /must be any, /],
    ['postgres://u@127.0.0.1,db.example/d', /db\.example is another machine/],
  ] as const)
    t.throws(() => controlUrl({ url: refused }), why);
});

t.test(
  'a primary that is killed, and a standby that is promoted',
  { skip: pair === null && NO_BINARIES },
  async (t) => {
    if (pair === null) return;
    t.teardown(() => pair.stop());
    const { primary, standby } = pair;
    const url = `postgres://postgres:osl@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`;
    const database = openControl({ url }, { statementMs: 2_000 });
    t.teardown(() => database.close());
    await migrate(database, { gateway: [], author: [] });
    t.pass('the first host is a standby: the second is written to');

    const data = await listenOn(
      `${url}?target_session_attrs=primary`,
      'osl_data',
      () => undefined,
      () => undefined,
    );
    await data.close();
    t.pass('notifications of a data database come from a server of the kind that its URL asks for');

    let heard = 0;
    let lost = 0;
    const listening = listenForChanges(
      { url },
      {
        heard: () => {
          heard += 1;
        },
        lost: () => {
          lost += 1;
        },
      },
    );
    t.teardown(() => listening.close());
    while (heard === 0) await sleep(20);
    await database.query(sql`create table public.tried (n int)`);
    await primary.kill();
    await standby.promote();
    await database.query(sql`insert into public.tried values (1)`);
    t.same(
      await database.query(sql`select n from public.tried`),
      [{ n: 1 }],
      'the same call, at the other server',
    );
    while (lost === 0 || heard === 1) await sleep(20);
    const before = heard;
    await database.query(sql`select pg_notify('osl_control', 'x')`);
    while (heard === before) await sleep(20);
    t.pass('and notifications are heard from there');
  },
);
