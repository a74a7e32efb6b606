import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import t, { type Test, test } from 'tap';
import { parse, stringify } from 'yaml';
import { type NativePostgres, startNativePostgres } from '../../support/native-postgres.js';
import { partOf } from '../../support/part.js';
import { asJson, readArrow } from '../../surfaces/rest/arrow/read.js';
import { modulesNoted, notingModules, packagesIn } from '../cli/noted-modules.js';
import { boundedMib, osl, type Program, ROOT, Server, shell, temporary } from '../cli/support.js';
import { FOREIGN, type Foreign } from './databases.js';

t.setTimeout(600_000);

/** From a database that nobody here designed to a first governed answer. */
const BOUND_MS = 120_000;
const SUBJECT = 'user:first';

/** Its modules are counted: the one script of a run's tests has none. */
const CHECKOUT: Program = {
  node: process.execPath,
  flags: process.execArgv,
  script: join(ROOT, 'bin', 'osl.js'),
};

interface Report {
  readonly entities: number;
  readonly masked: readonly string[];
  readonly hidden: readonly string[];
  readonly left_out: readonly { readonly table: string; readonly reason: string }[];
  readonly without_key: Report['left_out'];
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

for (const foreign of partOf('databases', FOREIGN, 5)) {
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
  const reasons = new Map([...report.left_out, ...report.without_key].map((l) => [l.table, l.reason]));
  for (const [table, reason] of foreign.leftOut) t.match(reasons.get(table), reason, table);
}

/** `osl serve` on what was made, then the same question over REST, by `osl query`, and over the wire. */
async function answersOverEverySurface(t: Test, dir: string, url: string, osql: string): Promise<void> {
  const files = ['--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')];
  const server = new Server(['serve', '--json', ...files], join(dir, '.osl'), { FOREIGN_URL: url });
  try {
    await server.said('"listening"');
    const { httpPort, pgPort, pid } = server.record();
    boundedMib(t, Number(pid), 220, 'a first start');
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
    await catalogOf(SUBJECT, token, Number(pgPort));
    boundedMib(t, Number(pid), 310, 'with the catalog of one set of rights');
  } finally {
    await server.signal('SIGTERM');
  }
}

/** A count that has not changed for a second: threads that began with an engine may still be ending. */
async function settled(count: () => number): Promise<number> {
  for (let before = count(); ; before = count()) {
    await sleep(1_000);
    if (count() === before) return before;
  }
}

/** As `\\d` asks. */
async function catalogOf(user: string, token: string, port: number): Promise<number> {
  const rows = await onDatabase(
    `postgres://${encodeURIComponent(user)}:${token}@127.0.0.1:${port}/osl`,
    "select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = 'entities'",
  );
  return rows.length;
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

test('a server over a native Postgres loads neither engine, Ajv nor MCP, and keeps its bound of catalog engines', {
  skip,
}, async (t) => {
  const [{ script, flags } = { script: '', flags: [] }] = FOREIGN;
  const { reader } = await database(t, script);
  const dir = join(temporary(), 'lean');
  const made = await osl(
    ['init', dir, '--yes', '--json', '--subject', SUBJECT, '--url-env', 'FOREIGN_URL', ...flags],
    { env: { FOREIGN_URL: reader } },
  );
  t.equal(made.code, 0, made.stderr);
  const report: Report = JSON.parse(made.stdout);
  const policyFile = join(dir, 'policy.yaml');
  const policy = parse(readFileSync(policyFile, 'utf8'));
  const [role] = Object.values<{ grants: readonly unknown[] }>(policy.roles);
  policy.subjects['user:second'] = { ceiling: ['less'] };
  policy.roles['less'] = { grants: role?.grants.slice(0, 1) };
  writeFileSync(policyFile, stringify(policy));
  const loaded = join(dir, 'loaded');
  const server = new Server(
    ['serve', '--json', '--manifest', join(dir, 'manifest.yaml'), '--policy', policyFile],
    join(dir, '.osl'),
    { FOREIGN_URL: reader, OSL_CATALOG_ENGINES: '1', ...notingModules(loaded) },
    CHECKOUT,
  );
  try {
    await server.said('"listening"');
    const { httpPort, pgPort, pid } = server.record();
    const tokenOf = async (subject: string): Promise<string> =>
      (
        await osl(['token', '--data-dir', server.dataDir, '--policy', policyFile, '--subject', subject])
      ).stdout.trim();
    const token = await tokenOf(SUBJECT);
    const answer = await fetch(`http://127.0.0.1:${String(httpPort)}/osl/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ osql: report.first.osql }),
    });
    t.equal(answer.status, 200);
    const packages = packagesIn(modulesNoted(loaded));
    for (const none of [
      '@electric-sql/pglite',
      '@modelcontextprotocol/server',
      'zod',
      'cli-progress',
      'jose',
    ])
      t.equal(packages.has(none), none === 'jose', `${none} after a question`);
    t.ok(modulesNoted(loaded).length < 1_050, `${modulesNoted(loaded).length} modules`);
    if (process.platform === 'linux') {
      const threads = (): number => readdirSync(`/proc/${String(pid)}/task`).length;
      const all = await catalogOf(SUBJECT, token, Number(pgPort));
      const withOne = await settled(threads);
      t.ok((await catalogOf('user:second', await tokenOf('user:second'), Number(pgPort))) < all);
      t.equal(await settled(threads), withOne, 'the first engine ended before the second began');
    }
  } finally {
    await server.signal('SIGTERM');
  }
  // Of Ajv the built checks take a file or two, as Fastify does of the other.
  const compilers = /\/(ajv\/dist\/(ajv|core)|fast-json-stringify\/index)\.js$|\/@fastify\/ajv-compiler\//;
  t.same(
    modulesNoted(loaded).filter((file) => compilers.test(file)),
    [],
    'no compiler of schemas until the end',
  );
});

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

  const tested = await osl(['policy', 'test', '--no-coverage'], { cwd: dir });
  t.match(tested, {
    code: 0,
    stdout: /^ok .* sees these columns, and those masked\nok .*\n.*2 tests, all pass\n$/,
  });
  const before = readFileSync(join(dir, 'policy.yaml'), 'utf8');
  const again = await osl(['init', dir, '--yes', '--role', 'other'], url);
  t.match(again, {
    code: 2,
    stderr: /manifest\.yaml and policy\.yaml in .* would be overwritten: --force does that/,
  });
  t.equal(readFileSync(join(dir, 'policy.yaml'), 'utf8'), before);
  writeFileSync(join(dir, 'policy.test.yaml'), '# mine\n');
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
    'policy.test.yaml',
    'policy.yaml',
  ]);
  t.equal(readFileSync(join(dir, 'policy.test.yaml'), 'utf8'), '# mine\n', 'tests that are there stay');
  const verified = await osl(['audit', 'verify', '--data-dir', join(dir, '.osl')]);
  t.equal(verified.code, 0, 'both first answers are on record, in one log');
});

/** Names in several scripts, of reserved words, with blanks, dots, two spellings of one letter, and longer than they may be. */
const LONG = 'ä'.repeat(31);
const SPELLED = `
CREATE SCHEMA "Schéma 1";
CREATE TABLE "Schéma 1"."Größe" ("Schlüssel" text PRIMARY KEY, "two words" text, "a.b" text, "select" text, "日本" int, "cafe\u0301" numeric, "${LONG}" int, email text);
CREATE TABLE "Schéma 1"."日本" ("id~:" int PRIMARY KEY, "größe" text REFERENCES "Schéma 1"."Größe", "Total €" numeric);
COMMENT ON CONSTRAINT "日本_größe_fkey" ON "Schéma 1"."日本" IS 'Wie groß 日本 ist';
CREATE TABLE "Schéma 1"."select" ("from" int PRIMARY KEY, "order by" date);
INSERT INTO "Schéma 1"."Größe" VALUES ('groß ''é', 'two words', 'dotted', 'chosen', 7, 1.5, 3, 'a@example.org'), ('klein', 'one', 'd', 'c', 8, 2, 4, 'b@example.org');
INSERT INTO "Schéma 1"."日本" VALUES (1, 'groß ''é', 10), (2, 'klein', 20), (3, 'groß ''é', 30);
INSERT INTO "Schéma 1"."select" VALUES (1, '2026-01-01');
GRANT USAGE ON SCHEMA "Schéma 1" TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA "Schéma 1" TO osl_reader;`;

test('names of any spelling: init, REST, the wire, the catalog, TRAVERSE, metrics and samples', {
  skip,
}, async (t) => {
  const { reader } = await database(t, SPELLED);
  const dir = temporary();
  const env = { DATABASE_URL: reader };
  const made = await osl(['init', dir, '--yes', '--json', '--subject', SUBJECT], { env });
  t.equal(made.code, 0, made.stderr);
  const manifest = parse(readFileSync(join(dir, 'manifest.yaml'), 'utf8'));
  t.strictSame(Object.keys(manifest.entities), ['Größe', 'select', '日本']);
  t.strictSame(
    manifest.entities.Größe.columns,
    {
      Schlüssel: null,
      'two words': null,
      a_b: { column: 'a.b' },
      select: null,
      日本: null,
      café: { column: 'cafe\u0301' },
      [LONG]: null,
      email: null,
    },
    'as Postgres has them; what would be a name of two parts, or is not composed, is another name for it',
  );
  const file = ['--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')];
  const server = new Server(['serve', '--json', ...file], join(dir, '.osl'), env);
  try {
    await server.said('"listening"');
    const { httpPort, pgPort } = server.record();
    const token = (await osl(['token', '--data-dir', server.dataDir, '--subject', SUBJECT])).stdout.trim();
    const ask = async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
      const reply = await fetch(`http://127.0.0.1:${String(httpPort)}${path}`, {
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      });
      const answer = (await reply.json()) as Record<string, unknown>;
      t.equal(reply.status, 200, JSON.stringify([path, body, answer['message']]));
      return answer;
    };
    const rows = async (body: unknown): Promise<unknown> => (await ask('/osl/query', body))['rows'];
    const wire = (sql: string): Promise<unknown> =>
      onDatabase(`postgres://${encodeURIComponent(SUBJECT)}:${token}@127.0.0.1:${String(pgPort)}/osl`, sql);
    const joined = `select g."Schlüssel", g."two words", g.a_b, g."select", g."日本", g."café", j."id_"
      from osl.entities."Größe" g join "日本" j on j."größe" = g."Schlüssel" where g."${LONG}" = 3 order by 7`;
    const row = { Schlüssel: "groß 'é", 'two words': 'two words', a_b: 'dotted', select: 'chosen', 日本: 7 };
    const both = [1, 3].map((id) => ({ ...row, café: '1.5', id_: id }));
    const asked = joined.replaceAll('id_', Object.keys(manifest.entities.日本.columns)[0] ?? '');
    const named = JSON.parse(
      JSON.stringify(both).replaceAll('id_', Object.keys(manifest.entities.日本.columns)[0] ?? ''),
    );
    t.strictSame(await rows({ osql: asked }), named);
    t.strictSame(await wire(asked), named);
    t.strictSame(
      await rows({
        osql: `select "Schlüssel", depth from TRAVERSE(anchor => '日本', target => 'Größe', keys => ('1', '2'))`,
      }),
      [
        { Schlüssel: "groß 'é", depth: 1 },
        { Schlüssel: 'klein', depth: 1 },
      ],
    );
    t.strictSame(
      await rows({
        osql: `select count(*) as n from TRAVERSE(anchor => 'Größe', target => '日本', keys => ('groß ''é'))`,
      }),
      [{ n: '2' }],
    );
    const [total] = Object.keys(manifest.metrics).filter((m) => m.startsWith('日本') && m.endsWith('_sum'));
    t.strictSame(await rows({ metrics: [total], group_by: ['größe__two words'], order_by: [`-${total}`] }), [
      { 'Größe__two words': 'two words', [total ?? '']: '40' },
      { 'Größe__two words': 'one', [total ?? '']: '20' },
    ]);
    t.match(await ask('/osl/sample', { kind: 'table', name: 'Größe', limit: 1 }), {
      rows: [{ ...row, email: '[redacted]' }],
      redacted_columns: ['Größe.email'],
    });
    const map = await ask('/osl/domain-map?governed=true');
    t.match(JSON.stringify(map), /"id":"entity:Größe".*"entity:日本"/);
    const schema = (await ask('/osl/schema?governed=true')) as {
      readonly entities: readonly { readonly examples: readonly string[] }[];
      readonly metrics: readonly { readonly examples: readonly string[] }[];
    };
    for (const { examples } of [...schema.entities, ...schema.metrics])
      for (const osql of examples) await rows({ osql });
    t.strictSame(
      await wire(
        'select attname from pg_attribute where attrelid = \'entities."Größe"\'::regclass and attnum > 0 order by attnum',
      ),
      ['Schlüssel', 'two words', 'a_b', 'select', '日本', 'café', LONG, 'email'].map((attname) => ({
        attname,
      })),
    );
    t.strictSame(
      await wire(
        "select conrelid::regclass::text as a, confrelid::regclass::text as b, obj_description(oid, 'pg_constraint') as c from pg_constraint where contype = 'f'",
      ),
      [{ a: '"日本"', b: '"Größe"', c: 'Wie groß 日本 ist' }],
    );
  } finally {
    await server.signal('SIGTERM');
  }
});

/** Capitals, quotes, a type that somebody's function casts to text, keys of two columns, a number that happens to be unique, money. */
const CAPITALS = `
CREATE SCHEMA "Shop";
CREATE TYPE "Shop".state AS (name text);
CREATE FUNCTION "Shop".said("Shop".state) RETURNS text LANGUAGE sql AS 'SELECT $1.name';
CREATE CAST ("Shop".state AS text) WITH FUNCTION "Shop".said;
CREATE TABLE "Shop"."Order" (country text, "No" int, state "Shop".state, "Total amount" numeric(10, 2), PRIMARY KEY (country, "No"));
CREATE TABLE "Shop"."Order ""Line""" (id int PRIMARY KEY, country text, no int, unit_price numeric,
  CONSTRAINT line_order FOREIGN KEY (country, no) REFERENCES "Shop"."Order");
CREATE TABLE "Shop".tally (visit_count int, page text);
CREATE TABLE "Shop".client (id int PRIMARY KEY, email text);
CREATE VIEW "Shop".shouted AS SELECT c.id, upper(c.email) || '!' AS loud, (SELECT count(*) FROM "Shop".client x) AS n FROM "Shop".client c;
CREATE TABLE "Shop"."old.orders" ("a.b" int PRIMARY KEY);
INSERT INTO "Shop"."old.orders" VALUES (7);
CREATE TABLE "Shop".secret (id int PRIMARY KEY);
CREATE TABLE "Shop".hint (id int PRIMARY KEY REFERENCES "Shop".secret);
INSERT INTO "Shop"."Order" SELECT 'de', n, '(open)', n * 1.5 FROM generate_series(1, 20) n;
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
  t.match(parse(file).relationships, {
    'Order _Line__Order': {
      from: ['Order _Line_.country', 'Order _Line_.no'],
      to: ['Order.country', 'Order.No'],
      kind: 'many_to_one',
    },
  });
  t.match(
    file,
    '  # left out: foreign key hint_id_fkey (id) to Shop.secret (id): Shop.secret is not in the manifest\n',
  );
  t.match(
    made.stdout,
    /Tables without a key [^:]*:\n(?: {2}.*\n)* {2}Shop\.tally: it has no key, and no column or pair of columns/,
  );
  t.match(made.stdout, '  Shop.Order.state (');

  const { metrics } = parse(file);
  t.strictSame(Object.keys(metrics), [
    'Order_count',
    'Order_Total amount_sum',
    'Order_Total amount_average',
    'Order _Line__count',
    'Order _Line__unit_price_average',
    'client_count',
    'hint_count',
    'old_orders_count',
    'shouted_count',
    'tally_count',
  ]);
  t.match(parse(file).connectors.db.tables['Shop.shouted'].columns, {
    id: { type: 'int4', pii: undefined },
    loud: { type: 'text', pii: true },
    n: { type: 'int8', pii: undefined },
  });
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
  const walked = await shell(
    `npx osl query --data-dir ${server.dataDir} --subject ${SUBJECT} --metrics '${JSON.stringify({
      metrics: ['Order _Line__unit_price_average'],
      group_by: ['Order _Line__Order__Total amount'],
      order_by: ['-Order _Line__unit_price_average'],
      limit: 1,
    })}'`,
  );
  t.match(
    walked.stdout,
    /30\.00 \|\s+20\.0000/,
    `a metric by a column across a key of two: ${walked.stderr}`,
  );
  const dotted = `npx osl query --data-dir ${server.dataDir} --subject ${SUBJECT} 'select a_b from osl.entities.old_orders'`;
  t.match((await shell(dotted)).stdout, / 7\n\(1 row\)/);
  for (const line of [...lines, ...measured]) {
    const run = await shell(line);
    t.equal(run.code, 0, `${line}\n${run.stderr}`);
    t.match(run.stdout, /\(\d+ rows?\)|"row_count":[1-9]/, line);
  }
});

/** A column of every sort of type that the model has none of its own for, with a value; and how many such rows. */
const OTHER_TYPES: readonly (readonly [name: string, type: string, value: string])[] = [
  ['mood', 'app.mood', 'good'],
  ['moods', 'app.mood[]', '{good,"so so"}'],
  ['liked', 'app.liked', 'so so'],
  ['host', 'inet', '10.0.0.1'],
  ['net', 'cidr', '10.0.0.0/8'],
  ['mac', 'macaddr', '08:00:2b:01:02:03'],
  ['span', 'int4range', '[1,5)'],
  ['spans', 'int4multirange', '{[1,5),[7,9)}'],
  ['during', 'tstzrange', '["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")'],
  ['price', 'money', '$1,234.50'],
  ['bits', 'bit(3)', '101'],
  ['varbits', 'varbit', '10101'],
  ['at', 'timetz', '03:04:05+02'],
  ['words', 'tsvector', "'a' 'fat'"],
  ['doc', 'json', '{"a":  1}'],
  ['markup', 'xml', '<a>b</a>'],
  ['place', 'app.place', '("High Street",7)'],
  ['spot', 'point', '(1,2)'],
  ['pairs', 'hstore', '"a"=>"1"'],
  ['folded', 'citext', 'Ann@Example.org'],
  ['path', 'ltree', 'a.b.c'],
  ['letter', '"char"', 'x'],
];

/** A point as PostGIS writes it, and as a type that somebody made where there is no PostGIS. */
const POINT = '0101000020E6100000000000000000F03F0000000000000040';
const PLACED = {
  postgis: [
    ['shape', 'geometry(Point,4326)', POINT],
    ['area', 'geography', POINT],
  ],
  made: [
    ['shape', 'app.point', '(1,2)'],
    ['area', 'app.point', '(1,2)'],
  ],
} as const;

type Typed = (typeof PLACED)[keyof typeof PLACED][number] | (typeof OTHER_TYPES)[number];
const MANY = 20_000;
const typed = (types: readonly Typed[]): string => `
CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree;
${types.some(([, type]) => type === 'geography') ? 'CREATE EXTENSION postgis;' : ''}
CREATE SCHEMA app;
CREATE TYPE app.point AS (x float8, y float8);
CREATE TYPE app.mood AS ENUM ('so so', 'good', 'bad');
CREATE DOMAIN app.liked AS app.mood CHECK (VALUE <> 'bad');
CREATE TYPE app.place AS (street text, no int);
CREATE TABLE app.thing (id int PRIMARY KEY, ${types.map(([name, type]) => `${name} ${type}`).join(', ')});
INSERT INTO app.thing VALUES (1, ${types.map(([, , value]) => `'${value.replaceAll("'", "''")}'`).join(', ')});
INSERT INTO app.thing (id) VALUES (2);
CREATE TABLE app.many (id int PRIMARY KEY, mood app.mood);
INSERT INTO app.many SELECT n, CASE WHEN n % 1000 = 0 THEN 'bad' ELSE 'good' END::app.mood FROM generate_series(1, ${MANY}) n;
CREATE INDEX many_mood ON app.many (mood);
ANALYZE app.many;
GRANT USAGE ON SCHEMA app TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA app TO osl_reader;`;

test('columns of types that the model has none of its own for are read as their text', {
  skip,
}, async (t) => {
  const placed = await placedTypes();
  const types: readonly Typed[] = [...OTHER_TYPES, ...placed];
  const { reader, admin } = await database(t, typed(types));
  const dir = temporary();
  const env = { DATABASE_URL: reader };
  const made = await osl(['init', dir, '--yes', '--subject', SUBJECT], { env });
  t.equal(made.code, 0, made.stderr);
  t.notMatch(made.stdout, 'no such type');
  const files = ['--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')];
  const manifest = readFileSync(join(dir, 'manifest.yaml'), 'utf8');
  const { columns } = parse(manifest).connectors.db.tables['app.thing'];
  t.match(columns, {
    mood: { type: 'text', stored: 'enum app.mood', labels: ['so so', 'good', 'bad'] },
    moods: { type: 'text[]', stored: 'app.mood[]' },
    liked: { type: 'text', stored: 'enum app.mood' },
    host: { type: 'inet' },
    price: { type: 'money' },
    spans: { type: 'int4multirange' },
    bits: { type: 'bit(3)' },
    varbits: { type: 'varbit' },
    letter: { type: 'text', stored: '"char"' },
    folded: { type: 'text', stored: 'public.citext' },
    shape: { type: 'text', stored: placed === PLACED.made ? 'app.point' : 'public.geometry' },
    area: { type: 'text', stored: placed === PLACED.made ? 'app.point' : 'public.geography' },
  });

  // One column is masked, and one role may not see the second row by a filter on an enum.
  const labelled = parse(manifest);
  Object.assign(labelled.connectors.db.tables['app.thing'].columns.net, { sensitivity: 'secret' });
  writeFileSync(join(dir, 'manifest.yaml'), stringify(labelled));
  const policy = parse(readFileSync(join(dir, 'policy.yaml'), 'utf8'));
  policy.masks = { ...policy.masks, secret: 'redact' };
  policy.subjects['user:good'] = { ceiling: ['good'] };
  policy.roles.good = { grants: [{ on: 'many', columns: '*', rows: "mood = 'bad'" }] };
  writeFileSync(join(dir, 'policy.yaml'), stringify(policy));
  const doctor = await osl(['doctor', ...files], { env });
  t.match(doctor.stdout, /the database matches the manifest: 2 tables/);

  const server = new Server(['serve', '--json', ...files], join(dir, '.osl'), env);
  t.teardown(() => server.signal('SIGTERM'));
  await server.said('"listening"');
  const { httpPort, pgPort } = server.record();
  const tokenOf = async (subject: string): Promise<string> =>
    (await osl(['token', '--data-dir', server.dataDir, '--subject', subject])).stdout.trim();
  const tokens: Readonly<Record<string, string>> = {
    [SUBJECT]: await tokenOf(SUBJECT),
    'user:good': await tokenOf('user:good'),
  };
  const ask = (osql: string, accept = 'application/json', subject = SUBJECT): Promise<Response> =>
    fetch(`http://127.0.0.1:${String(httpPort)}/osl/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens[subject]}`, 'content-type': 'application/json', accept },
      body: JSON.stringify({ osql }),
    });
  const rows = async (osql: string, subject = SUBJECT): Promise<Record<string, unknown>[]> => {
    const reply = (await (await ask(osql, undefined, subject)).json()) as { rows: Record<string, unknown>[] };
    return reply.rows ?? [reply as unknown as Record<string, unknown>];
  };

  const names = types.map(([name]) => name);
  const expected: Record<string, unknown> = Object.fromEntries(types.map(([n, , value]) => [n, value]));
  expected['moods'] = ['good', 'so so'];
  expected['net'] = null; // masked, and no text
  const all = `select ${names.join(', ')} from osl.entities.thing order by id`;
  const nothing = { ...Object.fromEntries(names.map((n) => [n, null])) };
  t.strictSame(await rows(all), [expected, nothing], 'JSON');
  const lines = (await (await ask(all, 'application/x-ndjson')).text()).split('\n');
  t.ok(
    lines.some((line) => line.includes('"(\\"High Street\\",7)"')),
    'NDJSON',
  );
  const arrow = await ask(all, 'application/vnd.apache.arrow.stream');
  t.strictSame(asJson(readArrow(Buffer.from(await arrow.arrayBuffer()))), [expected, nothing], 'Arrow');
  const wire = `postgres://${encodeURIComponent(SUBJECT)}:${tokens[SUBJECT]}@127.0.0.1:${String(pgPort)}/osl`;
  t.strictSame(await onDatabase(wire, all), [expected, nothing], 'the wire');

  for (const [name, , value] of types) {
    if (name === 'moods' || name === 'net') continue;
    const found = `select id from osl.entities.thing where ${name} = '${value.replaceAll("'", "''")}'`;
    t.strictSame(await rows(found), [{ id: 1 }], `${name} is found by its text`);
    const none = `select id from osl.entities.thing where ${name} = '''no value' or ${name} <> '''no value'`;
    if (columns[name].stored === undefined || columns[name].labels !== undefined)
      t.match(await rows(none), [{ code: /^E/ }], `${name}: no value`);
    else
      t.strictSame(
        await rows(none),
        [{ id: 1 }],
        `${name}: what is not a value of the type is equal to nothing`,
      );
  }
  t.strictSame(await rows("select id from osl.entities.thing where mood in ('good', 'bad')"), [{ id: 1 }]);
  const [scans] = await onDatabase(admin, INDEX_SCANS);
  t.equal(scans?.['n'], 0);
  const rare = "select count(*) as n from osl.entities.many where mood = 'bad'";
  t.strictSame(await rows(rare), [{ n: `${MANY / 1000}` }]);
  t.strictSame(await rows('select count(*) as n from osl.entities.many', 'user:good'), [
    { n: `${MANY / 1000}` },
  ]);
  t.match(await rows("select id from osl.entities.many where mood = 'no such label'"), [
    { code: 'E0511', sqlstate: '22P02', detail: 'invalid input value for enum mood: "no such label"' },
  ]);
  await server.signal('SIGTERM'); // its sessions end, and their counts are told
  let used = 0;
  while (used < 2) used = Number((await onDatabase(admin, INDEX_SCANS))[0]?.['n']);
  t.equal(used, 2, 'a question and a row filter used the index');
});

/** PostGIS' where the server has it. */
async function placedTypes(): Promise<readonly Typed[]> {
  const sql = "SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'";
  const found = await onDatabase(server().url, sql);
  return found.length > 0 ? PLACED.postgis : PLACED.made;
}

const INDEX_SCANS = "SELECT idx_scan::int AS n FROM pg_stat_user_indexes WHERE indexrelname = 'many_mood'";

test('a policy may not read a text that a session can change', { skip }, async (t) => {
  const { reader } = await database(t, typed(OTHER_TYPES));
  const dir = temporary();
  const env = { DATABASE_URL: reader };
  t.equal((await osl(['init', dir, '--yes', '--subject', SUBJECT], { env })).code, 0);
  const file = join(dir, 'policy.yaml');
  const policy = parse(readFileSync(file, 'utf8'));
  for (const [column, refused, value] of [
    ['during', true, '[01/02/2026,)'],
    ['place', true, 'x'],
    ['host', false, '10.0.0.1'],
    ['liked', false, 'x'],
    ['price', true, '$1'],
    ['span', false, '[1,5)'],
  ] as const) {
    policy.roles.other = { grants: [{ on: 'thing', columns: '*', rows: `${column} = '${value}'` }] };
    writeFileSync(file, stringify(policy));
    const checked = await osl(['validate', '--manifest', join(dir, 'manifest.yaml'), '--policy', file], {
      env,
    });
    t.equal(checked.code !== 0, refused, `${column}: ${checked.stdout}${checked.stderr}`);
    if (refused) t.match(`${checked.stdout}${checked.stderr}`, 'depends on the settings of the session');
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
    (
      await onDatabase(
        admin,
        "SELECT FROM pg_stat_activity WHERE application_name = 'osl-gateway setup' AND datname = current_database()",
      )
    ).length,
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
  const bad = await osl(['init', dir, '--yes', '--force', '--create-role', 'unmade', '--tables', 'nowhere'], {
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
  await onDatabase(admin, `CREATE ROLE ${role}_too LOGIN`);
  const other = { OSL_DATABASE_URL: report.reader_url.replace(role, `${role}_too`) };
  t.match(
    await osl(['row-security', '--write', '--url', admin], { cwd: dir, env: other }),
    { code: 2, stderr: /of another gateway, for role osl_guarded_.*\n {2}hint: nothing was changed/ },
    'not told to name the owner, who was named',
  );
  await onDatabase(admin, `DROP ROLE ${role}_too`);
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
    [['--role', 'a b'], /is not a name/],
  ];
  const seen = await Promise.all(refused.map(([args]) => init(...args)));
  for (const [i, [args, words]] of refused.entries())
    t.match(seen[i], { code: 2, stderr: words }, args.join(' '));
  const piped = await osl(['init', dir, '--url', reader]);
  t.match(piped, { code: 2, stderr: /standard input is not a terminal: --yes/ });
  t.throws(() => statSync(dir), 'no folder was made');
  const file = join(temporary(), 'url');
  t.match(await osl(['init', dir, '--yes', '--url-file', file]), {
    code: 2,
    stderr: /cannot be read \(ENOENT\)/,
  });
});
