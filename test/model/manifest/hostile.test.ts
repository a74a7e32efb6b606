import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import {
  loadManifest,
  ManifestProblems,
  parseManifest,
  parsePolicyDocument,
} from '../../../src/model/manifest/index.js';
import { processorMs } from '../../support/processor.js';
import { edited, MANIFEST, ofManifest, POLICY } from './base.js';

/** The codes that `work` is refused with. */
async function codes(work: () => Promise<unknown>): Promise<readonly string[]> {
  try {
    await work();
    return [];
  } catch (error) {
    if (error instanceof ManifestProblems) return error.diagnostics.map((d) => d.code);
    throw error;
  }
}

test('a bomb of aliases is refused within a second', async (t) => {
  const levels = Array.from(
    { length: 9 },
    (_, i) => `  l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`,
  );
  const bomb = `version: 1\nlexicon:\n  l0: &l0 [x, x, x, x, x, x, x, x, x]\n${levels.join('\n')}\n`;
  const start = processorMs();
  t.match(ofManifest(bomb), [/M0006 aliases repeat more than 100000 nodes/]);
  t.ok(processorMs() - start < 1000);
});

test('aliases within bounds work', async (t) => {
  const text = edited(
    edited(
      MANIFEST,
      'columns: [order_id, customer_id, weight]',
      'columns: &c [order_id, customer_id, weight]',
    ),
    'metadata: [customer_id]',
    'metadata: &m [customer_id]',
  );
  const manifest = parseManifest(
    edited(text, 'scalar_indexed: [id, customer_id]', 'scalar_indexed: *m'),
    'm.yaml',
  );
  t.strictSame(manifest.facets.get('notes')?.scalarIndexed, ['customer_id']);
});

test('a problem inside an alias is marked where its anchor stands', async (t) => {
  const text = edited(
    MANIFEST,
    'columns: [id, customer_id, amount]',
    'columns: &c [id, customer_id, amuont]',
  );
  t.match(ofManifest(edited(text, 'metadata: [customer_id]', 'metadata: *c')), [
    /^27:35-41 M2003/,
    /^27:35-41 M2003/,
  ]);
});

test('nesting that would exhaust the stack is refused', async (t) => {
  t.match(ofManifest(`version: ${'['.repeat(200_000)}`), [/M000[35]/]);
  t.match(ofManifest(`version: ${'['.repeat(200)}${']'.repeat(200)}`), [/M0005/]);
});

test('a hundred thousand keys that repeat are refused quickly, and a hundred are shown', async (t) => {
  const start = processorMs();
  t.equal(ofManifest('version: 1\n'.repeat(100_000)).length, 100);
  t.ok(processorMs() - start < 10_000);
});

test('names of Object.prototype are names like any other', async (t) => {
  const text = edited(MANIFEST, 'turnover:', 'constructor:')
    .replace('  customer:\n', '  toString:\n')
    .replaceAll('customer.id', 'toString.id')
    .replace('{ entity: customer,', '{ entity: toString,');
  const manifest = parseManifest(text, 'm.yaml');
  t.equal(manifest.catalog.relations.get('toString')?.kind, 'entity');
  t.equal(manifest.catalog.relations.get('hasOwnProperty'), undefined);
  t.equal(manifest.lexicon.get('constructor')?.kind, 'metric');
  const { document } = parsePolicyDocument(
    edited(POLICY, 'masks: {', 'masks: { constructor: hash,'),
    'p.yaml',
  );
  t.equal(document.roles['constructor'], undefined);
  t.equal(document.masks['constructor'], 'hash');
  const derived = 'derived: { x: { facet: constructor, operator: TAG, labels: [a] } }';
  const columns = 'columns: [id, customer_id, amount]\n';
  const noFacet = edited(MANIFEST, columns, `${columns}    ${derived}\n`).replace(
    /facets:[\s\S]*(?=metrics:)/,
    '',
  );
  t.match(ofManifest(noFacet), [/M2001 facet `constructor` is not declared/]);
});

test('`__proto__` reaches no prototype', async (t) => {
  t.match(ofManifest('__proto__: { polluted: true }\n'), [
    /M1003/,
    /M1003/,
    /M1003/,
    /M1002 unknown key `__proto__`/,
  ]);
  t.equal(Reflect.get({}, 'polluted'), undefined);
});

test('a diagnostic draws nothing on the terminal', async (t) => {
  try {
    parseManifest('version: "\u001b[2J\u009b31m"\n', 'm.yaml');
  } catch (error) {
    t.notMatch(error instanceof ManifestProblems ? error.format() : '', /[\u001b\u009b]/);
  }
});

test('files', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'osl-manifest-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'm.yaml');
  t.strictSame(await codes(() => loadManifest(file)), ['M0001'], 'absent');
  t.strictSame(await codes(() => loadManifest(folder)), ['M0001'], 'a folder');
  await writeFile(file, Buffer.from([0x76, 0xff, 0xfe]));
  t.strictSame(await codes(() => loadManifest(file)), ['M0001'], 'not UTF-8');
  await truncate(file, 33 * 1024 * 1024);
  t.strictSame(await codes(() => loadManifest(file)), ['M0002'], 'too large');
  await writeFile(file, MANIFEST.replaceAll('\n', '\r\n'));
  t.equal((await loadManifest(file)).version, parseManifest(MANIFEST, 'm').version, 'line ends do not count');
});
