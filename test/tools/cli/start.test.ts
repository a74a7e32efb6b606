import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { untilStopped } from '../../../cli/serve/run.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { modulesNoted, notingModules, packagesIn } from './noted-modules.js';
import { osl, temporary } from './support.js';

/** A command starts with what it needs: to load everything takes ten times as long as a question does. */

const rest = await startRest();
t.teardown(() => rest.close());
const { auditDir, policyFile } = rest.test;
const server = ['--server', `http://127.0.0.1:${rest.port}`];
const minting = ['--data-dir', dirname(auditDir), '--policy', policyFile, '--subject', 'user:ann'];

/** The modules that a command loads, as paths: `node_modules/commander/index.js`. */
async function loadedBy(t: Tap, args: readonly string[]): Promise<readonly string[]> {
  const file = join(temporary(), 'loaded');
  const run = await osl(args, { env: notingModules(file) });
  t.equal(run.code, 0, run.stderr);
  return modulesNoted(file);
}

type Tap = typeof t;

t.test('a question to a server loads no library but that of the command line', async (t) => {
  const token = await rest.test.token('user:ann');
  for (const who of [['--token', token], minting]) {
    for (const command of [
      ['query'],
      ['query', '--json'],
      ['query', '--format', 'csv'],
      ['query', '--format', 'ndjson'],
      ['explain'],
    ]) {
      const loaded = await loadedBy(t as Tap, [...command, ...server, ...who, 'select 1 as one']);
      t.strictSame([...packagesIn(loaded)], ['commander']);
      t.ok(loaded.length > 10 && loaded.length < 70, `${loaded.length} modules`);
      t.notOk(
        loaded.some((file) => /\/(manifest\/index|policy\/index|compiler\/dist\/index)\.js$/.test(file)),
      );
    }
  }
});

t.test('osl token loads no more', async (t) => {
  t.strictSame([...packagesIn(await loadedBy(t as Tap, ['token', ...minting]))], ['commander']);
});

t.test('a policy that is not plain YAML mints as well, and one with a fault is told of', async (t) => {
  const policy = join(temporary(), 'policy.yaml');
  const as = ['token', '--data-dir', dirname(auditDir), '--policy', policy];
  writeFileSync(policy, readFileSync(policyFile, 'utf8').replace('user:ann:', '"user:\\u0061nn":'));
  t.match(await osl([...as, '--subject', 'user:ann']), { code: 0, stdout: /^ey/ });
  writeFileSync(policy, readFileSync(policyFile, 'utf8').replace('roles:\n', 'rolls:\n'));
  t.match(await osl([...as, '--subject', 'user:ann']), { code: 2, stderr: /rolls/ });
});

t.test('an unknown command is answered as if all were loaded', async (t) => {
  t.match(await osl(['quary']), { code: 2, stderr: /unknown command 'quary'[\s\S]*query/ });
});

t.test(
  'the first Ctrl-C stops, a second forces; one that npm passes on as well is not a second',
  async (t) => {
    let forced = 0;
    let reloaded = 0;
    const told = untilStopped({
      reload: () => {
        reloaded += 1;
      },
      force: () => {
        forced += 1;
      },
    });
    process.emit('SIGHUP');
    t.equal(reloaded, 1);
    process.emit('SIGINT');
    process.emit('SIGINT');
    await told;
    t.equal(forced, 0);
    await sleep(300);
    process.emit('SIGINT');
    t.equal(forced, 1);
  },
);
