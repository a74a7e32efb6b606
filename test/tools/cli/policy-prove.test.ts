import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { osl, ROOT, temporary } from './support.js';

t.setTimeout(240_000);

const PAGE = join(ROOT, 'docs', 'policy-proofs.md');

test('the page’s example says what the page says', async (t) => {
  const page = readFileSync(PAGE, 'utf8');
  const [, file = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const [, output = ''] = /\$ osl policy prove\n([\s\S]*?)```/.exec(page) ?? [];
  const dir = temporary();
  cpSync(join(ROOT, 'examples', 'reference'), dir, { recursive: true });
  writeFileSync(join(dir, 'policy.test.yaml'), file);
  const run = await osl(['policy', 'prove'], { cwd: dir });
  t.equal(run.code, 1, run.stderr);
  const written = page.replace(`$ osl policy prove\n${output}`, () => `$ osl policy prove\n${run.stdout}`);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, written);
  t.equal(readFileSync(PAGE, 'utf8'), written, 'OSL_WRITE_DOCS=1 writes it anew');
});

const MANIFEST = `version: 1
tenant: acme
connectors:
  app:
    kind: pglite
    tables:
      public.account:
        columns:
          id: { type: int4, nullable: false }
          owner: { type: text }
          region: { type: text }
          balance: { type: numeric, sensitivity: money }
          opened: { type: date }
          active: { type: bool, nullable: false }
entities:
  account:
    source: app.public.account
    primary_key: [id]
    columns: [id, owner, region, balance, opened, active]
`;

interface Case {
  readonly roles: string;
  readonly claim: string;
  readonly verdict: 'proved' | 'refuted' | 'unknown';
  readonly says?: RegExp;
}

/** Policies of one to three roles, claims about them, and the verdict. */
const CASES: Readonly<Record<string, Case>> = {
  'a tenant filter holds': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: region = attribute('region') }] }`,
    claim: `never: { role: a, sees: account, unless: region = attribute('region') }`,
    verdict: 'proved',
  },
  'a second grant opens it': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: region = attribute('region') }, { on: account, columns: [id], rows: active }] }`,
    claim: `never: { role: a, sees: account, unless: region = attribute('region') }`,
    verdict: 'refuted',
    says: /a\d+ sees account/,
  },
  'NOT of NULL shows nothing': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: not (region = 'eu') }] }`,
    claim: `never: { role: a, sees: account, unless: region is not null }`,
    verdict: 'proved',
  },
  'NULL is not in the other half either': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: region <> 'eu' }] }`,
    claim: `always: { role: a, sees: account.owner, when: region is distinct from 'eu' }`,
    verdict: 'refuted',
    says: /region = NULL/,
  },
  'a deny rule wins': {
    roles: `a: { grants: [{ on: account, columns: "*" }], deny: [{ on: account, columns: [owner] }] }`,
    claim: `never: { role: a, sees: account.owner }`,
    verdict: 'proved',
  },
  'a masked column is not seen': {
    roles: `a: { grants: [{ on: account, columns: "*" }] }`,
    claim: `never: { role: a, sees: account.balance }`,
    verdict: 'proved',
  },
  'but where a grant unmasks it': {
    roles: `a: { grants: [{ on: account, columns: "*" }, { on: account, columns: [balance], unmask: [money], rows: balance < 100 }] }`,
    claim: `never: { role: a, sees: account.balance, unless: balance <= 50 }`,
    verdict: 'refuted',
    says: /a\d+ sees account\.balance/,
  },
  'NaN is above every number, and infinity too': {
    roles: `a: { grants: [{ on: account, columns: "*", unmask: [money], rows: balance > 100 and balance <> 'Infinity' }] }`,
    claim: `never: { role: a, sees: account, unless: balance < 'Infinity' }`,
    verdict: 'refuted',
    says: /balance = NaN/,
  },
  'a narrower date': {
    roles: `a: { grants: [{ on: account, columns: [id, owner], rows: opened > '2026-01-01' }] }
  b: { grants: [{ on: account, columns: [id, owner, region], rows: opened >= '2026-01-01' }] }`,
    claim: `narrower: { role: a, than: b }`,
    verdict: 'proved',
  },
  'a wider date': {
    roles: `a: { grants: [{ on: account, columns: [id, owner], rows: opened >= '2026-01-01' }] }
  b: { grants: [{ on: account, columns: [id, owner], rows: opened > '2026-01-01' }] }`,
    claim: `narrower: { role: a, than: b }`,
    verdict: 'refuted',
    says: /opened = 2026-01-01/,
  },
  'the same, written differently': {
    roles: `a: { grants: [{ on: account, columns: [id], rows: "id in (1, 2, 3) and not (id = 2)" }] }
  b: { grants: [{ on: account, columns: [id], rows: id = 1 or id = 3 }] }`,
    claim: `same: { roles: [a, b] }`,
    verdict: 'proved',
  },
  'not the same at the border of a type': {
    roles: `a: { grants: [{ on: account, columns: [id], rows: id + 1 > 5 }] }
  b: { grants: [{ on: account, columns: [id], rows: id > 4 }] }`,
    claim: `narrower: { role: a, than: b }`,
    verdict: 'proved',
  },
  'tenants are apart': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: region = attribute('region') }] }
  b: { grants: [{ on: account, columns: [id], rows: region = attribute('region') and active }] }`,
    claim: `disjoint: { attribute: region }`,
    verdict: 'proved',
  },
  'tenants are not apart': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: region = attribute('region') or active }] }`,
    claim: `disjoint: { attribute: region, on: [account] }`,
    verdict: 'refuted',
    says: /a0 and a0 with different values of `region` see one row of account/,
  },
  'a function may have any value': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: lower(owner) = 'ann' }] }`,
    claim: `never: { role: a, sees: account, unless: owner = 'ann' }`,
    verdict: 'unknown',
    says: /the function lower/,
  },
  'but the same one in equal expressions': {
    roles: `a: { grants: [{ on: account, columns: "*", rows: lower(owner) = 'ann' and active }] }`,
    claim: `never: { role: a, sees: account, unless: lower(owner) = 'ann' }`,
    verdict: 'proved',
  },
  'a grant with conditions counts': {
    roles: `a: { grants: [{ on: account, columns: "*", when: { surfaces: [rest] } }] }`,
    claim: `never: { role: a, sees: account }`,
    verdict: 'refuted',
    says: /surfaces/,
  },
};

/** Roles of several cases in one policy: `a` of the third case becomes `a2`. */
function numbered(text: string, n: number): string {
  return text.replace(/\b(a|b)(?=\s*[:,\]}])/g, `$1${n}`);
}

/** A folder with the manifest, this policy and these claims. */
function folderOf(policy: string, claims: string): string {
  const dir = temporary();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), policy);
  writeFileSync(join(dir, 'policy.test.yaml'), `version: 1\nclaims:\n${claims}`);
  return dir;
}

async function proveAll(cases: readonly Case[]) {
  const roles = cases.flatMap(({ roles }, n) => numbered(roles, n).split('\n'));
  const names = roles.map((line) => line.trim().split(':')[0]);
  const policy = `version: 1\ntenant: acme\nsubjects:\n  user:x: { ceiling: [${names.join(', ')}], attributes: { region: eu } }\nroles:\n${roles.map((line) => `  ${line.trim()}\n`).join('')}masks: { money: redact }\n`;
  const claims = cases.map(({ claim }, n) => `  - { name: "${n}", ${numbered(claim, n)} }\n`);
  const dir = folderOf(policy, claims.join(''));
  const run = await osl(['policy', 'prove', '--no-lint'], { cwd: dir });
  const parts = run.stdout.split(/^(?=proved|REFUTED|unknown)/m);
  return { run, parts };
}

test('claims are proved, refuted or unknown', async (t) => {
  const all = Object.entries(CASES);
  const isAlone = ([, { claim }]: (typeof all)[number]): boolean => claim.startsWith('disjoint');
  const together = all.filter((one) => !isAlone(one));
  for (const some of [together, ...all.filter(isAlone).map((one) => [one])]) {
    const { run, parts } = await proveAll(some.map(([, one]) => one));
    for (const [n, [name, { verdict, says }]] of some.entries()) {
      const part = parts[n] ?? '';
      const word = verdict === 'refuted' ? 'REFUTED' : verdict;
      t.match(part, new RegExp(`^${word} `), `${name}: ${verdict}\n${run.stderr}`);
      if (says !== undefined) t.match(part, says, name);
    }
    const verdicts = new Set(some.map(([, one]) => one.verdict));
    t.equal(run.code, verdicts.has('refuted') ? 1 : verdicts.has('unknown') ? 3 : 0);
  }
});

test('roles may have the names that trials use', async (t) => {
  const dir = folderOf(
    `version: 1
tenant: acme
subjects: {}
roles:
  everything: { grants: [{ on: account, columns: "*", rows: region = 'eu' }] }
  matching: { grants: [{ on: account, columns: [id, balance], rows: region = 'eu' }] }
masks: { money: redact }
`,
    `  - never: { role: everything, sees: account.owner, unless: active }
  - never: { role: matching, sees: account, unless: active }
  - never: { role: everything, sees: account.balance }
`,
  );
  const run = await osl(['policy', 'prove', '--no-lint'], { cwd: dir });
  t.match(run.stdout, /^policy\.test\.yaml: 3 claims: 1 proved, 2 refuted, 0 unknown$/m);
});

test('rules that do nothing are noted', async (t) => {
  const dir = folderOf(
    `version: 1
tenant: acme
subjects: { user:x: { ceiling: [a] } }
roles:
  a:
    grants:
      - { on: account, columns: [id, owner], rows: id > 10 }
      - { on: account, columns: [id], rows: id > 20 }
      - { on: account, columns: [region], rows: id > 5 and id < 3 }
      - { on: account, columns: [id, balance], unmask: [money] }
masks: { money: redact }
`,
    '  - never: { role: a, sees: account.opened }\n',
  );
  const run = await osl(['policy', 'prove', '--json'], { cwd: dir });
  t.equal(run.code, 0, run.stderr);
  const { findings } = JSON.parse(run.stdout);
  writeFileSync(
    join(dir, 'policy.test.yaml'),
    `version: 1\nclaims:\n  - never: { role: a, sees: account.opened }\n  - name: no owner\n    never: { role: a, sees: account.owner }\n`,
  );
  const { runs } = JSON.parse((await osl(['policy', 'prove', '--sarif'], { cwd: dir })).stdout);
  const [refuted, , ...rules] = runs[0].results;
  t.match(refuted, {
    ruleId: 'claim_refuted',
    level: 'error',
    message: { text: /^no owner: a sees account\.owner; row of account: id = / },
    locations: [
      { physicalLocation: { artifactLocation: { uri: 'policy.test.yaml' }, region: { startLine: 4 } } },
    ],
  });
  t.match(rules.find((r: { ruleId: string }) => r.ruleId === 'empty_filter').locations[0].physicalLocation, {
    artifactLocation: { uri: 'policy.yaml' },
    region: { startLine: 9 },
  });
  t.strictSame(
    findings.map(({ code, rule }: { code: string; rule: string }) => `${code} ${rule}`).toSorted(),
    [
      'dead_grant roles.a.grants[1]',
      'empty_filter roles.a.grants[2]',
      'unseen_column roles',
      'unseen_column roles',
      'unseen_column roles',
      'unused_mask masks.money',
    ],
  );
});

test('a change of a policy is proved equal, narrower, wider or incomparable, by role and entity', async (t) => {
  const dir = temporary();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  const policy = (rows: readonly string[]): string =>
    `version: 1\ntenant: acme\nsubjects: {}\nroles:\n${rows
      .map((text, i) => `  role${i}: { grants: [{ on: account, columns: [id, owner], rows: "${text}" }] }\n`)
      .join('')}masks: {}\n`;
  const before = [
    'id in (1, 2)',
    "region = attribute('region')",
    'active',
    'id > 10',
    "lower(owner) = 'ann'",
  ];
  const after = [
    'id = 1 or id = 2',
    "region = attribute('region') or active",
    'active and id > 5',
    'id < 20',
    "upper(owner) = 'ANN'",
  ];
  writeFileSync(join(dir, 'policy.yaml'), policy(before));
  writeFileSync(join(dir, 'new.yaml'), policy(after));
  const flags = ['--manifest', 'manifest.yaml', '--policy', 'policy.yaml', '--prove'];
  const run = await osl(['policy', 'diff', 'new.yaml', ...flags, '--json'], { cwd: dir });
  t.equal(run.code, 0, run.stderr);
  const { proofs } = JSON.parse(run.stdout);
  t.strictSame(
    proofs.map(({ role, change }: { role: string; change: string }) => `${role} ${change}`),
    ['role0 equal', 'role1 wider', 'role2 narrower', 'role3 incomparable', 'role4 unknown'],
  );
  t.match(proofs[1].gain.row, { active: 'true' });
  const text = await osl(['policy', 'diff', 'new.yaml', ...flags], { cwd: dir });
  t.match(text.stdout, /^proved equal: 1 of 5 pairs of a role and an entity$/m);
  t.match(text.stdout, /^wider {8}role1 on account\n {11}role1 sees a row of account, and did not before$/m);
  t.match(text.stdout, /^unknown {6}role4 on account: it depends on the function/m);
});

test('a claim about nothing is refused with its name', async (t) => {
  const dir = temporary();
  cpSync(join(ROOT, 'examples', 'reference'), dir, { recursive: true });
  for (const [claim, why] of [
    ['never: { role: nobody, sees: customer }', /the policy has no role `nobody`/],
    [
      'never: { role: sales, sees: customer.nothing }',
      /there is no entity and no column `customer\.nothing`/,
    ],
    ["never: { role: sales, sees: customer, unless: regio = 'eu' }", /regio/],
    ['{ never: { role: sales, sees: customer }, same: { roles: [sales, analyst] } }', /exactly one of/],
  ] as const) {
    writeFileSync(join(dir, 'policy.test.yaml'), `version: 1\nclaims:\n  - ${claim}\n`);
    const run = await osl(['policy', 'prove'], { cwd: dir });
    t.match(run, { code: 2, stderr: why }, claim);
  }
});
