import { readFileSync } from 'node:fs';
import { ready } from 'osl-compiler';
import t from 'tap';
import { compiledPolicy, judgePolicy } from '../../src/model/authoring/policy.js';
import { parseManifest } from '../../src/model/manifest/index.js';

const GROUPS = 'min_group_size: 5';
/** Conditions and rules of a grant: each of them is a change that whoever reviews a policy must be shown. */
const TERMS = {
  starts: 'starts: 2026-01-01T00:00:00Z',
  ends: 'ends: 2027-01-01T00:00:00Z',
  when: 'when: { surfaces: [rest] }',
  for: 'for: [billing]',
  break_glass: 'break_glass: { minutes: 30, per_day: 2 }',
  approval: 'approval: { by: steward, minutes: 60 }',
  min_group_size: GROUPS,
  overlap: `${GROUPS}, overlap: { mode: refuse }`,
  distinct: `${GROUPS}, distinct: { region: 2 }`,
  dominance: `${GROUPS}, dominance: 60`,
};

t.test('a term that a grant gains or loses is shown', async (t) => {
  await ready();
  const manifest = parseManifest(readFileSync('examples/reference/manifest.yaml', 'utf8'), 'manifest.yaml');
  const policyWith = (term: string): string => `
version: 1
tenant: ${manifest.tenant}
purposes: { billing: { description: Bills are written. } }
subjects: { 'user:ann': { ceiling: [reader] } }
roles:
  steward: { grants: [] }
  reader: { grants: [{ on: customer, columns: [id, region]${term === '' ? '' : `, ${term}`} }] }
masks: { pii: redact, secret: redact }
`;
  for (const [name, term] of Object.entries(TERMS)) {
    const without = term.startsWith(`${GROUPS}, `) ? GROUPS : '';
    for (const [before, after] of [
      [without, term],
      [term, without],
    ] as const) {
      const snapshot = compiledPolicy(policyWith(before), 'policy.yaml', manifest);
      const { diagnostics, diff } = judgePolicy(policyWith(after), 'policy.yaml', { manifest, snapshot });
      t.strictSame(diagnostics, [], name);
      t.ok((diff?.access.length ?? 0) > 0, `${name}: from "${before}" to "${after}"`);
    }
  }
});
