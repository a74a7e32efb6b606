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

const SCRAM = `SCRAM-SHA-256$4096:${'A'.repeat(22)}==$${'A'.repeat(43)}=:${'A'.repeat(43)}=`;

/** Parts of a policy that let somebody in or limit what is used, with what a reviewer is shown of a change. */
const PARTS: readonly (readonly [
  before: string,
  after: string,
  subject: object | null,
  sections: string[],
])[] = [
  [
    '',
    'certificates: { laptop: { subject: "user:ann", cn: laptop } }',
    { gains: ['certificate laptop'] },
    ['certificates'],
  ],
  [
    'certificates: { laptop: { subject: "user:ann", cn: laptop } }',
    'certificates: { laptop: { subject: "user:ann", cn: desktop } }',
    null,
    ['certificates'],
  ],
  [
    '',
    `service_accounts: { bi: { subject: "user:ann", scram: "${SCRAM}" } }`,
    { gains: ['login bi'] },
    ['service_accounts'],
  ],
  [
    `service_accounts: { bi: { subject: "user:ann", scram: "${SCRAM}" } }`,
    `service_accounts: { bi: { subject: "user:ann", scram: "${SCRAM.replace('4096', '8192')}" } }`,
    null,
    ['service_accounts'],
  ],
  [
    'exchange: [{ name: a, issuer: i, subject: "a:{sub}", ceiling: [reader] }, { name: b, issuer: i, subject: "b:{sub}", ceiling: [] }]',
    'exchange: [{ name: b, issuer: i, subject: "b:{sub}", ceiling: [] }, { name: a, issuer: i, subject: "a:{sub}", ceiling: [reader] }]',
    null,
    ['exchange'],
  ],
];

t.test('who may log in, and how, is shown', async (t) => {
  const grant = 'on: customer, columns: [id, region]';
  for (const [before, after, subject, sections] of PARTS) {
    const snapshot = compiledPolicy(policyWith(grant) + before, 'policy.yaml', manifest);
    const { diff } = judgePolicy(policyWith(grant) + after, 'policy.yaml', { manifest, snapshot });
    t.match(diff, { subjects: subject === null ? [] : [{ subject: 'user:ann', ...subject }] }, after);
    t.strictSame(diff?.subjects.length, subject === null ? 0 : 1);
    t.strictSame(diff?.sections, sections, after);
    const first = judgePolicy(policyWith(grant) + after, 'policy.yaml', { manifest, snapshot: null });
    t.strictSame(first.diagnostics, [], 'also as the first policy');
  }
});

t.test('limits of a role are shown', async (t) => {
  const policy = policyWith('on: customer, columns: [id]');
  const snapshot = compiledPolicy(policy, 'policy.yaml', manifest);
  const limited = policy.replace('reader: {', 'reader: { max_cost: 5, limits: [{ per: day, rows: 9 }],');
  const { diff } = judgePolicy(limited, 'policy.yaml', { manifest, snapshot });
  t.strictSame(diff?.sections, ['roles.reader.max_cost', 'roles.reader.limits']);
});
