import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { parse, stringify } from 'yaml';
import { generatedSql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { LIBRARY } from '../../model/discovery/databases.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { EXAMPLE, osl, temporary } from './support.js';

t.setTimeout(600_000);
const manifest = join(EXAMPLE, 'manifest.yaml');
const policy = join(EXAMPLE, 'policy.yaml');

test('osl diff', async (t) => {
  const dir = temporary();
  const next = join(dir, 'next.yaml');
  const diff = (...more: string[]) =>
    osl(['diff', next, '--manifest', manifest, '--policy', policy, ...more]);
  const text = readFileSync(manifest, 'utf8');

  writeFileSync(next, `# only a comment\n${text}`);
  t.match(await diff(), { code: 0, stdout: 'nothing changes\nnobody gains or loses access\n' });

  writeFileSync(next, text.replace('email: { type: text, pii: true }', 'email: { type: text }'));
  const opened = await diff();
  t.equal(opened.code, 0, opened.stderr);
  t.match(opened.stdout, '~ column person.email: sensitivity\n');
  t.match(opened.stdout, /^ {2}gains osl\.entities\.person\.email: masked \(.* as \w+\) -> clear /m);
  const json = JSON.parse((await diff('--json')).stdout);
  t.match(json, {
    ok: true,
    diff: { changes: [{ kind: 'column', name: 'person.email' }], needs_restart: false },
  });

  writeFileSync(next, text.replace('path: { type: text }', 'path: { type: txt }'));
  const broken = await diff();
  t.equal(broken.code, 2);
  t.match(broken.stderr, /next\.yaml:\d+:\d+: error M2004 /);
});

test('osl diff of two policies says who gains and who loses what', async (t) => {
  const next = join(temporary(), 'next.yaml');
  const text = readFileSync(policy, 'utf8');
  const diff = async (changed: string, ...more: string[]) => {
    writeFileSync(next, changed);
    return osl(['diff', next, '--manifest', manifest, '--policy', policy, ...more]);
  };
  t.match(await diff(`# only a comment\n${text}`), { code: 0, stdout: 'nothing changes\n' });
  const edited = parse(text);
  const { analyst } = edited.roles;
  const on = (name: string) => analyst.grants.find((g: { on: string }) => g.on === name);
  on('person').unmask = ['person', 'pii'];
  on('package').rows = "license = 'MIT'";
  analyst.grants = analyst.grants.filter((g: { on: string }) => g.on !== 'credit');
  edited.roles.guest = { grants: [{ on: 'package', columns: ['name'] }] };
  edited.subjects['user:guest'] = { ceiling: ['guest'] };
  edited.subjects['user:admin'].ceiling = [];
  const { code, stdout, stderr } = await diff(stringify(edited));
  t.equal(code, 0, stderr);
  t.match(stdout, /^subject user:admin\n {2}loses role \w+\nsubject user:guest\n {2}gains role guest\n/);
  t.match(stdout, /^role analyst \(\d+ subjects?\)\n/m);
  t.match(stdout, /^ {2}gains osl\.entities\.person\.email: masked \(.* as \w+\) -> clear /m);
  t.match(stdout, /^ {2}loses osl\.entities\.credit\.person_id: clear \(.*\) -> nothing$/m);
  t.match(stdout, /^ {2}loses osl\.entities\.package: rows \(all rows\) -> rows \(license = 'MIT'\)$/m);
  t.match(stdout, /^role guest \(1 subject\)\n {2}gains osl\.entities\.package\.name: nothing -> clear /m);
  const json = JSON.parse((await diff(stringify(edited), '--json')).stdout);
  t.match(json, { ok: true, diff: { subjects: [{ subject: 'user:admin' }, { gains: ['role guest'] }] } });
  const broken = await diff(text.replace('on: person', 'on: persn'));
  t.match(broken, {
    code: 2,
    stderr: /next\.yaml:\d+:\d+: error P0102 .*\n {2}hint: perhaps you meant `person`/,
  });
});

test('a policy of another tenant is refused, wherever it meets the manifest', async (t) => {
  const dir = temporary();
  const other = join(dir, 'policy.yaml');
  writeFileSync(other, readFileSync(policy, 'utf8').replace('tenant: demo', 'tenant: acme'));
  for (const command of ['validate', 'index'])
    t.match(await osl([command, '--manifest', manifest, '--policy', other], { cwd: dir }), {
      code: 2,
      stderr:
        /policy\.yaml:6:9: error P0115 the policy is that of tenant `acme`, and the manifest that of `demo`\n[\s\S]*hint: /,
    });
  const next = join(dir, 'next.yaml');
  writeFileSync(next, readFileSync(manifest, 'utf8').replace('tenant: demo', 'tenant: acme'));
  t.match(await osl(['diff', next, '--manifest', manifest, '--policy', policy]), {
    code: 2,
    stderr: /P0115/,
  });
});

const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';

test('osl discover', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  t.teardown(() => native.stop());
  const empty = await osl(['discover', '--url', native.readerUrl]);
  t.equal(empty.code, 0, empty.stderr);
  const engine = await openEngine({
    kind: 'postgres',
    url: native.readerUrl,
    systemUrl: native.url,
    poolSize: 1,
  });
  await engine.system.script(generatedSql(LIBRARY));
  await engine.close();
  const listed = await osl(['discover', '--url', native.readerUrl]);
  t.match(listed.stdout, /^ db\.lib\.holding +\| bridge +\| isbn, country, city +\| +\| 0\.95/m);
  t.match(listed.stdout, /^ db\.Odd names\.Order "items" /m);
  const drafted = await osl(['discover', 'db.lib.reader', '--url', native.readerUrl]);
  t.match(drafted.stdout, /^ {2}reader:\n {4}source: db\.lib\.reader\n {4}primary_key:\n {6}- id\n/m);
  t.match(drafted.stderr, /note: no column has a sensitivity label/);
  const refused = await osl(['discover', '--url', native.url]);
  t.not(refused.code, 0, 'a superuser is not taken');
  t.match(refused.stderr, 'is superuser');
});

test('osl discover, of a manifest', async (t) => {
  const dir = temporary();
  const file = join(dir, 'manifest.yaml');
  writeFileSync(file, 'version: 1\nconnectors: { db: { kind: pglite, tables: {} } }\nentities: {}\n');
  const listed = await osl(['discover', '--manifest', file, '--data-dir', dir, '--json']);
  t.match(listed, { code: 0, stdout: '[]\n' }, listed.stderr);
  const nothing = await osl(['discover', 'db.a.b', '--manifest', file, '--data-dir', dir]);
  t.match(nothing, { code: 1, stderr: 'error: `db.a.b` is not a candidate\n' });
});
