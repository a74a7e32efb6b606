import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import t, { test } from 'tap';
import { facetText } from '../../support/model-text.js';
import { NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import { systemRoleScript } from '../../support/system-role.js';
import { EXAMPLE, type Finished, osl, temporary } from './support.js';

t.setTimeout(600_000);

interface Finding {
  readonly about: string;
  readonly state: string;
  readonly message: string;
  readonly hint: string | null;
}

function findingsOf(run: Finished): readonly Finding[] {
  const report: { readonly findings: readonly Finding[] } = JSON.parse(run.stdout);
  return report.findings;
}

const EXAMPLES = ['--manifest', join(EXAMPLE, 'manifest.yaml'), '--policy', join(EXAMPLE, 'policy.yaml')];
const FREE = ['--http-port', '0', '--pg-port', '0'];

test('a folder without anything, and the demo', async (t) => {
  const dir = temporary();
  const nothing = await osl(['doctor', ...FREE], { cwd: dir });
  t.equal(nothing.code, 1);
  t.match(
    nothing.stdout,
    /^FAIL {2}files: .*manifest\.yaml.*does not exist\n {6}hint: --manifest and --policy name others, .*`osl init` makes both of a Postgres/m,
  );
  t.match(nothing.stdout, /\n1 failure, 0 warnings\n$/);
  for (const command of [
    'validate',
    'diff next.yaml',
    'discover',
    'index',
    'rollup status',
    'export ossie',
  ]) {
    const run = await osl(command.split(' '), { cwd: dir });
    const said = /^error: there is no \S+manifest\.yaml, and no server runs on \S+\n {2}hint: --manifest and/;
    t.match(run, { code: 2, stderr: said }, command);
  }
  const demo = await osl(['doctor', ...EXAMPLES, ...FREE, '--data-dir', join(dir, 'data')]);
  t.equal(demo.code, 0, demo.stdout);
  t.match(demo.stdout, /^- {5}database demo: embedded/m);
});

test('each fault of a file is a finding of its own, with its own hint under it', async (t) => {
  const dir = temporary();
  const text = readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8');
  writeFileSync(
    join(dir, 'manifest.yaml'),
    text
      .replace('path: { type: text }', 'path: { type: txt }')
      .replace('email: { type: text', 'email: { type: uuidd'),
  );
  writeFileSync(join(dir, 'policy.yaml'), readFileSync(join(EXAMPLE, 'policy.yaml')));
  const { code, stdout } = await osl(['doctor', ...FREE], { cwd: dir });
  t.equal(code, 1);
  t.match(
    stdout,
    /^FAIL {2}files: \S+manifest\.yaml:\d+:\d+: M2004 .*`txt`.*\n {6}hint: perhaps you meant `text`\nFAIL {2}files: \S+ M2004 .*`uuidd`.*\n {6}hint: perhaps you meant `uuid`\n/m,
  );
  t.match(stdout, /\n2 failures, 0 warnings\n$/);
});

test('the machine: data directory, keys that others may read, ports, certificates, issuers', async (t) => {
  const dir = temporary();
  mkdirSync(join(dir, 'keys'));
  chmodSync(join(dir, 'keys'), 0o755);
  const pem = join(dir, 'not.pem');
  writeFileSync(pem, 'nothing');
  const run = await osl(
    [
      'doctor',
      ...EXAMPLES,
      '--json',
      '--host',
      '0.0.0.0',
      '--data-dir',
      dir,
      '--http-port',
      '7',
      '--pg-port',
      '7',
    ],
    {
      env: { OSL_PUBLIC_KEYS: pem, OSL_DASHBOARDS: join(dir, 'none') },
    },
  );
  t.equal(run.code, 1);
  const states = findingsOf(run)
    .map((f) => `${f.state} ${f.about}: ${f.message}`)
    .join('\n');
  t.match(states, /^warn data directory: other users of this machine can read /m);
  t.match(states, /^fail keys: key file .*signing\.key is missing/m);
  t.match(states, /^fail ports: port 7 is named twice/m);
  t.match(states, /^fail TLS: the Postgres port has no TLS and refuses clients/m);
  t.match(states, /^warn TLS: REST listens on 0\.0\.0\.0 without TLS: tokens and rows can be read/m);
  t.match(states, /^fail issuers: .*holds no public key/m);
  t.match(states, /^fail dashboards: OSL_DASHBOARDS: .* cannot be read/m);
});

test('keys that gateways share', async (t) => {
  const keys = join(temporary(), 'keys');
  const states = async (): Promise<string> =>
    findingsOf(
      await osl(['doctor', ...EXAMPLES, '--json', '--data-dir', temporary()], {
        env: { OSL_KEYS_DIR: keys },
      }),
    )
      .map((f) => `${f.state} ${f.message}`)
      .join('\n');
  t.match(await states(), /^fail there are no keys in .*OSL_KEYS_DIR/m);
  t.equal((await osl(['keys', 'make', keys])).code, 0);
  chmodSync(keys, 0o755);
  t.notMatch(await states(), keys, 'a directory that others can list, as orchestrators mount it');
  chmodSync(join(keys, 'signing.key'), 0o644);
  t.match(await states(), /^warn other users of this machine can read .*signing\.key, which holds secrets/m);
  writeFileSync(join(keys, 'masking.key'), 'c2hvcnQ=');
  t.match(await states(), /^fail key file .*masking\.key holds fewer than 32 bytes/m);
});

// It changes settings of the role that all tests share.
const native = await startOwnPostgres();
t.teardown(() => native?.stop());

test('a Postgres', { skip: native === null && NO_BINARIES }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const client = new Client({ connectionString: native.url });
  await client.connect();
  t.teardown(() => client.end());
  await client.query(
    'CREATE SCHEMA doc; CREATE TABLE doc.t (id int PRIMARY KEY, v text, w int); GRANT USAGE ON SCHEMA doc TO osl_reader; GRANT SELECT ON doc.t TO osl_reader',
  );
  const dir = temporary();
  const made = await osl(['init', dir, '--yes', '--schemas', 'doc', '--url', native.readerUrl]);
  t.equal(made.code, 0, made.stderr);
  const doctor = async (url: string): Promise<readonly Finding[]> =>
    findingsOf(
      await osl(['doctor', '--json', ...FREE], { cwd: dir, env: url === '' ? {} : { DATABASE_URL: url } }),
    );
  const on = async (url: string): Promise<string> =>
    (await doctor(url))
      .filter((f) => f.about === 'database db')
      .map((f) => `${f.state} ${f.message}`)
      .join('\n');

  t.match(await on(''), /^fail DATABASE_URL is not set$/);
  t.match(await on('postgres://x@127.0.0.1:1/x'), /^fail .*nothing listens there$/);
  t.match(await on(native.url), /^fail the gateway refuses role "postgres": role "postgres" is superuser$/m);

  await client.query('ALTER ROLE osl_reader SET log_parameter_max_length = -1');
  const good = await on(native.readerUrl);
  t.match(good, /^ok .* is not a superuser and cannot bypass row security/m);
  t.match(good, /^ok the database matches the manifest: 1 table$/m);
  t.match(good, /^warn if statement logging is turned on, .*log_parameter_max_length is not 0$/m);
  await client.query('ALTER ROLE osl_reader SET log_parameter_max_length = 0');
  const severalHosts = native.readerUrl.replace('@', '@127.0.0.1:1,');
  t.match(await on(severalHosts), /^ok the database matches the manifest: 1 table$/m, 'of several hosts');
  t.match(await on(native.readerUrl), /^ok the server log contains no parameter values$/m);
  await client.query('ALTER ROLE osl_reader SET log_parameter_max_length_on_error = -1');
  t.match(
    await on(native.readerUrl),
    /^fail the server log contains parameter values of failed statements, which can be personal data$/m,
  );

  await client.query(
    'ALTER TABLE doc.t ALTER w TYPE text, DROP COLUMN v; GRANT CREATE ON SCHEMA doc TO osl_reader',
  );
  const drifted = await on(native.readerUrl);
  t.match(drifted, /^fail the database has no column doc\.t\.v$/m);
  t.match(drifted, /^fail doc\.t\.w is text in the database, and int4 in the manifest$/m);
  const hints = new Map((await doctor(native.readerUrl)).map((f) => [f.message, f.hint]));
  t.match(hints.get('the database has no column doc.t.v'), /^take it out of the manifest/);
  t.match(hints.get('doc.t.w is text in the database, and int4 in the manifest'), /`type: text`/);
  t.match(drifted, /^warn role "osl_reader" can create objects in schema "doc"$/m);
  await client.query(`CREATE SCHEMA between; CREATE TABLE doc.human (id int PRIMARY KEY, email text, born date);
    CREATE VIEW between.shouted AS SELECT id, upper(p.email) AS loud, born, (SELECT count(*) FROM doc.human) AS n FROM doc.human p;
    CREATE VIEW doc.told AS WITH s AS (SELECT * FROM between.shouted) SELECT s.id, s.loud || '!' AS louder, extract(year FROM born) AS year, n FROM s;
    GRANT SELECT ON doc.human, doc.told TO osl_reader`);
  const manifest = readFileSync(join(dir, 'manifest.yaml'), 'utf8');
  const withView = (louder: string, year: string): string =>
    manifest.replace(
      /^ {4}tables:\n/m,
      `$&      doc.human: { columns: { id: { type: int4 }, email: { type: text, pii: true }, born: { type: date, sensitivity: secret } } }
      doc.told: { columns: { id: { type: int4 }, louder: { type: text${louder} }, year: { type: numeric${year} }, n: { type: int8 } } }\n`,
    );
  writeFileSync(join(dir, 'manifest.yaml'), withView('', ', pii: true'));
  const less = (await on(native.readerUrl)).split('\n').filter((line) => line.includes('view'));
  t.strictSame(less, [
    'warn view column doc.told.louder has no label, and is computed from doc.human.email (pii)',
    'warn view column doc.told.year has the label pii, and is computed from doc.human.born (secret)',
  ]);
  writeFileSync(join(dir, 'manifest.yaml'), withView(', pii: true', ', sensitivity: secret'));
  t.match(await on(native.readerUrl), /^ok 4 columns of views labelled like their sources$/m);
  writeFileSync(join(dir, 'manifest.yaml'), manifest);
  await client.query('REVOKE SELECT ON pg_catalog.pg_stat_ssl FROM public');
  const partial = await doctor(native.readerUrl);
  await client.query('GRANT SELECT ON pg_catalog.pg_stat_ssl TO public');
  t.match(
    partial.filter((f) => f.about === 'database db').map((f) => `${f.state} ${f.message}`),
    [/^fail .*pg_stat_ssl/],
    'a catalog query that fails',
  );
  t.ok(
    partial.some((f) => f.about === 'data directory'),
    'and what is not about the database',
  );
  await client.query('REVOKE SELECT ON doc.t FROM osl_reader');
  const unread = (await doctor(native.readerUrl)).find((f) => f.message.includes('cannot read'));
  t.match(unread, {
    message: "the gateway's role cannot read doc.t.id",
    hint: 'GRANT SELECT ("id") ON "doc"."t" TO "osl_reader"',
  });

  t.match(good, /^skipped DATABASE_URL_SYSTEM is not set: only text facets/m);

  const facets = readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8').replace(
    'kind: pglite',
    'kind: postgres\n    url_env: DATABASE_URL',
  );
  writeFileSync(join(dir, 'manifest.yaml'), facets);
  writeFileSync(join(dir, 'policy.yaml'), readFileSync(join(EXAMPLE, 'policy.yaml')));
  const withSystem = async (system: string | null): Promise<string> => {
    const env = { DATABASE_URL: native.readerUrl, ...(system !== null && { DATABASE_URL_SYSTEM: system }) };
    return findingsOf(await osl(['doctor', '--json', ...FREE], { cwd: dir, env }))
      .map((f) => f.message)
      .join('\n');
  };
  const words = await withSystem(null);
  t.match(words, /^DATABASE_URL_SYSTEM is not set, and facet readme, changelog needs it$/m);
  const index = await osl(['index'], { cwd: dir, env: { DATABASE_URL: native.readerUrl } });
  t.match(index, {
    code: 2,
    stderr: /has no system credentials: set DATABASE_URL_SYSTEM to the URL of a role/,
  });

  // No pgvector is asked of the server here; test/content/index-facet.test.ts indexes as the role.
  const script = systemRoleScript()
    .replace(/^CREATE EXTENSION.*$/m, '')
    .replaceAll('osl_system', 'osl_system_of_doctor')
    .replaceAll('SCHEMA shop', 'SCHEMA doc');
  await client.query(script);
  t.teardown(() => client.query('DROP OWNED BY osl_system_of_doctor; DROP ROLE osl_system_of_doctor'));
  const system = new URL(native.url);
  system.username = 'osl_system_of_doctor';
  system.password = encodeURIComponent('choose one');
  t.match(await withSystem(system.href), /osl_system_of_doctor@.*: can store the index of text facets$/m);
  t.match(words, /^facet readme, changelog needs the extension pgvector, which is not installed$/m);
  t.match(words, /^the database has no table supply\.package$/m);
  await client.query(`CREATE TABLE doc.person (id text PRIMARY KEY, name text);
    CREATE TABLE doc.note (id text PRIMARY KEY, person text, body text);
    INSERT INTO doc.person VALUES ('p1', 'ReadMe'), ('p2', 'Zoë Quux');
    INSERT INTO doc.note SELECT n || '/README.md', 'p1', 'By Zoë Quux' FROM generate_series(1, 12) n WHERE n <> 1;
    GRANT SELECT ON doc.person, doc.note TO osl_reader, osl_system_of_doctor`);
  writeFileSync(join(dir, 'manifest.yaml'), NOTES);
  writeFileSync(
    join(dir, 'policy.yaml'),
    'version: 1\ntenant: doc\nsubjects: {}\nroles: {}\nmasks: { person: redact }\n',
  );
  const named = await withSystem(system.href);
  const env = { DATABASE_URL: native.readerUrl, DATABASE_URL_SYSTEM: system.href };
  const withoutVector =
    /^error: the extension vector cannot be created\n {2}hint: install pgvector .*create extension vector/m;
  t.match(await osl(['index'], { cwd: dir, env }), { code: 1, stderr: withoutVector });
  const [line = ''] = (await osl(['index', '--json'], { cwd: dir, env })).stderr
    .trimEnd()
    .split('\n')
    .slice(-1);
  const told = JSON.parse(line) as { error: unknown };
  t.match(told.error, {
    message: 'the extension vector cannot be created',
    hint: /^install pgvector/,
    exit: 1,
  });
  t.match(
    named,
    /^`README` \(person\) stands in 100 % of 11 documents and is replaced there: probably a word/m,
  );
  writeFileSync(join(dir, 'manifest.yaml'), NOTES.replace('exceptions: []', 'exceptions: [ReadMe]'));
  t.notMatch(await withSystem(system.href), /README/);
  t.notMatch(await withSystem(null), /README/, 'the gateway itself reads no source for it');
  await client.query('DROP SCHEMA doc, between CASCADE; ALTER ROLE osl_reader RESET ALL');
});

const NOTES = `version: 1
tenant: doc
connectors:
  db:
    kind: postgres
    url_env: DATABASE_URL
    tables:
      doc.person: { columns: { id: { type: text }, name: { type: text, sensitivity: person } } }
      doc.note: { columns: { id: { type: text }, person: { type: text }, body: { type: text } } }
entities:
  person: { source: db.doc.person, primary_key: [id], columns: [id, name] }
facets:
${facetText('notes', 'doc.note', 'person', 'person')}
    dictionary: tenant
    exceptions: []
    versions: { raw: {}, masked: { redact: [person] } }
    retrieval: { max_top_k: 10 }
`;
