import { test } from 'tap';
import { edited, MANIFEST, ofManifest, ofPolicy, POLICY } from './base.js';
import { brokenManifest, MANIFEST_CASES, POLICY_CASES } from './cases.js';

test('a good manifest and a good policy have no diagnostics', async (t) => {
  t.strictSame(ofManifest(MANIFEST), []);
  t.strictSame(ofPolicy(POLICY), []);
});

test('manifest', async (t) => {
  for (const broken of MANIFEST_CASES)
    t.strictSame(ofManifest(brokenManifest(broken)), broken.told, broken.name);
});

test('policy', async (t) => {
  for (const c of POLICY_CASES) t.strictSame(ofPolicy(edited(POLICY, c.from, c.to)), c.told, c.name);
});
