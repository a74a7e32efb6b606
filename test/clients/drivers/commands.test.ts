import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { ENDLESS, MANY, missing, run, startGateway, TABLES } from './support.js';

const gateway = await startGateway();
tap.teardown(() => gateway.close());

test('psql', { skip: missing('psql', ['psql', '--version']) }, async (t) => {
  const env = await gateway.environment('user:ann');
  const psql = (input: string) => run(env, 'psql', ['-X', '-A', '-t', '-f', '-'], input);
  t.same(
    (await psql('\\dt')).out
      .trim()
      .split('\n')
      .map((line) => line.split('|')[1]),
    TABLES,
  );
  t.match((await psql('\\d customer')).out, /email\|text/);
  const parameters = "\\set id 1\nselect name, email from customer where id = :id and region = :'r';\n";
  t.match(await psql(`\\set r eu\n${parameters}`), {
    out: 'Ada|[redacted]\n',
    err: /NOTICE: {2}masked for you: customer\.email\n$/,
  });
  const many = await psql('\\set FETCH_COUNT 7000\nselect id, amount from "order" where id > 1000;\n');
  t.equal(many.out.trim().split('\n').length, MANY);
  t.equal(
    (await psql('\\copy (select id from "order" where id > 1000) to stdout')).out.split('\n').length,
    MANY + 1,
  );
  const wrong = await psql('select no_such from customer;\nselect 1;\n');
  t.match(wrong.err, 'column `no_such` is not declared');
  t.match(wrong.out, /^1$/m);
});

test('psql is interrupted', { skip: missing('psql', ['psql', '--version']) }, async (t) => {
  const env = await gateway.environment('user:ann');
  const child = spawn('psql', ['-X', '-A', '-t', '-c', ENDLESS, '-c', 'select 1'], { env });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  // psql says what ends its statement once it has sent it: a signal before that ends psql without a word.
  setTimeout(() => child.kill('SIGINT'), 5_000);
  await new Promise((resolve) => child.once('close', resolve));
  t.match(said, 'the statement was cancelled');
});

for (const mode of ['simple', 'extended', 'prepared']) {
  test(`pgbench, ${mode}`, { skip: missing('pgbench', ['pgbench', '--version']) }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'osl-pgbench-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const script = join(dir, 'point.sql');
    writeFileSync(script, '\\set id random(1001, 2000)\nselect amount from "order" where id = :id;\n');
    const args = ['-n', '-M', mode, '-f', script, '-c', '4', '-t', '50', 'osl'];
    const { out, err, code } = await run(await gateway.environment('user:ann'), 'pgbench', args);
    t.equal(code, 0, err);
    t.match(out, 'number of transactions actually processed: 200/200');
  });
}

test('pgcli', { skip: missing('pgcli', ['pgcli', '--version']) }, async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'osl-pgcli-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const env = { ...(await gateway.environment('user:ann')), HOME: home, XDG_CONFIG_HOME: home, PAGER: 'cat' };
  const typed =
    '\\dt\nselect name, email from customer where id = 1;\nselect no_such from customer;\nselect 1 as one;\n\\q\n';
  const { out, err } = await run(env, 'pgcli', ['--less-chatty', '-h', '127.0.0.1'], typed);
  for (const table of TABLES) t.match(out, new RegExp(`\\b${table}\\b`), err);
  t.match(out, /Ada\s*\|\s*\[redacted\]/);
  t.match(out, /no_such/);
  t.match(out, /\| one \|/);
});
