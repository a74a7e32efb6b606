import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, ROOT } from '../../tools/cli/support.js';
import { files, TABLES } from './store.js';
import { asked, served, tokenFor } from './support.js';

/**
 * A data directory that an older version left, opened by this one. `upgrade/0cdbc2c.json` was written by the commit of
 * that name (2026-11-23): its server answered a question, refused one, published the metric `accounts`, and stopped.
 * Each file by its path, in base64; the keys sign nothing but this.
 */
const LEFT = join(ROOT, 'test/service/operations/upgrade/0cdbc2c.json');

t.setTimeout(120_000);

const postgres = await startNativePostgres();
if (postgres === null) t.test('an upgrade', { skip: NO_NATIVE }, async () => undefined);
else {
  t.teardown(() => postgres.stop());
  await t.test(
    'this version serves what an older one left, under its keys, and goes on with its log',
    async (t) => {
      const direct = new pg.Client(postgres.url);
      await direct.connect();
      await direct.query(TABLES);
      await direct.end();
      const where = files();
      const left = JSON.parse(readFileSync(LEFT, 'utf8')) as Readonly<Record<string, string>>; // as it was written
      for (const [path, content] of Object.entries(left)) {
        const file = join(where.dataDir, path);
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, Buffer.from(content, 'base64'), { mode: 0o600 });
      }
      const verify = () => osl(['audit', 'verify', '--json', '--data-dir', where.dataDir]);
      t.match(await verify(), { code: 0 }, 'the log of the older version verifies');
      const records = async () => {
        const found = [];
        for await (const record of readRecords(join(where.dataDir, 'audit'))) found.push(record);
        return found;
      };
      const before = await records();
      t.ok(before.some((r) => r.action === 'publish' && r.decision === 'allow'));

      const server = await served(t, where, { STORE_URL: postgres.readerUrl });
      // Minted with the key that the older version made.
      const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
      const ask = async (text: string) =>
        JSON.parse((await asked(server, '/osl/query', { osql: text }, { authorization })).body);
      t.match(await ask('select name from osl.entities.account order by id'), {
        rows: [{ name: 'ann' }, { name: 'bob' }],
      });
      const counted = await ask('select measure(accounts) as n from osl.entities.account');
      t.match(counted, { row_count: 1 }, 'what was published there serves');
      t.equal(Number(counted.rows[0].n), 2);
      t.match(await server.signal('SIGTERM'), { code: 0 });

      const verified = await verify();
      t.match(verified, { code: 0 }, 'and with what this version added to it');
      const after = await records();
      t.strictSame(after.slice(0, before.length), before, 'not a record of before has changed');
      t.ok(after.length > before.length);
    },
  );
}
