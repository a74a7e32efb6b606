import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import t, { test } from 'tap';
import { startNativePostgres } from '../../support/native-postgres.js';
import { BIN, temporary } from '../cli/support.js';

t.setTimeout(600_000);

const native = await startNativePostgres();
t.teardown(() => native?.stop());
const noScript = spawnSync('script', ['--version']).status !== 0 && '`script` is not installed here';
const skip = (native === null && 'no native Postgres is installed here') || noScript;

const SHOP = `
DROP SCHEMA IF EXISTS app CASCADE;
CREATE SCHEMA app;
CREATE TABLE app.org (id int PRIMARY KEY, name text);
CREATE TABLE app.person (id int PRIMARY KEY, org_id int NOT NULL REFERENCES app.org, email text, nick text, "passwordHash" text);
CREATE TABLE app.currency (code text PRIMARY KEY);
CREATE TABLE app.visit (id int PRIMARY KEY, org_id int NOT NULL REFERENCES app.org);
INSERT INTO app.org VALUES (1, 'One'), (2, 'Two');
INSERT INTO app.person VALUES (1, 1, 'a@one', 'ann', 'x'), (2, 2, 'b@two', 'bob', 'x');
GRANT USAGE ON SCHEMA app TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA app TO osl_reader;`;

t.before(async () => {
  if (native === null) return;
  const client = new Client({ connectionString: native.url });
  await client.connect();
  await client.query(SHOP);
  await client.end();
});

/** `osl init` on a terminal of its own, with somebody who reads the questions. */
class Person {
  readonly #child: ChildProcess;
  readonly ended: Promise<number | null>;
  #seen = '';
  #from = 0;

  constructor(dir: string, url: string) {
    const { DATABASE_URL: _, ...env } = process.env;
    const command = `"${process.execPath}" ${process.execArgv.join(' ')} "${BIN}" init "${dir}" --url "${url}"`;
    this.#child = spawn('script', ['-qefc', command, '/dev/null'], { env, stdio: 'pipe' });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#seen += text;
    });
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Waits for a question that `words` stand in, and types. */
  async answers(words: RegExp, text: string): Promise<void> {
    const until = Date.now() + 300_000;
    while (!words.test(this.#seen.slice(this.#from))) {
      if (Date.now() > until) throw new Error(`nobody asked ${String(words)}: ${this.#seen}`);
      await sleep(20);
    }
    this.#from = this.#seen.length;
    this.#child.stdin?.write(text);
  }

  get seen(): string {
    return this.#seen;
  }
}

test('a person answers, mistakes included', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const dir = join(temporary(), 'new');
  const person = new Person(dir, native.readerUrl);
  await person.answers(
    /4 tables and views may be read: app\.currency, app\.org, app\.person, app\.visit[\s\S]*Which\? .*\[all\]: /,
    'persn\r',
  );
  await person.answers(/no table is called `persn`[\s\S]*Which\?/, 'app.*,person=people\r');
  await person.answers(
    /this column looks personal[\s\S]*app\.person\.email[\s\S]*left out altogether: app\.person\.passwordHash/,
    'person.nothing\r',
  );
  await person.answers(
    /no column is called `person.nothing`[\s\S]*More to mask/,
    'person.nick,-app.person.email\r',
  );
  await person.answers(/Name of the role .*\[analyst\]: /, 'clerk\r');
  await person.answers(/Who asks first .*: /, 'user:ann\r');
  await person.answers(/have a column org_id[\s\S]*only rows of the org_id \[all\]: /, '2\r');
  await person.answers(/1 table has no org_id: currency[\s\S]*\[y\/N\] /, 'what\r');
  await person.answers(/y or n, please[\s\S]*\[y\/N\] /, '\r');
  await person.answers(/Will BI tools connect\?[\s\S]*\[y\/N\] /, 'y\r');
  await person.answers(/public key \(PEM\) \[none\]: /, '\r');
  await person.answers(
    /Write 4 entities and 0 bridges, readable by role clerk of user:ann, to .*\[Y\/n\] /,
    'y\r',
  );
  t.equal(await person.ended, 0, person.seen);
  t.match(person.seen, /people[\s\S]*\(1 row\)/, 'one row of the tenant');
  t.match(person.seen, /osl\S* serve/);
  const policy = readFileSync(join(dir, 'policy.yaml'), 'utf8');
  t.match(policy, /clerk:/);
  t.match(policy, /rows: org_id = attribute\('tenant'\)/);
  const manifest = readFileSync(join(dir, 'manifest.yaml'), 'utf8');
  t.match(manifest, /BI tools .* need it\.\nfeatures: { joins: any }/);
  t.match(manifest, /nick: { type: text, pii: true }/);
  t.match(manifest, /email: { type: text }/);
  t.notMatch(manifest, /passwordHash/);
});

test('Ctrl-C and Ctrl-D at a question leave nothing', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  for (const key of ['\x03', '\x04']) {
    const place = temporary();
    const person = new Person(join(place, 'new'), native.readerUrl);
    await person.answers(/Which\?/, 'all\r');
    await person.answers(/More to mask/, '\r');
    await person.answers(/Name of the role/, key);
    t.equal(await person.ended, 130, person.seen);
    t.match(person.seen, 'stopped: nothing was written');
    t.strictSame(readdirSync(place), []);
  }
});

const QUESTIONS = [
  /Which\?/,
  /More to mask/,
  /Name of the role/,
  /Who asks first/,
  /only rows of/,
  /Will BI tools connect/,
  /public key/,
];

test('Ctrl-C after the last question, while the database is at work, leaves nothing', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const place = temporary();
  const person = new Person(join(place, 'new'), native.readerUrl);
  for (const question of QUESTIONS) await person.answers(question, '\r');
  const admin = new Client({ connectionString: native.url });
  await admin.connect();
  t.teardown(() => admin.end());
  await person.answers(/Write .*\[Y\/n\]/, '');
  await admin.query('begin; lock table app.org, app.person, app.currency, app.visit');
  await person.answers(/^/, 'y\r');
  const waits = "select 1 from pg_locks where not granted and relation::regclass::text like 'app.%'";
  while ((await admin.query(waits)).rowCount === 0) await sleep(50);
  await person.answers(/^/, '\x03');
  const began = performance.now();
  t.equal(await person.ended, 130, person.seen);
  t.ok(performance.now() - began < 10_000);
  t.strictSame(readdirSync(place), []);
});

test('no at the end leaves nothing', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const dir = join(temporary(), 'new');
  const person = new Person(dir, native.readerUrl);
  for (const question of QUESTIONS) await person.answers(question, '\r');
  await person.answers(/Write .*\[Y\/n\]/, 'n\r');
  t.equal(await person.ended, 1);
  t.notOk(existsSync(dir));
});
