import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { asked, place, served, tokenFor } from '../../service/operations/support.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import { BIN, osl, type Server, temporary } from './support.js';

/** A backup of an embedded database whose server answers questions meanwhile, and of one that is written to. */

t.setTimeout(240_000);

const ROWS = 3_000;
const MANIFEST = `version: 1
tenant: demo
connectors:
  main: { kind: pglite, tables: { shop.account: { columns: { id: { type: int4 }, name: { type: text } } } } }
entities:
  account: { source: main.shop.account, primary_key: [id], columns: { id: { column: id }, name: { column: name } } }
`;
const POLICY = `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst] } }
roles: { analyst: { grants: [{ on: account, columns: [id, name] }] } }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;

const where = place();
writeFileSync(where.manifest, MANIFEST);
writeFileSync(where.policy, POLICY);
const database = join(where.dataDir, 'pg', 'main');
await emptyDatabases(where.dataDir, MANIFEST);
const engine = await openEngine({ kind: 'pglite', dataDir: database });
await engine.system.script(
  generatedSql(
    `create schema shop; create table shop.account as select i as id, 'name ' || i as name from generate_series(1, ${ROWS}) i`,
  ),
);
await engine.system.grantRead('shop');
await engine.close();

const rowsOf = async (server: Server, bearer: string): Promise<unknown> => {
  const { body } = await asked(
    server,
    '/osl/query',
    { osql: 'select id, name from osl.entities.account order by id' },
    { authorization: `Bearer ${bearer}` },
  );
  return (JSON.parse(body) as { rows: unknown }).rows; // docs/rest.md
};
const backedUp = (file: string, ...more: readonly string[]) =>
  osl(['backup', file, '--with-keys', '--data-dir', where.dataDir, ...more]);

await t.test('while its server answers', async (t) => {
  const server = await served(t, where);
  const bearer = await tokenFor(where.dataDir);
  const expected = await rowsOf(server, bearer);
  t.equal((expected as unknown[]).length, ROWS);
  let asking = true;
  let answered = 0;
  const load = [1, 2].map(async () => {
    while (asking) {
      await rowsOf(server, bearer);
      answered += 1;
    }
  });
  const file = join(temporary(), 'embedded.tar');
  const made = await backedUp(file);
  asking = false;
  await Promise.all(load);
  t.match(made, { code: 0, stdout: /it ran meanwhile/ }, made.stderr);
  t.ok(answered > 2, `${answered} answers meanwhile`);
  t.match(await server.signal('SIGTERM'), { code: 0 });
  const there = { ...where, dataDir: join(temporary(), 'restored') };
  const restored = await osl(['restore', file, '--data-dir', there.dataDir]);
  t.match(restored, { code: 0 }, restored.stderr);
  const again = await served(t, there);
  t.same(await rowsOf(again, bearer), expected, 'the same rows, under the same token');
  t.match(await again.signal('SIGTERM'), { code: 0 });
});

await t.test('while somebody writes to it', async (t) => {
  const dir = temporary();
  const file = join(database, 'PG_VERSION');
  let writing = setInterval(() => utimesSync(file, new Date(), new Date()), 2);
  t.teardown(() => clearInterval(writing));
  const refused = await backedUp(join(dir, 'moving.tar'), '--wait', '0');
  t.match(refused, { code: 1, stderr: /is being written to, and did not stand still within 0 s/ });
  t.same(readdirSync(dir), [], 'nothing is left of it');
  clearInterval(writing);
  // It ends once the backup has begun, and then the copy is made anew.
  writing = setInterval(() => {
    utimesSync(file, new Date(), new Date());
    if (readdirSync(dir).length > 0) {
      clearInterval(writing);
      setTimeout(() => utimesSync(file, new Date(), new Date()), 200);
    }
  }, 2);
  t.match(await backedUp(join(dir, 'moved.tar')), { code: 0 });
  t.match(await osl(['restore', join(dir, 'moved.tar'), '--data-dir', join(dir, 'there')]), { code: 0 });
  const mounted = join(dir, 'mounted');
  mkdirSync(mounted);
  const mount = ['-rm', 'sh', '-c', 'mount -t tmpfs none "$0" && exec "$@"', mounted];
  if (spawnSync('unshare', [...mount, 'true']).status !== 0) return; // no right to mount
  const command = [process.execPath, BIN, 'restore', join(dir, 'moved.tar'), '--data-dir', mounted];
  const { status, stderr } = spawnSync('unshare', [...mount, ...command], { encoding: 'utf8' });
  t.match({ status, stderr }, { status: 2, stderr: /mounted is a mount point, which cannot be replaced/ });
});
