import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { checkBackup } from '../../../cli/backup/archive.js';
import { diceFrom } from '../../proof/oracle/dice.js';
import { adminToken, files, TABLES } from '../../service/operations/store.js';
import { asked, type Place, served, tokenFor } from '../../service/operations/support.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { BIN, osl, ROOT, type Server, shell, temporary } from './support.js';

/** `osl backup` and `osl restore`: a server of two workers that answers and publishes meanwhile, seen from outside. */

t.setTimeout(240_000);

const NAMES = 'select name from osl.entities.account order by id';
const MEASURED = 'select measure(accounts) as n from osl.entities.account';

const postgres = await startNativePostgres();
if (postgres === null) t.test('backup and restore', { skip: NO_NATIVE }, async () => undefined);
else {
  t.teardown(() => postgres.stop());
  const direct = new pg.Client(postgres.url);
  await direct.connect();
  await direct.query(TABLES);
  await direct.end();
  const env = { STORE_URL: postgres.readerUrl };
  const witness = join(temporary(), 'witness');
  mkdirSync(witness);

  const ask = async (server: Server, token: string, osql: string) =>
    asked(server, '/osl/query', { osql }, { authorization: `Bearer ${token}` });
  const verify = (where: Place, ...more: readonly string[]) =>
    osl(['audit', 'verify', '--json', '--data-dir', where.dataDir, ...more]);
  const elsewhere = (where: Place): Place => ({ ...where, dataDir: join(temporary(), 'restored') });
  const restore = (file: string, { dataDir }: Place, ...more: readonly string[]) =>
    osl(['restore', file, '--data-dir', dataDir, ...more]);

  const where = files();
  const more = { ...env, OSL_WORKERS: '2', OSL_AUDIT_WITNESS: witness, OSL_AUDIT_WITNESS_SECONDS: '1' };
  const server = await served(t, where, more);
  const publish = async (metric: string): Promise<void> => {
    const authorization = `Bearer ${await adminToken(where)}`;
    const { body } = await asked(server, '/osl/objects', null, { authorization });
    const base = (JSON.parse(body) as { version: string }).version; // docs/rest.md
    const fragment = { metrics: { [metric]: { entity: 'account', expression: 'count(*)' } } };
    const sent = { authorization: `Bearer ${await adminToken(where)}` };
    const reply = await asked(server, '/osl/objects', { fragment, base_version: base }, sent);
    if (reply.status !== 201) throw new Error(`${reply.status} ${reply.body}`);
  };
  await publish('accounts');
  const token = await tokenFor(where.dataDir);
  const backups = temporary();
  const [withKeys, without] = [join(backups, 'with-keys.tar'), join(backups, 'without.tar')];

  await t.test('a backup of a server that answers and publishes', async (t) => {
    let asking = true;
    let answered = 0;
    const load = [1, 2].map(async () => {
      while (asking) {
        const { status } = await ask(server, token, NAMES);
        if (status === 200) answered += 1;
      }
    });
    const publishing = publish('more_accounts');
    const first = await osl(['backup', withKeys, '--with-keys', '--data-dir', where.dataDir]);
    t.match(first, { code: 0, stdout: /it ran meanwhile/ }, first.stderr);
    t.match(await osl(['backup', without, '--json', '--data-dir', where.dataDir]), { code: 0 });
    asking = false;
    await Promise.all([...load, publishing]);
    t.ok(answered > 10, `${answered} answers meanwhile`);
    t.equal(statSync(withKeys).mode & 0o777, 0o600);
    t.equal(statSync(without).mode & 0o777, 0o600, 'drafts and the log are nobody else’s either');
    t.match(
      await shell(
        `cd ${backups} && mkdir t && tar -C t -xf without.tar && cd t && sha256sum --quiet -c SHA256SUMS`,
      ),
      {
        code: 0,
      },
    );
    const names = (await shell(`tar -tf ${without}`)).stdout;
    t.notMatch(names, /\.key$|data\/keys/m, 'no key that nobody asked for');
    t.match((await shell(`tar -tf ${withKeys}`)).stdout, /data\/keys\/masking\.key/);
    t.notMatch(
      (await shell(`tar -tf ${withKeys}`)).stdout,
      /checkpoint\.key/,
      'nobody goes on with these chains',
    );
    t.match(await osl(['backup', without, '--data-dir', where.dataDir]), {
      code: 2,
      stderr: /never written over/,
    });
  });

  await t.test('a restore on another machine serves what was published, under the same keys', async (t) => {
    const there = elsewhere(where);
    const restored = await restore(withKeys, there);
    t.match(restored, { code: 0, stdout: /the chain holds/ }, restored.stderr);
    const before = JSON.parse((await verify(there)).stdout) as { workers: unknown[] }; // docs/audit.md
    t.equal(before.workers.length, 2, 'three chains, before a start too');
    const again = await served(t, there, env);
    t.match(await ask(again, token, NAMES), { status: 200 }, 'a token of the original');
    t.match(await ask(again, token, MEASURED), { status: 200 });
    t.match(await again.signal('SIGTERM'), { code: 0 });
    t.match(await verify(there), { code: 0 });
    const [told] = await events(there, 'service.restored');
    const detail = JSON.parse(told?.detail ?? '{}') as {
      chains: { name: string; records: number }[];
      keys: boolean;
    };
    t.equal(detail.keys, true);
    t.equal(detail.chains.length, 3);
    t.ok(detail.chains.every(({ records }) => records > 0));
    t.notOk(
      detail.chains.some(({ name }) => name === `osl-audit/${told?.writer}`),
      'the new chain has a name of its own',
    );
    t.equal((await events(there, 'service.copied')).length, 0);
    const search = await osl([
      'audit',
      'search',
      '--data-dir',
      there.dataDir,
      '--object',
      'account',
      '--json',
    ]);
    const writers = detail.chains.map(({ name }) => name.replace('osl-audit/', ''));
    t.ok(
      writers.some((writer) => search.stdout.includes(writer)),
      'what was recorded before is found',
    );
    t.ok(search.stdout.includes(told?.writer ?? 'nobody'), 'and the start of now');
    t.notOk(existsSync(join(there.dataDir, 'restored.json')), 'it is said once');
  });

  await t.test('what was recorded after the backup is missed, not forked', async (t) => {
    const there = elsewhere(where);
    t.match(await restore(withKeys, there, '--json'), { code: 0 });
    const kept = (): number =>
      readdirSync(witness).reduce((sum, dir) => sum + readdirSync(join(witness, dir)).length, 0);
    const before = kept();
    await ask(server, token, NAMES);
    for (let i = 0; i < 300 && kept() === before; i++) await sleep(100);
    const judged = await verify(there, '--witness', witness);
    t.equal(judged.code, 5, 'records are missing, says who knows how many there were');
    t.match(judged.stdout, /"kind":"cut"/);
  });

  await t.test('without keys it starts with new ones', async (t) => {
    const there = elsewhere(where);
    t.match(await restore(without, there), { code: 0, stdout: /makes new ones/ });
    const again = await served(t, there, env);
    t.match(await ask(again, token, NAMES), { status: 401 });
    t.match(await ask(again, await tokenFor(there.dataDir), MEASURED), { status: 200 });
    t.match(await again.signal('SIGTERM'), { code: 0 });
    t.match(await verify(there), { code: 0 });
    // A backup of what was restored has both logs, and goes on so.
    const twice = join(backups, 'twice.tar');
    t.match(await osl(['backup', twice, '--data-dir', there.dataDir]), { code: 0, stdout: /none runs here/ });
    const last = elsewhere(where);
    t.match(await restore(twice, last), { code: 0 });
    t.same(
      readdirSync(join(last.dataDir, 'audit'))
        .filter((n) => n.startsWith('before'))
        .sort(),
      ['before-1', 'before-2'],
    );
    t.match(await verify(last), { code: 0 });
  });

  await t.test('nothing is restored over anything, and nothing that is damaged', async (t) => {
    t.match(await restore(withKeys, where), { code: 2, stderr: /is not empty/ }, 'a living directory');
    const there = elsewhere(where);
    mkdirSync(there.dataDir, { recursive: true });
    writeFileSync(join(there.dataDir, 'notes.txt'), 'mine');
    t.match(await restore(withKeys, there), { code: 2, stderr: /is not empty/ });
    const whole = readFileSync(withKeys);
    const dice = diceFrom(7);
    const flipped = join(backups, 'flipped.tar');
    for (let i = 0; i < 40; i++) {
      const bytes = Buffer.from(whole);
      const at = i < 20 ? i * 37 : dice.upTo(whole.length - 1);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.upTo(7));
      writeFileSync(flipped, bytes);
      t.equal(await isWhole(flipped), false, `a byte at ${at}`);
    }
    const target = elsewhere(where);
    t.match(await restore(flipped, target), { code: 4, stderr: /Nothing was written/ });
    t.notOk(existsSync(target.dataDir));
    t.same(readdirSync(dirname(target.dataDir)), [], 'and nothing beside it');
    for (const length of [0, 511, 512, whole.length - 1_024, whole.length - 1]) {
      writeFileSync(flipped, whole.subarray(0, length));
      t.equal(await isWhole(flipped), false, `${length} bytes`);
    }
    writeFileSync(flipped, Buffer.concat([whole, Buffer.alloc(512)]));
    t.equal(await isWhole(flipped), false, 'more than was written');
    writeFileSync(flipped, whole);
    t.equal(await isWhole(flipped), true);
  });

  await t.test('a backup that is killed leaves no file of that name, and the server as it was', async (t) => {
    const dir = temporary();
    const file = join(dir, 'killed.tar');
    const child = spawn(
      process.execPath,
      [...process.execArgv, BIN, 'backup', file, '--data-dir', where.dataDir],
      {
        cwd: ROOT,
        stdio: 'ignore',
      },
    );
    const gone = new Promise((resolve) => child.once('exit', resolve));
    while (readdirSync(dir).length === 0 && child.exitCode === null) await sleep(1);
    child.kill('SIGKILL');
    await gone;
    if (existsSync(file)) t.equal(await isWhole(file), true, 'it was done before it was killed');
    else t.match(readdirSync(dir), [/^\.killed\.tar\..*\.part$/]);
    t.match(await ask(server, token, NAMES), { status: 200 });
    t.match(await osl(['backup', `${dir}/`, '--data-dir', where.dataDir]), { code: 0 });
  });

  await t.test('a directory that an older version left', async (t) => {
    const old = files();
    const left = JSON.parse(
      readFileSync(join(ROOT, 'test/service/operations/upgrade/0cdbc2c.json'), 'utf8'),
    ) as Readonly<Record<string, string>>; // as it was written
    for (const [path, content] of Object.entries(left)) {
      mkdirSync(dirname(join(old.dataDir, path)), { recursive: true, mode: 0o700 });
      writeFileSync(join(old.dataDir, path), Buffer.from(content, 'base64'), { mode: 0o600 });
    }
    const file = join(backups, 'old.tar');
    const made = await osl(['backup', file, '--with-keys', '--data-dir', old.dataDir]);
    t.match(made, { code: 0 }, made.stderr);
    t.notMatch(made.stderr, /left out/);
    const audit = join(old.dataDir, 'audit');
    const keys = readdirSync(audit).filter((name) => /^segment-\d+\.key$/.test(name));
    t.not(keys.length, 0);
    for (const key of keys) rmSync(join(audit, key)); // as docs/audit.md has an operator destroy them
    const keyless = await osl([
      'backup',
      join(backups, 'keyless.tar'),
      '--with-keys',
      '--data-dir',
      old.dataDir,
    ]);
    t.match(keyless, { code: 0 }, keyless.stderr);
    const there = elsewhere(old);
    t.match(await restore(file, there), { code: 0 });
    const again = await served(t, there, env);
    t.match(
      await ask(again, await tokenFor(old.dataDir), MEASURED),
      { status: 200 },
      'its keys, and what it published',
    );
    t.match(await again.signal('SIGTERM'), { code: 0 });
    t.match(await verify(there), { code: 0 });
  });

  await t.test('the original ends in order', async (t) => {
    t.match(await server.signal('SIGTERM'), { code: 0 });
  });
}

async function isWhole(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  const { createHash } = await import('node:crypto');
  try {
    await checkBackup(handle, async (part) => {
      const hash = createHash('sha256');
      for await (const chunk of part.bytes()) hash.update(chunk);
      return hash.digest('hex');
    });
    return true;
  } catch {
    return false;
  } finally {
    await handle.close();
  }
}

async function events({ dataDir }: Place, action: string): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = [];
  for await (const record of readRecords(join(dataDir, 'audit')))
    if (record.action === action) found.push(record);
  return found;
}
