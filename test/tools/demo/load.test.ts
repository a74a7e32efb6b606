import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { ensureDemo, loadDemo } from '../../../cli/demo/load.js';
import { readSupplyChain } from '../../../cli/demo/read.js';
import { DemoProblem } from '../../../cli/demo/tables.js';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { SystemEngine } from '../../../src/engine/system.js';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';
import { processorMs } from '../../support/processor.js';
import { replacing } from '../../support/replacing.js';

/** Tests run from the repository's root, whose own installation is the demo. */
const ROOT = process.cwd();

type Row = Record<string, unknown>;

/** Another route to the same facts: plain loops, synchronous, Node's own lookup paths. */
function recount(): {
  readonly packages: Row[];
  readonly dependencies: string[];
  readonly people: Set<string>;
} {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const packages: Row[] = [];
  const dependencies: string[] = [];
  const people = new Set<string>();
  for (const path of Object.keys(lock.packages)) {
    if (!path.startsWith('node_modules/') || !existsSync(join(ROOT, path))) continue;
    const own = lock.packages[path];
    const facts = own.link ? lock.packages[own.resolved] : own;
    const size = own.link ? { bytes: 0, files: 0 } : walk(join(ROOT, path));
    const row = { path, version: facts.version, dev: Boolean(own.dev), optional: Boolean(own.optional) };
    packages.push({ ...row, install_bytes: `${size.bytes}`, file_count: size.files });
    // Npm installs what is developed with for a workspace alone, which the lock file has as a link.
    const developed = own.link ? ['devDependencies'] : [];
    for (const key of ['dependencies', 'peerDependencies', 'optionalDependencies', ...developed]) {
      for (const name of Object.keys(facts[key] ?? {})) {
        const found = lookUp(join(ROOT, path), name);
        if (found !== null) dependencies.push(`${path} ${found} ${key}`);
      }
    }
    const json = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'));
    for (const entry of [json.author, json.maintainers, json.contributors].flat()) {
      const email = /[^\s<>()]+@[^\s<>()]+\.[^\s<>()]+/.exec(
        typeof entry === 'string' ? entry : (entry?.email ?? ''),
      )?.[0];
      if (email !== undefined) people.add(email.toLowerCase());
    }
  }
  return { packages: packages.sort(byPath), dependencies: dependencies.sort(), people };
}

function byPath(a: Row, b: Row): number {
  return `${a['path']}` < `${b['path']}` ? -1 : 1;
}

function walk(folder: string): { bytes: number; files: number } {
  let [bytes, files] = [0, 0];
  for (const name of readdirSync(folder)) {
    if (name === 'node_modules') continue;
    const stat = lstatSync(join(folder, name));
    const inner = stat.isDirectory()
      ? walk(join(folder, name))
      : { bytes: stat.isFile() ? stat.size : 0, files: stat.isFile() ? 1 : 0 };
    bytes += inner.bytes;
    files += inner.files;
  }
  return { bytes, files };
}

/** The first folder named `name` on Node's own lookup paths, as a key of the lock file. */
function lookUp(folder: string, name: string): string | null {
  const require = createRequire(join(realpathSync(folder), 'package.json'));
  for (const modules of require.resolve.paths(`${name}/package.json`) ?? []) {
    const found = join(modules, name);
    if (found.startsWith(join(ROOT, 'node_modules/')) && existsSync(found))
      return found.slice(ROOT.length + 1);
  }
  return null;
}

const KEY_OF_KIND = new Map([
  ['prod', 'dependencies'],
  ['peer', 'peerDependencies'],
  ['optional', 'optionalDependencies'],
  ['dev', 'devDependencies'],
]);

test('the demo', async (t) => {
  const engine = await openEngine({ kind: 'pglite', dataDir: await emptyDatabaseOfItsOwn() });
  t.teardown(() => engine.close());
  const { system } = engine;
  const count = async (table: string) =>
    Number((await system.query(generatedSql(`select count(*) as n from supply.${table}`)))[0]?.['n']);
  const chain = await readSupplyChain(ROOT);

  await t.test('a load that fails in the middle leaves nothing', async (t) => {
    const half = (done: number, total: number): void => {
      if (done > total / 2) throw new Error('killed');
    };
    await t.rejects(loadDemo(system, chain, half), { message: 'killed' });
    t.equal((await system.query(sql`select to_regnamespace('supply') as s`))[0]?.['s'], null);
  });

  await t.test('the first start loads, the second does not', async (t) => {
    const steps: string[] = [];
    const start = processorMs();
    t.equal(await ensureDemo(system, ROOT, (step, done, total) => done === total && steps.push(step)), true);
    t.ok(processorMs() - start < 20_000);
    t.strictSame(steps, ['read', 'load']);
    t.equal(await ensureDemo(system, ROOT, () => t.fail('nothing is to be done')), false);
    t.equal(await loadDemo(system, chain), false);
    t.equal(await count('loaded'), 1);
  });

  await t.test('packages are those of an independent count', async (t) => {
    const columns = 'path, version, dev, optional, install_bytes, file_count';
    const rows = await system.query(
      generatedSql(`select ${columns} from supply.package order by path collate "C"`),
    );
    t.ok(rows.length > 200);
    t.strictSame(
      rows.map((r) => ({ ...r })),
      recount().packages,
    );
  });

  await t.test('dependencies are those that Node finds', async (t) => {
    const rows = await system.query(sql`select from_path, to_path, kind from supply.dependency`);
    t.strictSame(
      rows.map((r) => `${r['from_path']} ${r['to_path']} ${KEY_OF_KIND.get(`${r['kind']}`)}`).sort(),
      recount().dependencies,
    );
    const wrong = await system.query(
      sql`select path from supply.package p where dependents <> (select count(distinct from_path) from supply.dependency where to_path = p.path)`,
    );
    t.strictSame(wrong, []);
  });

  await t.test(
    'people are those that the packages name, and addresses stand in one column only',
    async (t) => {
      const rows = await system.query(
        sql`select distinct lower(email) as email from supply.person where email is not null`,
      );
      t.strictSame(rows.map((r) => `${r['email']}`).sort(), [...recount().people].sort());
      const stray = await system.query(
        sql`select id from supply.person where id like '%@%' or name ~ '[^ ]@[^ ]+[.]' or coalesce(url, '') ~ '[^/ ]@[^ ]+[.]'`,
      );
      t.strictSame(stray, []);
    },
  );

  await t.test('what the copyleft role sees is what is outside the four families', async (t) => {
    const rows = await system.query(
      sql`select distinct license from supply.package where license_class <> 'permissive'`,
    );
    for (const { license } of rows) t.notMatch(`${license}`, /^(MIT|ISC|BSD|0BSD|Apache)/);
    const others = await system.query(
      sql`select distinct license from supply.package where license_class = 'permissive'`,
    );
    for (const { license } of others) t.match(`${license}`, /\b(MIT|ISC|BSD|0BSD|Apache)\b/);
  });

  await t.test('a changed installation replaces the rows', async (t) => {
    const smaller = { ...chain, fingerprint: 'other', credits: [], documents: chain.documents.slice(0, 3) };
    t.equal(await loadDemo(system, smaller), true);
    t.equal(await count('credit'), 0);
    t.equal(await count('document'), 3);
  });

  await t.test('a schema of that name that is not ours is left alone', async (t) => {
    await system.script(
      sql`drop schema supply cascade; create schema supply; create table supply.precious (id int)`,
    );
    await t.rejects(loadDemo(system, chain), DemoProblem);
    t.equal(await count('precious'), 0);
  });
});

test('a start with the demo loaded is quick', async (t) => {
  const calls: string[] = [];
  const refused = (): Promise<never> => Promise.reject(new Error('no session'));
  const system = replacing(new SystemEngine(refused, () => 'nobody'), {
    query: async (statement) => {
      calls.push(`${statement}`);
      return [{ there: true }];
    },
    grantRead: async () => {},
  });
  t.equal(await ensureDemo(system, ROOT), false);
  t.equal(calls.length, 2);
});

test('kill -9 in the middle of a load leaves nothing, and the next start loads', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'osl-demo-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const dataDir = join(folder, 'pg');
  const child = spawn(process.execPath, [...process.execArgv, 'dist/test/tools/demo/killed.js', dataDir], {
    stdio: 'inherit',
  });
  t.strictSame(await once(child, 'exit'), [null, 'SIGKILL']);
  const engine = await openEngine({ kind: 'pglite', dataDir });
  t.teardown(() => engine.close());
  t.equal((await engine.system.query(sql`select to_regnamespace('supply') as s`))[0]?.['s'], null);
  t.equal(await ensureDemo(engine.system, ROOT), true);
});
