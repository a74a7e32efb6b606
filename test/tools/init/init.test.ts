import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import t, { type Test, test } from 'tap';
import { parse, stringify } from 'yaml';
import { type NativePostgres, startNativePostgres } from '../../support/native-postgres.js';
import { osl, Server, shell, temporary } from '../cli/support.js';
import { FOREIGN, type Foreign } from './databases.js';

t.setTimeout(600_000);

/** From a database that nobody here designed to a first governed answer. */
const BOUND_MS = 120_000;
const SUBJECT = 'user:first';

interface Report {
  readonly entities: number;
  readonly masked: readonly string[];
  readonly hidden: readonly string[];
  readonly left_out: readonly { readonly table: string; readonly reason: string }[];
  readonly first: { readonly osql: string; readonly rows: readonly unknown[] };
}

const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';
t.teardown(() => native?.stop());

function server(): NativePostgres {
  if (native === null) throw new Error('it is skipped then');
  return native;
}

/** A database of its own, filled by a superuser, and dropped at the end. */
async function database(
  t: Test,
  script: string,
): Promise<{ readonly admin: string; readonly reader: string }> {
  const { url, readerUrl } = server();
  const name = `osl_init_${randomBytes(6).toString('hex')}`;
  await onDatabase(url, `CREATE DATABASE ${name}`);
  t.teardown(() => onDatabase(url, `DROP DATABASE ${name} WITH (FORCE)`));
  const at = (base: string): string => Object.assign(new URL(base), { pathname: `/${name}` }).href;
  await onDatabase(at(url), script);
  return { admin: at(url), reader: at(readerUrl) };
}

async function onDatabase(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const result = await client.query<Record<string, unknown>>(sql);
    return result.rows ?? [];
  } finally {
    await client.end();
  }
}

/** The first of them; all in the nightly run. */
const DATABASES = Number(process.env['OSL_INIT_DATABASES'] ?? 2);

for (const foreign of FOREIGN.slice(0, DATABASES)) {
  test(foreign.name, { skip }, async (t) => {
    const { reader } = await database(t, foreign.script);
    const dir = join(temporary(), 'new');
    const started = performance.now();
    const made = await osl(
      ['init', dir, '--yes', '--json', '--subject', SUBJECT, '--url-env', 'FOREIGN_URL', ...foreign.flags],
      { env: { FOREIGN_URL: reader } },
    );
    t.equal(made.code, 0, made.stderr);
    const report: Report = JSON.parse(made.stdout);
    const toInit = performance.now() - started;
    await answersOverEverySurface(t, dir, reader, report.first.osql);
    const took = performance.now() - started;
    t.comment(`init ${Math.round(toInit)} ms; first answers over REST and psql after ${Math.round(took)} ms`);
    t.ok(took < BOUND_MS, `${Math.round(took)} ms`);
    judge(t, foreign, report);
    noSecretIn(t, dir, reader);
  });
}

function judge(t: Test, foreign: Foreign, report: Report): void {
  t.ok(report.entities >= foreign.entities, `${report.entities} entities`);
  t.not(report.first.rows.length, 0, 'the first answer has rows');
  const reasons = new Map(report.left_out.map((l) => [l.table, l.reason]));
  for (const [table, reason] of foreign.leftOut) t.match(reasons.get(table), reason, table);
}

/** The most memory that a process has had. */
function peakMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

/** `osl serve` on what was made, then the same question over REST, by `osl query`, and over the wire. */
async function answersOverEverySurface(t: Test, dir: string, url: string, osql: string): Promise<void> {
  const files = ['--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')];
  const server = new Server(['serve', '--json', ...files], join(dir, '.osl'), { FOREIGN_URL: url });
  try {
    await server.said('"listening"');
    const { httpPort, pgPort, pid } = server.record();
    if (process.platform === 'linux') t.ok(peakMib(Number(pid)) < 400, 'a first start in a small container');
    t.notOk(existsSync(join(server.dataDir, 'catalog')), 'the image of the catalog came with the package');
    const token = (await osl(['token', '--data-dir', server.dataDir, '--subject', SUBJECT])).stdout.trim();
    const reply = await fetch(`http://127.0.0.1:${String(httpPort)}/osl/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ osql }),
    });
    t.equal(reply.status, 200);
    const rows = await onDatabase(
      `postgres://${encodeURIComponent(SUBJECT)}:${token}@127.0.0.1:${String(pgPort)}/osl`,
      osql,
    );
    const answer = (await reply.json()) as { readonly row_count: number };
    t.not(rows.length, 0);
    t.equal(rows.length, answer.row_count);
  } finally {
    await server.signal('SIGTERM');
  }
}

/** The password of the URL stands in no file that was written. */
function noSecretIn(t: Test, dir: string, url: string): void {
  const { password } = new URL(url);
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const path = join(dir, name);
    if (!statSync(path).isFile() || name.includes('pg/')) continue;
    t.notOk(readFileSync(path, 'utf8').includes(`:${password}@`), name);
  }
}

test('the policy is closed: one role, column by column, personal data masked, credentials out', {
  skip,
}, async (t) => {
  const { reader } = await database(t, FOREIGN[1]?.script ?? '');
  const dir = temporary();
  const url = { env: { DATABASE_URL: reader } };
  t.equal((await osl(['init', dir, '--yes', '--subject', SUBJECT], url)).code, 0);
  const policy = parse(readFileSync(join(dir, 'policy.yaml'), 'utf8'));
  t.strictSame(policy.subjects, { [SUBJECT]: { ceiling: ['analyst'] } });
  t.strictSame(policy.roles.analyst.grants[0], {
    on: 'customers',
    columns: ['customer_id', 'first_name', 'e_mail'],
  });
  const manifest = parse(readFileSync(join(dir, 'manifest.yaml'), 'utf8'));
  t.strictSame(manifest.connectors.db.tables['raw.customers'].columns, {
    customer_id: { type: 'text' },
    first_name: { type: 'text', pii: true },
    e_mail: { type: 'text', pii: true },
  });
  t.strictSame(manifest.entities.order_lines.primary_key, ['order_no', 'line']);
  t.equal(
    readFileSync(join(dir, '.gitignore'), 'utf8'),
    '# keys, audit log and secrets of OSL Gateway\n/.osl/\n.env\n',
  );
  const example = readFileSync(join(dir, '.env.example'), 'utf8');
  t.match(example, /^DATABASE_URL=postgres:\/\/.*^#DATABASE_URL_SYSTEM=postgres:\/\//ms);
  t.notMatch(example, new URL(native?.url ?? '').port, 'nothing of this database');

  const before = readFileSync(join(dir, 'policy.yaml'), 'utf8');
  const again = await osl(['init', dir, '--yes', '--role', 'other'], url);
  t.match(again, {
    code: 2,
    stderr: /manifest\.yaml and policy\.yaml in .* would be overwritten: --force does that/,
  });
  t.equal(readFileSync(join(dir, 'policy.yaml'), 'utf8'), before);
  const forced = await osl(
    ['init', dir, '--yes', '--force', '--role', 'other', '--clear', 'customers.e_mail'],
    url,
  );
  t.equal(forced.code, 0, forced.stderr);
  t.match(readFileSync(join(dir, 'policy.yaml'), 'utf8'), /^ {2}other:$/m);
  t.notMatch(readFileSync(join(dir, 'manifest.yaml'), 'utf8'), /e_mail: .*pii/);
  t.equal(readFileSync(join(dir, '.gitignore'), 'utf8').match(/\.osl/g)?.length, 1, 'once is enough');
  for (const name of ['manifest', 'policy']) {
    const [line] = readFileSync(join(dir, `${name}.yaml`), 'utf8').split('\n');
    t.equal(line, `# yaml-language-server: $schema=./${name}.schema.json`);
    t.match(JSON.parse(readFileSync(join(dir, `${name}.schema.json`), 'utf8')), { title: `OSL ${name}` });
  }
  t.strictSame(readdirSync(dir).sort(), [
    '.env.example',
    '.gitignore',
    '.osl',
    'manifest.schema.json',
    'manifest.yaml',
    'policy.schema.json',
    'policy.yaml',
  ]);
  const verified = await osl(['audit', 'verify', '--data-dir', join(dir, '.osl')]);
  t.equal(verified.code, 0, 'both first answers are on record, in one log');
});

/** Capitals, quotes, an enumeration, keys of two columns, a number that happens to be unique, money. */
const CAPITALS = `
CREATE SCHEMA "Shop";
CREATE TYPE "Shop".state AS ENUM ('open', 'paid');
CREATE TABLE "Shop"."Order" (country text, "No" int, state "Shop".state, "Total amount" numeric(10, 2), PRIMARY KEY (country, "No"));
CREATE TABLE "Shop"."Order ""Line""" (id int PRIMARY KEY, country text, no int, unit_price numeric,
  CONSTRAINT line_order FOREIGN KEY (country, no) REFERENCES "Shop"."Order");
CREATE TABLE "Shop".tally (visit_count int, page text);
CREATE TABLE "Shop".secret (id int PRIMARY KEY);
CREATE TABLE "Shop".hint (id int PRIMARY KEY REFERENCES "Shop".secret);
INSERT INTO "Shop"."Order" SELECT 'de', n, 'open', n * 1.5 FROM generate_series(1, 20) n;
INSERT INTO "Shop"."Order ""Line""" SELECT n, 'de', n, n FROM generate_series(1, 20) n;
INSERT INTO "Shop".tally SELECT n, 'p' || n % 3 FROM generate_series(1, 20) n;
GRANT USAGE ON SCHEMA "Shop" TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA "Shop" TO osl_reader;
REVOKE SELECT ON "Shop".secret FROM osl_reader;`;

test('what is left out is named, what is proposed runs, and so does every line that serve prints', {
  skip,
}, async (t) => {
  const { reader } = await database(t, CAPITALS);
  const dir = temporary();
  const env = { DATABASE_URL: reader };
  const made = await osl(['init', dir, '--yes', '--subject', SUBJECT], { env });
  t.equal(made.code, 0, made.stderr);
  const file = readFileSync(join(dir, 'manifest.yaml'), 'utf8');
  const lost =
    'line_order (country, no) to Shop.Order (country, No): a relationship has one column; a query may join on all of them';
  t.match(file, `  # left out: foreign key ${lost}\n  Order__Line_:\n`);
  t.match(
    file,
    '  # left out: foreign key hint_id_fkey (id) to Shop.secret (id): Shop.secret is not in the manifest\n',
  );
  t.match(made.stdout, `  Shop.Order "Line": ${lost}\n`);
  t.match(made.stdout, '  Shop.tally: it has no key, and no column or pair of columns');
  t.match(made.stdout, '  Shop.Order.state (');

  const { metrics } = parse(file);
  t.strictSame(Object.keys(metrics), [
    'Order_count',
    'Order_Total_amount_sum',
    'Order_Total_amount_average',
    'Order__Line__count',
    'Order__Line__unit_price_average',
    'hint_count',
  ]);
  const policyFile = join(dir, 'policy.yaml');
  const policy = parse(readFileSync(policyFile, 'utf8'));
  const large = { on: 'Order', columns: '*', min_group_size: 5 };
  policy.subjects["user:o'neill"] = { ceiling: ['grouped'] };
  policy.subjects['user:figures'] = { ceiling: ['figures'] };
  policy.subjects['user:nobody'] = { ceiling: ['nothing'] };
  policy.roles.grouped = { grants: [large] };
  policy.roles.figures = { grants: [{ ...large, metrics: ['Order_count'] }] };
  policy.roles.nothing = { grants: [] };
  writeFileSync(policyFile, stringify(policy));
  const server = new Server(
    ['serve', '--manifest', join(dir, 'manifest.yaml'), '--policy', policyFile],
    join(dir, '.osl'),
    env,
  );
  t.teardown(() => server.signal('SIGTERM'));
  await server.said('Ctrl-C');
  const lines = server.stdout.match(/^ {2}(npx osl|curl|PGPASSWORD).*$/gm) ?? [];
  t.equal(lines.length, 5, 'three subjects see something; curl and psql');
  const measured = Object.entries<{ entity: string }>(metrics).map(
    ([name, { entity }]) =>
      `npx osl query --data-dir ${server.dataDir} --subject ${SUBJECT} 'select measure("${name}") from osl.entities."${entity}"'`,
  );
  for (const line of [...lines, ...measured]) {
    const run = await shell(line);
    t.equal(run.code, 0, `${line}\n${run.stderr}`);
    t.match(run.stdout, /\(\d+ rows?\)|"row_count":[1-9]/, line);
  }
});

const TENANTS = `
CREATE SCHEMA app;
CREATE TABLE app.org (id int PRIMARY KEY, name text);
CREATE TABLE app.person (email text PRIMARY KEY, org_id int NOT NULL REFERENCES app.org);
CREATE TABLE app.invoice (id int PRIMARY KEY, org_id int NOT NULL REFERENCES app.org, payer text REFERENCES app.person (email));
CREATE TABLE app.currency (code text PRIMARY KEY);
INSERT INTO app.org VALUES (1, 'One'), (2, 'Two');
INSERT INTO app.person VALUES ('a@one', 1), ('b@two', 2);
INSERT INTO app.invoice VALUES (10, 1, 'a@one'), (20, 2, 'b@two'), (21, 2, 'b@two');
INSERT INTO app.currency VALUES ('EUR');
GRANT USAGE ON SCHEMA app TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA app TO osl_reader;`;

test('rows of one tenant, and masks that follow foreign keys', { skip }, async (t) => {
  const { reader, admin } = await database(t, TENANTS);
  const dir = temporary();
  const env = { DATABASE_URL: reader };
  const made = await osl(['init', dir, '--yes', '--rows', 'org_id=2', '--subject', SUBJECT], { env });
  t.equal(made.code, 0, made.stderr);
  const server = new Server(
    ['serve', '--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')],
    join(dir, '.osl'),
    env,
  );
  t.teardown(() => server.signal('SIGTERM'));
  await server.said('Ctrl-C');
  const ask = async (question: string): Promise<string> =>
    (
      await osl(['query', '--data-dir', server.dataDir, '--subject', SUBJECT, '--format', 'csv', question])
    ).stdout.replaceAll('\r\n', '\n');
  t.equal(await ask('select id from osl.entities.invoice order by id'), 'id\n20\n21\n');
  t.equal(await ask('select name from osl.entities.org'), 'name\nTwo\n', 'also what the column refers to');
  t.equal(await ask('select code from osl.entities.currency'), '', 'what has no such column is hidden');
  t.match(
    await ask('select distinct payer from osl.entities.invoice'),
    /^payer\n[^@\n]{20,}\n$/,
    'a hash, not an address',
  );
  const joined =
    'select count(*) as n from osl.entities.invoice i join osl.entities.person p on p.email = i.payer';
  t.equal(await ask(joined), 'n\n2\n', 'and meets the hash of what it refers to');
  t.equal(
    (await onDatabase(admin, "SELECT FROM pg_stat_activity WHERE application_name = 'osl-gateway setup'"))
      .length,
    0,
  );
});

test('a superuser is not served: a role of its own is', { skip }, async (t) => {
  const { admin } = await database(t, FOREIGN[1]?.script ?? '');
  const dir = join(temporary(), 'new');
  const env = { DATABASE_URL: admin };
  const refused = await osl(['init', dir, '--yes'], { env });
  t.match(refused, { code: 2, stderr: /"postgres" is superuser\n {2}hint: --create-role/ });
  t.throws(() => statSync(dir), 'nothing is made');
  const made = await osl(
    ['init', dir, '--yes', '--json', '--create-role', 'made for osl', '--tables', 'customers'],
    { env },
  );
  t.equal(made.code, 0, made.stderr);
  const { reader_url, url_env } = JSON.parse(made.stdout);
  t.equal(url_env, 'OSL_DATABASE_URL');
  t.match(await onDatabase(reader_url, 'SELECT count(*)::int AS n FROM raw.customers'), [{ n: 50 }]);
  await t.rejects(onDatabase(reader_url, 'SELECT FROM raw.events'), /permission denied/);
  noSecretIn(t, dir, reader_url);
  const [role] = await onDatabase(
    admin,
    "SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = 'made for osl'",
  );
  t.match(role, { rolsuper: false, rolcreatedb: false });
  const twice = await osl(['init', dir, '--yes', '--force', '--create-role', 'made for osl'], { env });
  t.match(twice, { code: 2, stderr: /there is a role "made for osl" already/ });
  await onDatabase(admin, 'DROP OWNED BY "made for osl"; DROP ROLE "made for osl"');
  const bad = await osl(['init', dir, '--yes', '--force', '--create-role', 'unmade', '--tables', 'holes'], {
    env,
  });
  t.equal(bad.code, 2, 'no entity');
  t.strictSame(await onDatabase(admin, "SELECT FROM pg_roles WHERE rolname = 'unmade'"), []);
});

test('with --row-security the database itself holds what is written', { skip }, async (t) => {
  const { admin, reader } = await database(t, FOREIGN[1]?.script ?? '');
  const dir = join(temporary(), 'guarded');
  const init = (...more: string[]) =>
    osl(['init', dir, '--yes', '--json', '--tables', 'customers', '--row-security', ...more], {
      env: { DATABASE_URL: admin },
    });
  t.match(await osl(['init', dir, '--yes', '--row-security', '--url', reader]), {
    code: 2,
    stderr: /--row-security: its policies hold for a role that owns nothing: --create-role/,
  });
  const role = `osl_guarded_${randomBytes(4).toString('hex')}`;
  const made = await init('--create-role', role);
  t.equal(made.code, 0, made.stderr);
  const report: Report & { readonly reader_url: string; readonly row_security: boolean } = JSON.parse(
    made.stdout,
  );
  t.ok(report.row_security);
  t.ok(report.first.rows.length > 0, 'the first answer came through it');
  t.match(readFileSync(join(dir, 'manifest.yaml'), 'utf8'), /row_security: true/);
  await t.rejects(
    onDatabase(report.reader_url, 'SELECT customer_id FROM raw.customers'),
    /permission denied|osl: no rights came with the statement/,
  );
  const env = { OSL_DATABASE_URL: report.reader_url };
  const compared = await osl(['row-security'], { cwd: dir, env });
  t.match(compared, { code: 0, stdout: /^db: stands \(1 table/ }, compared.stderr);
  const second = await init('--force', '--create-role', `${role}_too`);
  t.match(second, { code: 2, stderr: /row security of another gateway, for role osl_guarded_/ });
  t.strictSame(await onDatabase(admin, `SELECT FROM pg_roles WHERE rolname = '${role}_too'`), []);
  t.match(await osl(['row-security'], { cwd: dir, env }), { code: 0 }, 'what stood stands');
  const dropped = await osl(['row-security', '--drop', '--url', admin], { cwd: dir, env });
  t.equal(dropped.code, 0, dropped.stderr);
  t.strictSame(await onDatabase(admin, 'SELECT FROM pg_policy'), []);
  t.strictSame(await onDatabase(admin, 'SELECT FROM pg_class WHERE relrowsecurity'), []);
  await onDatabase(admin, `DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

test('what cannot be is said, and leaves nothing', { skip }, async (t) => {
  const { reader } = await database(t, FOREIGN[1]?.script ?? '');
  const dir = join(temporary(), 'new');
  const init = (...args: string[]) => osl(['init', dir, '--yes', '--url', reader, ...args]);
  const wrong = Object.assign(new URL(reader), { username: 'nobody_here' }).href;
  const refused: readonly (readonly [readonly string[], RegExp])[] = [
    [['--url', wrong], /^error: postgres:\/\/nobody_here@\S+: .*does not exist\n$/],
    [['--url', 'postgres://x@127.0.0.1:1/y'], /nothing listens there/],
    [['--url', 'mysql://x'], /looks like postgres:/],
    [['--tables', 'nobody'], /^error: no table is called `nobody`\n$/],
    [['--mask', 'customers.nothing'], /no column is called/],
    [['--rows', 'org=1'], /error: no table has a column `org`\n$/],
    [['--key', 'events=nothing'], /has no column `nothing`/],
    [['--schemas', 'nowhere'], /schema nowhere has no tables/],
    [['--schemas', 'pg_catalog'], /system catalogs cannot be published/],
    [['--issuer-key', 'package.json'], /holds no public key/],
    [['--role', 'a b'], /is no name/],
  ];
  const seen = await Promise.all(refused.map(([args]) => init(...args)));
  for (const [i, [args, words]] of refused.entries())
    t.match(seen[i], { code: 2, stderr: words }, args.join(' '));
  const piped = await osl(['init', dir, '--url', reader]);
  t.match(piped, { code: 2, stderr: /standard input is no terminal: --yes/ });
  t.throws(() => statSync(dir), 'no folder was made');
  const file = join(temporary(), 'url');
  t.match(await osl(['init', dir, '--yes', '--url-file', file]), {
    code: 2,
    stderr: /cannot be read \(ENOENT\)/,
  });
});
