import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import t from 'tap';
import { commandsOf, outlineOf } from '../../docs/readme-commands.js';
import { selfSigned } from '../../support/certificate.js';
import { boundedMib, EXAMPLE, osl, ROOT, Server, shell, temporary } from './support.js';

// The demo is read and indexed, twice.
t.setTimeout(600_000);

const READY = 'Ctrl-C stops the server.';
const PEOPLE = 'select name, email from osl.entities.person order by name limit 3';
const dataDir = join(temporary(), 'data');
const at = ['--data-dir', dataDir];
const psqlInstalled = (await shell('command -v psql')).code === 0;

t.test('the demo from its first start to its end', async (t) => {
  const server = new Server(['demo'], dataDir);
  t.comment(`first start: ${((await server.said(READY)) / 1000).toFixed(2)} s`);
  const { pid, httpPort, pgPort, demo } = server.record();
  boundedMib(t, Number(pid), 650, 'a first start, with its index');
  t.equal(demo, true);
  t.match(server.stdout, `REST  http://127.0.0.1:${httpPort}`);
  t.match(server.stdout, `wire  postgres://127.0.0.1:${pgPort}/osl`);

  await t.test('three questions have real answers', async (t) => {
    const answers = server.stdout.slice(server.stdout.indexOf('Three questions'));
    t.equal(answers.match(/^user:\w+> select /gm)?.length, 3);
    t.equal(answers.match(/^\([1-9]\d* rows?\)$/gm)?.length, 3);
    t.match(answers, /\| \[redacted\] \|[\s\S]*masked: person\.email/);
    t.notMatch(answers, /error|@/);
  });

  await t.test('every line of the banner works as it stands', async (t) => {
    const lines = server.stdout.match(/^ {2}(npx osl|curl|PGPASSWORD).*$/gm) ?? [];
    t.equal(lines.length, 7);
    for (const line of lines) {
      if (line.includes('psql') && !psqlInstalled) continue;
      const run = await shell(line);
      t.equal(run.code, 0, `${line}\n${run.stderr}`);
      t.match(run.stdout, /rows?\)|"row_count"/, line);
    }
  });

  await t.test('the console is there, and signs in whom the banner names', async (t) => {
    const console = `http://127.0.0.1:${httpPort}/console/`;
    t.match(server.stdout, `Look at it in a browser: ${console}`);
    t.match(await (await fetch(console)).text(), /<div id="console">/);
    const { demo } = JSON.parse(await (await fetch(`${console}settings.json`)).text());
    const chains = demo.callers.map((caller: { chain: string[] }) => caller.chain.join(' '));
    t.strictSame(chains, [
      'user:analyst',
      'user:auditor',
      'user:counsel',
      'user:counsel agent:scout',
      'user:admin',
    ]);
    const signIn = (origin: string) =>
      fetch(`${console}demo-token`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin },
        body: '{"chain":["user:auditor"]}',
      });
    const signedIn = await signIn(`http://127.0.0.1:${httpPort}`);
    const { token } = JSON.parse(await signedIn.text());
    t.match((await osl(['query', ...at, '--token', token, PEOPLE])).stdout, /\w@\w/);
    t.equal((await signIn('https://evil.example')).status, 404, 'for its own pages alone');
  });

  await t.test('what README.md shows of its first questions is what comes', async (t) => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const shown = commandsOf(readme);
    t.ok(shown.length >= 7, `${shown.length} of them`);
    for (const { line, output } of shown) {
      const run = await shell(line.replace(/npx osl (\w+)/g, `npx osl $1 --data-dir "${dataDir}"`));
      t.equal(run.code, output.startsWith('error') ? 1 : 0, `${line}\n${run.stderr}`);
      const meant = outlineOf({ line, output });
      t.ok(meant.length > 0, line);
      t.strictSame(outlineOf({ line, output: `${run.stdout}${run.stderr}` }), meant, line);
    }
  });

  await t.test('who asks decides what is seen', async (t) => {
    const ask = (...who: string[]) => osl(['query', ...at, ...who, PEOPLE]);
    t.match(await ask('--subject', 'user:analyst'), { code: 0, stderr: '', stdout: /\[redacted\]/ });
    t.match((await ask('--subject', 'user:auditor')).stdout, /\w@\w/);
    t.match(await ask(), { code: 0, stderr: 'asking as user:analyst (choose with --subject)\n' });
    t.match(await ask('--json'), { code: 0, stderr: '' }, 'a program reads standard error as JSON');
    t.match(await ask('--subject', 'user:counsel'), { code: 1, stderr: /error E0512.*person/ });
    t.match(await ask('--chain', 'user:counsel,agent:scout'), { code: 1 });
  });

  await t.test('the full schema is for who has an admin role in the policy', async (t) => {
    const full = (...who: string[]) => osl(['schema', ...at, '--full', ...who]);
    t.match(await full('--subject', 'user:admin'), { code: 0, stdout: /^ ?entity +\| package /m });
    t.match(await full('--subject', 'user:analyst'), { code: 1, stderr: /^error E2101: / });
  });

  await t.test('a token, from a flag or the environment, is used as it is', async (t) => {
    const token = (await osl(['token', ...at, '--subject', 'user:auditor'])).stdout.trim();
    t.match((await osl(['query', ...at, '--token', token, PEOPLE])).stdout, /\w@\w/);
    t.match((await osl(['query', ...at, PEOPLE], { env: { OSL_TOKEN: token } })).stdout, /\w@\w/);
    const server = ['--server', `http://127.0.0.1:${httpPort}/`, '--token', token];
    t.match((await osl(['query', ...server, PEOPLE], { cwd: temporary() })).stdout, /\w@\w/);
    t.match(await osl(['query', ...at, '--token', `${token}x`, PEOPLE]), {
      code: 1,
      stderr: /^error E3001: /,
    });
    t.match(await osl(['query', ...at, '--token', 'x', '--subject', 'y', PEOPLE]), { code: 2 });
  });

  await t.test('formats: csv, json, standard input', async (t) => {
    const as = [...at, '--subject', 'user:analyst'];
    const csv = await osl(['query', ...as, '--format', 'csv', PEOPLE]);
    t.match(csv, { code: 0, stdout: /^name,email\r\n.*,\[redacted\]\r\n/, stderr: 'masked: person.email\n' });
    const json = JSON.parse((await osl(['query', ...as, '--json', PEOPLE])).stdout);
    t.match(json, { row_count: 3, truncated: false, redacted_columns: ['person.email'] });
    t.match(await osl(['query', ...as, '-'], { input: 'select 1 as one' }), {
      code: 0,
      stdout: / one\n-+\n +1\n\(1 row\)/,
    });
  });

  await t.test('Arrow, to a file or a pipe, and a refusal all the same', async (t) => {
    const as = [...at, '--subject', 'user:analyst', '--format', 'arrow'];
    const file = join(temporary(), 'people.arrows');
    const ask = (question: string) => shell(`npx osl query ${as.join(' ')} "${question}" > ${file}`);
    t.match(await ask(PEOPLE), { code: 0, stdout: '', stderr: 'masked: person.email\n' });
    const { numRows, schema } = tableFromIPC(readFileSync(file));
    t.equal(numRows, 3);
    t.strictSame(schema.names, ['name', 'email']);
    t.match(await ask('select nothing from osl.entities.person'), {
      code: 1,
      stderr: /^error E0512: .*nothing/,
    });
    t.equal(readFileSync(file).length, 0);
    t.match(await ask("select date 'infinity' as day"), {
      code: 1,
      stderr: /^error E4060: column .day. holds/,
    });
  });

  await t.test('a refused question: code, message, caret, hint, exit 1', async (t) => {
    const as = [...at, '--subject', 'user:analyst'];
    const run = await osl(['query', ...as, 'select name,\n  emai from osl.entities.person']);
    t.equal(run.code, 1);
    t.equal(run.stdout, '');
    t.match(
      run.stderr,
      /^error E0512: column `emai` is not declared\n {4}2 \| {3}emai from osl.entities.person\n {6}\| {3}\^{4}\n {2}hint: perhaps you meant `email`\n {2}request: [\w-]{36}\n$/,
    );
    const json = await osl(['query', ...as, '--json', 'select nothing from osl.entities.person']);
    t.equal(json.code, 1);
    t.match(JSON.parse(json.stdout), { code: 'E0512', status: 400 });
  });

  await t.test('raw SQL, over tables that the demo allows', async (t) => {
    const as = [...at, '--subject', 'user:analyst', '--sql'];
    const people = 'select name, email from supply.person order by name limit 1';
    t.match(await osl(['query', ...as, people]), { code: 0, stdout: /\[redacted\]\n\(1 row\)/ });
    t.match(await osl(['explain', ...as, people]), { code: 0, stdout: /form +sql\n/ });
    t.match(await osl(['query', ...as, 'select * from supply.readme']), {
      code: 1,
      stderr: /^error E0512: table `supply\.readme` is not on the allowlist[\s\S]*\^/,
    });
  });

  await t.test('a metrics body', async (t) => {
    const as = [...at, '--subject', 'user:analyst'];
    const body =
      '{"metrics": ["typed_share", "package_count"], "group_by": ["PACKAGE__license_class"], "limit": 1}';
    const run = await osl(['query', ...as, '--metrics', body]);
    t.match(run, {
      code: 0,
      stdout: /package__license_class +\| +typed_share +\| +package_count[\s\S]*\(1 row\)/,
    });
    t.match(await osl(['explain', ...as, '--metrics', body]), { code: 0, stdout: /form +metrics\n/ });
    t.match(await osl(['query', ...as, '--metrics', '{"metrics": ["package_cuont"]}']), {
      code: 1,
      stderr: /^error E0512: metric `package_cuont` is not declared[\s\S]*`package_count`/,
    });
    t.match(await osl(['query', ...as, '--metrics', 'select 1']), {
      code: 2,
      stderr: /--metrics takes JSON/,
    });
  });

  await t.test('explain shows the plan, and reads nothing', async (t) => {
    const run = await osl(['explain', ...at, '--subject', 'user:analyst', PEOPLE]);
    t.equal(run.code, 0);
    t.match(
      run.stdout,
      /form +structured\nobjects +osl\.entities\.person\n[\s\S]*scan osl\.entities\.person: .*email masked/,
    );
    t.notMatch(run.stdout, /rows?\)/);
    t.match(await osl(['explain', ...at, '--subject', 'user:analyst', 'delete from x']), {
      code: 1,
      stderr: /E0511/,
    });
  });

  await t.test('explain shows the statement and its plan to an admin', async (t) => {
    const text = "select name from osl.entities.package where license = 'MIT'";
    const statement = await osl(['explain', ...at, '--subject', 'user:admin', '--statement', text]);
    t.match(statement, { code: 0, stdout: /\nselect [\s\S]*\$1 +\| text +\| literal MIT\n/ });
    t.notMatch(statement.stdout, /Scan/);
    const plan = await osl(['explain', ...at, '--subject', 'user:admin', '--plan', text]);
    t.match(plan, { code: 0, stdout: /Scan on package[\s\S]*Filter: \(license = \$1\)/ });
    t.match(await osl(['explain', ...at, '--subject', 'user:analyst', '--plan', text]), {
      code: 1,
      stdout: '',
      stderr: /^error E2101: only admins can see the SQL sent to the database\n/,
    });
  });

  await t.test('sample shows rows of an entity and chunks of a facet', async (t) => {
    const as = [...at, '--subject', 'user:analyst'];
    const people = await osl(['sample', ...as, 'person', '--limit', '2']);
    t.match(people, { code: 0, stdout: /id .*\|\s+email[\s\S]*\[redacted\][\s\S]*\(2 rows\)/ });
    t.equal(people.stderr, 'masked: person.email\n');
    const json = JSON.parse((await osl(['sample', ...as, '--facet', 'readme', '--json'])).stdout);
    t.match(json, { kind: 'facet', name: 'readme', rows: Array });
    t.equal(json.rows.length, 5);
    t.match(json.rows[0], { text: String, package_path: /^node_modules/, cite: { version: 'masked' } });
    t.match(await osl(['sample', ...as, 'persons']), { code: 1, stderr: /E0254[\s\S]*`person`/ });
  });

  await t.test('psql', { skip: psqlInstalled ? false : 'psql is not installed' }, async (t) => {
    const run = await osl(['psql', ...at, '--subject', 'user:auditor', '-Atc', PEOPLE]);
    t.match(run, { code: 0, stdout: /\w@\w/, stderr: '' });
    t.match(await osl(['psql', ...at, '--subject', 'user:auditor', '-c', 'select x']), {
      code: 1,
      stderr: /ERROR/,
    });
  });

  await t.test('the audit log is whole while the server writes it', async (t) => {
    t.match(await osl(['audit', 'verify', ...at]), { code: 0, stdout: /the chain holds/ });
    t.match((await osl(['audit', 'tail', ...at, '-n', '50'])).stdout, /error +E0512 .*rest query/);
  });

  await t.test('commands that read a manifest take that of the server that runs there', async (t) => {
    const loads = /^ok {4}files: manifest and policy load: \d+ entities/m;
    const inUse = new RegExp(
      `is in use by process ${pid} .*one process at a time, so stop that one first\n$`,
    );
    const cases: readonly (readonly [command: string, code: number, said: RegExp])[] = [
      ['doctor', 0, loads],
      ['config check', 0, loads],
      ['validate', 0, /supply-chain\/manifest\.yaml: ok, 2 entities/],
      [`diff ${join(EXAMPLE, 'manifest.yaml')}`, 0, /^nothing changes\n/],
      [`policy diff ${join(EXAMPLE, 'policy.yaml')}`, 0, /^nothing changes\n/],
      ['export ossie', 0, /^semantic_model:$/m],
      ['discover', 1, inUse],
      ['index', 1, inUse],
      ['rollup status', 1, inUse],
    ];
    const empty = temporary();
    for (const [command, code, said] of cases) {
      const run = await osl([...command.split(' '), ...at], { cwd: empty });
      t.equal(run.code, code, `${command}: ${run.stderr}`);
      t.match(run.stdout + run.stderr, said, command);
    }
  });

  await t.test('a second server in the same place is refused in one line', async (t) => {
    const taken = await osl(['demo', ...at, '--http-port', `${httpPort}`, '--pg-port', '0']);
    const already = new RegExp(
      `^error: a server of \\S+ runs already, at http://\\S+ \\(process ${pid}\\).*\\n$`,
    );
    t.match(taken, { code: 1, stderr: already });
    const other = await osl(['demo', ...at, '--http-port', '0', '--pg-port', '0']);
    t.match(other, { code: 1, stderr: already });
    t.equal(server.record()['pid'], pid, 'and changes nothing');
  });

  const { code, stderr } = await server.signal('SIGINT');
  t.equal(code, 0, 'Ctrl-C');
  t.match(stderr, /stopping: .*\nstopped\n$/);

  await t.test(
    'osl index without a terminal: a line for each store, and one every few seconds',
    async (t) => {
      const files = ['manifest', 'policy'].flatMap((name) => [`--${name}`, join(EXAMPLE, `${name}.yaml`)]);
      const run = await osl(['index', 'changelog', ...at, ...files]);
      t.equal(run.code, 0, run.stderr);
      const stores = run.stdout.trim().split('\n').length;
      const lines = run.stderr.match(/^indexing \w+ \w+(: \d+ of \d+ \(\d+\/s.*\)| …)$/gm) ?? [];
      t.ok(lines.length >= stores, run.stderr);
      t.ok(lines.length <= stores + run.ms / 5_000, `${lines.length} lines in ${run.ms} ms`);
      t.equal(run.stderr.trim().split('\n').length, lines.length, 'and nothing else');
    },
  );
  t.notOk(existsSync(join(dataDir, 'server.json')));
  t.match(await osl(['query', ...at, 'select 1']), { code: 3 });
});

t.test('a second start is quick, also after kill -9', async (t) => {
  const { key, cert } = selfSigned();
  const [certFile, keyFile] = [join(temporary(), 'cert.pem'), join(temporary(), 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const second = new Server(['demo'], dataDir, { OSL_TLS_CERT: certFile, OSL_TLS_KEY: keyFile });
  const ms = await second.said(READY);
  t.match(second.stdout, /user:\w+> select /, 'with a certificate as well it asks its questions');
  t.comment(`second start: ${(ms / 1000).toFixed(2)} s`);
  t.ok(second.processorMs() < 10_000);
  await second.signal('SIGKILL');
  t.ok(existsSync(join(dataDir, 'server.json')), 'nobody removed it');
  t.match(await osl(['query', ...at, '--subject', 'user:analyst', 'select 1']), { code: 3 });
  const third = new Server(['demo', '--json'], dataDir, { OSL_MAX_ROWS: '3' });
  const again = await third.said('"event":"listening"');
  t.comment(`start after kill -9: ${(again / 1000).toFixed(2)} s`);
  t.ok(third.processorMs() < 10_000);
  t.match(JSON.parse(third.stdout), { rest: /^http:/, pid: third.record()['pid'], dataDir });
  t.match(await osl(['query', ...at, '--subject', 'user:analyst', PEOPLE]), {
    code: 0,
    stdout: /\(3 rows\)/,
  });
  await t.test('a script sees by the exit status that there are more rows', async (t) => {
    const all = PEOPLE.replace(' limit 3', '');
    const file = join(temporary(), 'people');
    for (const format of ['table', 'csv', 'json', 'arrow']) {
      const as = `${at.join(' ')} --subject user:analyst --format ${format}`;
      const ask = (question: string) => shell(`npx osl query ${as} "${question}" > ${file}`);
      const cut = await ask(all);
      t.equal(cut.code, 8, `${format}, truncated`);
      if (format === 'csv' || format === 'arrow') t.match(cut.stderr, /^truncated: rows beyond the limit/m);
      const rows = readFileSync(file);
      if (format === 'csv') t.equal(rows.toString().trim().split('\r\n').length, 4, 'what came is written');
      if (format === 'arrow') t.equal(tableFromIPC(rows).numRows, 3);
    }
  });
  t.equal((await third.signal('SIGTERM')).code, 0, 'SIGTERM');
});

t.test('serve: SIGHUP takes a new policy, and one with a fault leaves the last one in force', async (t) => {
  const dir = temporary();
  cpSync(EXAMPLE, dir, { recursive: true });
  const policy = join(dir, 'policy.yaml');
  const before = readFileSync(policy, 'utf8');
  const files = ['--manifest', join(dir, 'manifest.yaml'), '--policy', policy];
  const server = new Server(['serve', ...files, '--console', 'on'], dataDir);
  await server.said(READY);
  const { httpPort } = server.record();
  const origin = `http://127.0.0.1:${httpPort}`;
  const told = JSON.parse(await (await fetch(`${origin}/console/settings.json`)).text());
  t.match(told, { demo: null, admin: false, local_tokens: true }, 'nobody is signed in without a token');
  const signIn = { method: 'POST', headers: { 'content-type': 'application/json', origin } };
  const minted = await fetch(`${origin}/console/demo-token`, {
    ...signIn,
    body: '{"chain":["user:analyst"]}',
  });
  t.equal(minted.status, 404, 'the demo’s sign-in is not on a server');
  t.match(
    server.stdout,
    /user:analyst: roles analyst\n.*select path, name, version, license from osl\.entities\.package limit 10/,
  );
  const ask = () => osl(['query', ...at, '--subject', 'user:analyst', PEOPLE]);
  t.match(await ask(), { code: 0, stdout: /\[redacted\]/ });
  t.match(await osl(['query', ...at, PEOPLE]), {
    code: 2,
    stderr: /name the caller.*user:analyst, user:auditor/,
  });

  writeFileSync(policy, before.replace('roles:\n', 'rolls:\n'));
  server.hangUp();
  await server.said('not reloaded: the last valid policy stays in force until');
  writeFileSync(policy, before);
  t.match(await ask(), { code: 0, stdout: /\[redacted\]/ });

  writeFileSync(
    policy,
    before.replace('user:analyst: { ceiling: [analyst] }', 'user:analyst: { ceiling: [auditor] }'),
  );
  server.hangUp();
  await server.said('reloaded: manifest');
  t.match(await ask(), { code: 0, stdout: /\w@\w/ });
  const { code, stderr } = await server.signal('SIGTERM');
  t.equal(code, 0);
  t.match(stderr, /policy\.yaml:\d+:\d+: error M1/);
});
