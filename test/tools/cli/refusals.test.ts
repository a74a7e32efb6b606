import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { segmentNumber } from '../../../audit/format.js';
import { openAuditLog } from '../../../audit/index.js';
import { ownProcess } from '../../../src/base/process-identity.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { EXAMPLE, type Finished, osl, temporary } from './support.js';

const ONE_LINE = /^error: [^\n]+\n$/;
const MANIFEST = join(EXAMPLE, 'manifest.yaml');
const POLICY = join(EXAMPLE, 'policy.yaml');
const FREE = ['--http-port', '0', '--pg-port', '0'];

/** One line (after what a start says of its progress), no stack, and this exit status. */
function refused(t: Test, run: Finished, code: number, message: RegExp): void {
  t.equal(run.code, code);
  t.match(run.stderr.replace(/^(.* …\n)+/, ''), ONE_LINE);
  t.match(run.stderr, message);
  t.notMatch(run.stderr, /\n\s+at /);
  t.equal(run.stdout, '');
}

t.test('a command line that is wrong is exit 2', async (t) => {
  t.match(await osl(['serv']), { code: 2, stderr: /unknown command 'serv'\n\(Did you mean serve\?\)/ });
  t.match(await osl(['query', '--tokn', 'x', 'select 1']), { code: 2, stderr: /unknown option '--tokn'/ });
  t.match(await osl(['serve', '--http-port', '70000']), { code: 2, stderr: /from 0 to 65535/ });
  t.match(await osl(['demo'], { env: { OSL_HTTP_PORT: 'abc' } }), {
    code: 2,
    stderr: /OSL_HTTP_PORT must be/,
  });
  t.match(await osl(['demo'], { env: { OSL_LOG_LEVEL: 'loud' } }), {
    code: 2,
    stderr: /OSL_LOG_LEVEL must be/,
  });
  t.match(await osl([]), { code: 2, stderr: /Usage: osl/ });
});

t.test(
  'a manifest with a fault: diagnostics with file and place, exit 2, and no data directory',
  async (t) => {
    const dir = temporary();
    const dataDir = join(dir, 'data');
    writeFileSync(join(dir, 'bad.yaml'), 'version: 1\nentities: [\n');
    const serve = (manifest: string): Promise<Finished> =>
      osl(['serve', '--manifest', manifest, '--policy', POLICY, '--data-dir', dataDir, ...FREE]);
    t.match(await serve(join(dir, 'bad.yaml')), { code: 2, stderr: /bad\.yaml:\d+:\d+: error M0003/ });
    t.match(await serve(join(dir, 'none.yaml')), {
      code: 2,
      stderr: /none\.yaml.*error M0001.*does not exist/,
    });
    t.notOk(existsSync(dataDir));
  },
);

t.test('validate: ok, or diagnostics and exit 2; --json has them as data', async (t) => {
  const good = await osl(['validate', '--manifest', MANIFEST]);
  t.match(good, { code: 0, stdout: /manifest\.yaml: ok, 2 entities.*\n.*policy\.yaml: ok, 5 subjects/ });
  const bad = join(temporary(), 'bad.yaml');
  writeFileSync(bad, 'version: 1\n');
  const run = await osl(['validate', '--manifest', bad, '--policy', POLICY, '--json']);
  t.equal(run.code, 2);
  t.equal(run.stderr, '');
  t.match(JSON.parse(run.stdout), {
    ok: false,
    diagnostics: [{ file: bad, code: /^M/, range: { start: { line: 1 } } }],
  });
});

t.test('a port in use is one line, exit 1, for it may be free later, before anything is made', async (t) => {
  const blocker = createServer();
  const port = await new Promise<number>((resolve) => {
    blocker.listen(0, '127.0.0.1', () => {
      const address = blocker.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const dataDir = join(temporary(), 'data');
  const at = (...ports: string[]): Promise<Finished> => osl(['demo', '--data-dir', dataDir, ...ports]);
  refused(
    t,
    await at('--http-port', `${port}`, '--pg-port', '0'),
    1,
    /port \d+ of 127.0.0.1 is in use.*OSL_HTTP_PORT/,
  );
  refused(
    t,
    await at('--http-port', '0', '--pg-port', `${port}`),
    1,
    /port \d+ of 127.0.0.1 is in use.*OSL_PG_PORT/,
  );
  refused(t, await at('--http-port', `${port + 1}`, '--pg-port', `${port + 1}`), 2, /is named twice/);
  t.notOk(existsSync(dataDir));
  blocker.close();
});

t.test(
  'a data directory that cannot serve is one line: exit 2, or 1 while another process has it',
  async (t) => {
    const demo = (dataDir: string): Promise<Finished> => osl(['demo', '--data-dir', dataDir, ...FREE]);
    const file = join(temporary(), 'file');
    writeFileSync(file, '');
    refused(t, await demo(file), 2, /is not a directory/);
    refused(t, await demo(join(file, 'below')), 2, /is not a directory/);
    if (existsSync('/proc/self')) refused(t, await demo('/proc/osl/data'), 2, /cannot be used: \/proc: /);

    const old = temporary();
    mkdirSync(join(old, 'pg', 'demo'), { recursive: true });
    writeFileSync(join(old, 'pg', 'demo', 'PG_VERSION'), '16\n');
    refused(t, await demo(old), 2, /holds Postgres 16; this build runs Postgres 18/);

    const keyless = temporary();
    tenantKeys(keyless);
    rmSync(join(keyless, 'keys', 'signing.key'));
    refused(t, await demo(keyless), 2, /key file .*signing\.key is missing/);

    const taken = temporary();
    const log = await openAuditLog({ dir: join(taken, 'audit'), tenant: 'demo' });
    refused(t, await demo(taken), 1, new RegExp(`in use by process ${process.pid}`));
    await log.close();
  },
);

t.test('a first start without files, and a second beside the first', async (t) => {
  const dir = temporary();
  const first = await osl(['serve', ...FREE], { cwd: dir });
  refused(t, first, 2, /there is no .*manifest\.yaml: `osl init` makes one/);
  const record = {
    host: '127.0.0.1',
    httpPort: 8642,
    pgPort: 15432,
    tls: false,
    httpCertFile: '',
    localTokens: true,
    issuer: 'service',
    audience: '',
    demo: true,
    version: '0',
  };
  const more = {
    manifestFile: MANIFEST,
    policyFile: POLICY,
    startedAt: '2026-01-01T00:00:00Z',
    ...ownProcess(),
    directory: String(statSync(dir).ino),
  };
  writeFileSync(join(dir, 'server.json'), JSON.stringify({ ...record, ...more }));
  const words = new RegExp(`runs already, at http://127.0.0.1:8642 \\(process ${process.pid}\\): stop it`);
  refused(t, await osl(['demo', '--data-dir', dir, ...FREE]), 1, words);
});

t.test('no server: exit 3, whichever way it is looked for', async (t) => {
  const dataDir = temporary();
  refused(t, await osl(['query', '--data-dir', dataDir, 'select 1']), 3, /no server runs in/);
  refused(t, await osl(['psql', '--data-dir', dataDir, '--subject', 'user:analyst']), 3, /no server runs in/);
  const dead = ['--server', 'http://127.0.0.1:1', '--token', 'x'];
  refused(t, await osl(['query', ...dead, 'select 1']), 3, /no answer from http:\/\/127.0.0.1:1: /);
  tenantKeys(dataDir);
  refused(
    t,
    await osl(['token', '--data-dir', dataDir, '--subject', 'x'], { cwd: dataDir }),
    3,
    /no server runs/,
  );
});

t.test('an address that is none: exit 2, and an example of one', async (t) => {
  const words = /--server <url>.*It must be the address of a server, such as https:\/\/osl\.example\.com/;
  for (const args of [
    ['query', '--server', 'notaurl', 'select 1'],
    ['psql', '--server', 'localhost:8642'],
    ['proxy', '--server', 'ftp://osl.example.com'],
    ['login', '--server', ''],
  ])
    refused(t, await osl(args), 2, words);
  refused(t, await osl(['query', 'select 1'], { env: { OSL_SERVER: 'notaurl' } }), 2, words);
});

t.test(
  'errors explains a code, an SQLSTATE, all of them; a slip of the hand gets a suggestion',
  async (t) => {
    const one = await osl(['errors', 'e0512']);
    t.equal(one.code, 0);
    t.match(one.stdout, /^E0512\n {2}cause {3}A name in the statement is not declared, or the policy/);
    t.match(
      one.stdout,
      /\n {2}do {6}Compare with `osl schema`\..*\n(?: {10}.*\n)* {2}see {5}docs\/osl-sql\.md#names\n/,
    );
    t.match(
      one.stdout,
      / {2}column `<column>` is not declared\n {4}hint: perhaps you meant `<near>`\n {4}HTTP 400, SQLSTATE 42703 /,
    );
    const byState = JSON.parse((await osl(['errors', '42703', '--json'])).stdout);
    t.match(byState[0], {
      code: 'E0512',
      name: 'unknownColumn',
      cause: /^A name/,
      docs: 'docs/osl-sql.md#names',
    });
    t.match((await osl(['errors'])).stdout, /E5030 \| {2}503 \| 57P03 {4}\| the audit log cannot be written/);
    refused(t, await osl(['errors', 'E0592']), 2, /perhaps you meant E0/);
    refused(t, await osl(['errors', 'nothing']), 2, /`osl errors` lists them/);
  },
);

t.test('audit: whole, altered, cut, stale and absent logs have exit statuses of their own', async (t) => {
  const dir = join(temporary(), 'audit');
  await write(dir);
  const whole = await osl(['audit', 'verify', '--dir', dir]);
  t.match(whole, {
    code: 0,
    stdout: /the chain holds: 22 records[\s\S]*integrity +intact[\s\S]*completeness +complete/,
  });
  t.match(await osl(['audit', 'verify', '--dir', dir, '--max-anchor-age', '3600']), { code: 0 });
  t.match(await osl(['audit', 'verify', '--dir', dir, '--max-anchor-age', '0']), {
    code: 6,
    stdout: /too old/,
  });

  const name = readdirSync(dir).find((file) => segmentNumber(file) === 1) ?? '';
  const altered = join(temporary(), 'altered');
  cpSync(dir, altered, { recursive: true });
  const bytes = readFileSync(join(altered, name));
  const at = bytes.indexOf('"request_id":"r-7"') + 15;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(join(altered, name), bytes);
  const damaged = await osl(['audit', 'verify', '--dir', altered, '--json']);
  t.equal(damaged.code, 4);
  t.match(JSON.parse(damaged.stdout), { integrity: 'damaged', problem: { kind: 'chain', segment: name } });

  const cut = join(temporary(), 'cut');
  cpSync(dir, cut, { recursive: true });
  writeFileSync(join(cut, name), readFileSync(join(cut, name)).subarray(0, at - 200));
  t.match(await osl(['audit', 'verify', '--dir', cut]), { code: 5, stdout: /completeness +incomplete/ });
  refused(t, await osl(['audit', 'verify', '--dir', join(dir, 'none')]), 2, /there is no audit log/);
});

t.test('audit tail shows the newest records; prove and check go together', async (t) => {
  const dir = join(temporary(), 'audit');
  await write(dir);
  const tail = await osl(['audit', 'tail', '--dir', dir, '-n', '3']);
  t.equal(tail.stdout.split('\n').length, 4);
  t.match(tail.stdout, /Z {2}allow .* rest query .* user:analyst {2}package {2}r-19\n/);
  const json = await osl(['audit', 'tail', '--dir', dir, '-n', '2', '--json']);
  t.match(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ request_id: 'r-19' }, { kind: 'event' }],
  );

  const proof = await osl(['audit', 'prove', 'r-7', '--dir', dir]);
  t.equal(proof.code, 0);
  const file = join(temporary(), 'proof.txt');
  writeFileSync(file, proof.stdout);
  const check = ['audit', 'check', file, '--key', join(dir, 'checkpoint.vkey')];
  t.match(await osl(check), {
    code: 0,
    stdout: /^record 8 \(decision of r-7\) is in .*, signed at .* with 22 records\n$/,
  });
  writeFileSync(file, proof.stdout.replace(/^index 8$/m, 'index 9'));
  t.match(await osl(check), { code: 1, stderr: /not proved: / });
  refused(t, await osl(['audit', 'prove', 'r-99', '--dir', dir]), 1, /no record of request r-99/);
});

async function write(dir: string): Promise<void> {
  const log = await openAuditLog({ dir, tenant: 'demo' });
  for (let n = 0; n < 20; n += 1) {
    await log.append({
      kind: 'decision',
      request_id: `r-${n}`,
      tenant: 'demo',
      surface: 'rest',
      action: 'query',
      subject: 'user:analyst',
      chain: ['user:analyst'],
      objects: ['osl.entities.package'],
      decision: 'allow',
    });
  }
  await log.close();
}
