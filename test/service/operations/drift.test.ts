import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { connectPg } from '../../support/pg-client.js';
import { files, openStore } from './store.js';
import { asked, logged, served, tokenFor } from './support.js';

/** A database that changes under a running server: what no longer fits goes out of service, and comes back by itself. */

t.setTimeout(300_000);

const store = await openStore(t, 'drift');
if (store !== null) {
  const { postgres, admin: direct } = store;

  for (const seconds of ['1', '3600']) {
    await t.test(`looked for each ${seconds} s, and when a question meets it`, async (t) => {
      const where = files();
      const server = await served(t, where, { STORE_URL: postgres.readerUrl, OSL_DRIFT_SECONDS: seconds });
      const password = await tokenFor(where.dataDir);
      const { pgPort } = server.record();
      const client = await connectPg({ port: pgPort, user: 'user:analyst', password });
      const figure = async (name: string) =>
        Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await asked(server, '/metrics')).body)?.[1]);
      const out = () => figure('osl_objects_out_of_service');
      const ask = (osql: string) =>
        asked(server, '/osl/query', { osql }, { authorization: `Bearer ${password}` });
      const ids = () => client.query('select id from osl.entities.account where id = 1');
      // On the fast lane, which must hear of it too.
      while ((await figure('osl_wire_fast_questions')) === 0) await ids();
      t.equal(await out(), 0);

      for (const [change, code, sqlstate, mend] of [
        [
          'alter table shop.account rename name to was',
          'E0525',
          '42703',
          'alter table shop.account rename was to name',
        ],
        [
          'alter table shop.account alter name type int using 1',
          'E0526',
          '42804',
          "alter table shop.account alter name type text using 'ann'",
        ],
      ] as const) {
        await direct.query(change);
        // With a long interval it is the question that meets it which has it looked at.
        if (seconds !== '1') t.match((await ask('select name from osl.entities.account')).body, code);
        while ((await out()) !== 1) await sleep(20);
        t.match(await ask('select id from osl.entities.account'), { status: 502, body: new RegExp(code) });
        await t.rejects(ids(), { code: sqlstate }, 'a question of the fast lane is refused too');
        t.match(await ask('select id from osl.entities.big'), { status: 200 }, 'everything else is answered');
        await direct.query(mend);
        // Asking is how it is noticed, where nobody looks for an hour.
        while ((await out()) !== 0) {
          await ask('select id from osl.entities.account');
          await sleep(50);
        }
        t.match(await ask('select name from osl.entities.account where id = 1'), { status: 200 });
        t.match((await ids()).rows, [{ id: 1 }]);
      }
      const lines = logged(server).filter(({ object }) => object === 'account');
      t.match(
        lines.map(({ msg }) => msg),
        [
          'out of service until it is mended',
          'in service again',
          'out of service until it is mended',
          'in service again',
        ],
      );
      t.match(lines[0], { level: 50, connector: 'db', gone: ['shop.account.name'] });
      t.match(lines[2], { level: 50, connector: 'db', changed: ['shop.account.name'] });
      await client.end();
      await server.signal('SIGTERM');
      const told = [];
      for await (const record of readRecords(join(where.dataDir, 'audit')))
        if (record.action === 'service.drift') told.push(JSON.parse(record.detail ?? ''));
      t.match(told, [
        { connector: 'db', out: [{ object: 'account', cause: 'gone' }], back: [] },
        { connector: 'db', out: [], back: ['account'] },
        { connector: 'db', out: [{ object: 'account', cause: 'changed' }], back: [] },
        { connector: 'db', out: [], back: ['account'] },
      ]);
    });
  }
}
