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

await ready();
const manifest = parseManifest(readFileSync('examples/reference/manifest.yaml', 'utf8'), 'manifest.yaml');

function policyWith(grant: string): string {
  return `
version: 1
tenant: ${manifest.tenant}
purposes: { billing: { description: Bills are written. } }
subjects: { 'user:ann': { ceiling: [reader] } }
roles:
  steward: { grants: [] }
  reader: { grants: [{ ${grant} }] }
masks: { pii: redact, secret: redact }
`;
}

/** Compares two policies that differ in one grant. */
function differenceOf(before: string, after: string) {
  const snapshot = compiledPolicy(policyWith(before), 'policy.yaml', manifest);
  return judgePolicy(policyWith(after), 'policy.yaml', { manifest, snapshot });
}

t.test('a term that a grant gains or loses is shown', async (t) => {
  const grant = (term: string): string =>
    ['on: customer', 'columns: [id, region]', term].filter((part) => part !== '').join(', ');
  for (const [name, term] of Object.entries(TERMS)) {
    const without = term.startsWith(`${GROUPS}, `) ? GROUPS : '';
    for (const [before, after] of [
      [without, term],
      [term, without],
    ] as const) {
      const { diagnostics, diff } = differenceOf(grant(before), grant(after));
      t.strictSame(diagnostics, [], name);
      t.ok((diff?.access.length ?? 0) > 0, `${name}: from "${before}" to "${after}"`);
    }
  }
});

t.test('a grant of some metrics is narrower than one of every aggregate', async (t) => {
  const any = `on: order, columns: [id, status], ${GROUPS}`;
  const only = (...metrics: string[]): string => `${any}, metrics: [${metrics.join(', ')}]`;
  for (const [before, after, effect] of [
    [any, only('revenue'), 'loses'],
    [only('revenue'), any, 'gains'],
    [only('revenue'), only('orders', 'revenue'), 'gains'],
    [only('orders', 'revenue'), only('orders'), 'loses'],
    [only('orders'), only('revenue'), 'differs'],
    [only('orders', 'revenue'), only('revenue', 'orders'), undefined],
  ] as const) {
    const { diagnostics, diff } = differenceOf(before, after);
    t.strictSame(diagnostics, []);
    const change = diff?.access[0]?.changes.find(({ object }) => object === 'osl.entities.order');
    t.equal(change?.effect, effect, `from "${before}" to "${after}"`);
  }
});
