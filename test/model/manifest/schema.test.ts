import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'tap';
import { compileSnapshot, PolicyProblems } from '../../../policy/index.js';
import type { TextRange } from '../../../src/model/manifest/index.js';
import {
  loadManifest,
  loadPolicyDocument,
  MANIFEST_SCHEMA,
  POLICY_SCHEMA,
  parsePolicyDocument,
} from '../../../src/model/manifest/index.js';
import { edited } from './base.js';

/** Tests run from the repository's root. */
const EXAMPLE = 'examples/supply-chain';

const PUBLISHED = [
  ['manifest', MANIFEST_SCHEMA],
  ['policy', POLICY_SCHEMA],
] as const;

test('the schemas that editors read are those that the loader checks', async (t) => {
  for (const [name, schema] of PUBLISHED) {
    const file = `${EXAMPLE}/${name}.schema.json`;
    if (process.env['OSL_WRITE_SCHEMAS'] === '1')
      await writeFile(file, `${JSON.stringify(schema, null, 2)}\n`);
    const published: unknown = JSON.parse(await readFile(file, 'utf8'));
    t.strictSame(
      published,
      JSON.parse(JSON.stringify(schema)),
      `${file}: OSL_WRITE_SCHEMAS=1 rewrites it, then biome check --write`,
    );
  }
});

test('the example files name their schema in their first line', async (t) => {
  for (const [name] of PUBLISHED) {
    const text = await readFile(`${EXAMPLE}/${name}.yaml`, 'utf8');
    t.equal(text.split('\n', 1)[0], `# yaml-language-server: $schema=./${name}.schema.json`);
  }
});

test('the example loads, and is what its issue asks for', async (t) => {
  const { catalog, tenant } = await loadManifest(`${EXAMPLE}/manifest.yaml`);
  const columns = (name: string) => catalog.relations.get(name)?.columns.map((c) => c.name);
  t.equal(tenant, 'demo');
  t.strictSame(
    [...catalog.relations.values()].map((r) => `${r.kind} ${r.name}`),
    [
      'entity package',
      'entity person',
      'bridge dependency',
      'bridge credit',
      'facet readme',
      'facet changelog',
    ],
  );
  t.strictSame(columns('person'), ['id', 'name', 'email', 'url']);
  t.strictSame(columns('dependency'), ['from_path', 'to_path', 'kind', 'range']);
  t.strictSame(columns('credit'), ['person_id', 'package_path', 'role']);
  t.equal(catalog.relations.get('person')?.columns.find((c) => c.name === 'email')?.sensitivity, 'pii');
  t.strictSame(
    [...catalog.metrics.keys()],
    ['package_count', 'install_bytes', 'dependents', 'file_count', 'typed_share', 'bytes_per_file'],
  );
});

test('the policy of the example names only what the manifest declares', async (t) => {
  const { catalog } = await loadManifest(`${EXAMPLE}/manifest.yaml`);
  const { document } = await loadPolicyDocument(`${EXAMPLE}/policy.yaml`);
  t.strictSame(Object.keys(document.subjects), [
    'user:analyst',
    'user:auditor',
    'user:counsel',
    'agent:scout',
    'user:admin',
  ]);
  for (const [role, { grants }] of Object.entries(document.roles)) {
    for (const grant of grants) {
      const known = catalog.relations.get(grant.on)?.columns.map((c) => c.name) ?? [];
      t.ok(grant.columns === '*' || grant.columns.every((c) => known.includes(c)), `${role} on ${grant.on}`);
    }
  }
  const grantsOf = (role: string) => document.roles[role]?.grants.map((g) => g.on);
  t.strictSame(grantsOf('copyleft'), ['package', 'readme', 'changelog']);
  t.notMatch(`${grantsOf('admin')}`, /person|credit/);
});

test('the example policy compiles against the example manifest', async (t) => {
  const { catalog } = await loadManifest(`${EXAMPLE}/manifest.yaml`);
  const { document } = await loadPolicyDocument(`${EXAMPLE}/policy.yaml`);
  t.match(compileSnapshot(document, catalog), { tenant: 'demo', catalogVersion: catalog.version });
});

test('what the policy compiler finds is placed in the file', async (t) => {
  const { catalog } = await loadManifest(`${EXAMPLE}/manifest.yaml`);
  const { text } = await loadPolicyDocument(`${EXAMPLE}/policy.yaml`);
  const wrong = edited(
    edited(text, 'rows: license_class <>', 'rows: dev and licence_class <>'),
    '[copyleft] }',
    '[copylef] }',
  );
  const file = parsePolicyDocument(wrong, 'policy.yaml');
  try {
    compileSnapshot(file.document, catalog);
    t.fail('it has problems');
  } catch (error) {
    const problems = error instanceof PolicyProblems ? error.problems : [];
    t.strictSame(
      file.diagnostics(problems).map((d) => markedText(wrong, d.range)),
      ['copylef', 'licence_class'],
    );
  }
});

function markedText(text: string, { start, end }: TextRange): string | undefined {
  return text.split('\n')[start.line - 1]?.slice(start.column - 1, end.column - 1);
}
