import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import { test } from 'tap';
import { parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';
import { keysWithoutExample, referencePage } from './reference-page.js';
import { MANIFEST_REFERENCE, POLICY_REFERENCE } from './references.js';

const PAGES = { 'manifest.md': MANIFEST_REFERENCE, 'policy.md': POLICY_REFERENCE };

await ready();

for (const [name, reference] of Object.entries(PAGES)) {
  test(`docs/${name} has every key of the schema, each in an example`, (t) => {
    const page = join(process.cwd(), 'docs', name);
    if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(page, referencePage(reference));
    t.equal(
      readFileSync(page, 'utf8'),
      referencePage(reference),
      'run OSL_WRITE_DOCS=1 npm test to write it anew',
    );
    t.same(keysWithoutExample(reference), []);
    t.end();
  });
}

test('the examples are without a fault', (t) => {
  const manifest = parseManifest(MANIFEST_REFERENCE.example, 'manifest.yaml');
  t.equal(manifest.tenant, 'acme');
  t.equal(parsePolicyDocument(POLICY_REFERENCE.example, 'policy.yaml').document.tenant, 'acme');
  t.end();
});
