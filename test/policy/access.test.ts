import { type Expr, ready } from 'osl-compiler';
import t from 'tap';
import { effectiveAccess, isEmpty } from '../../policy/access.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import type { PolicyDocument, SubjectDocument } from '../../policy/document.js';
import { PolicyProblems } from '../../policy/index.js';
import { parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY } from '../language/forms/articles.js';
import { CATALOG, catalog, ORDER, policy } from './fixtures.js';
import { type Row, show, truthOf } from './rows.js';
import { identity } from './tokens.js';

await ready();

const ROLES: PolicyDocument['roles'] = {
  reader: { grants: [{ on: 'order', columns: ['id', 'region'] }] },
  contact: { grants: [{ on: 'order', columns: ['id', 'email'], unmask: ['pii'] }] },
  regional: { grants: [{ on: 'order', columns: '*', rows: "region = attribute('region')" }] },
  elsewhere: { grants: [{ on: 'order', columns: '*', rows: "not (region = attribute('region'))" }] },
  crm: { grants: [{ on: 'customer', columns: '*' }] },
  contractor: { grants: [], deny: [{ on: 'order', columns: ['email'] }] },
  outsider: { grants: [], deny: [{ on: 'order' }] },
};
const ALL = Object.keys(ROLES);

const SUBJECTS: Readonly<Record<string, SubjectDocument>> = {
  alice: {
    ceiling: ALL,
    admin: ['TENANT_ADMIN', 'AUDITOR'],
    attributes: { region: ['eu', 'us'], team: 'red' },
  },
  eu_agent: {
    ceiling: ['reader', 'regional', 'elsewhere'],
    admin: ['AUDITOR'],
    attributes: { region: 'eu' },
  },
  any_agent: { ceiling: ['reader', 'regional', 'elsewhere'], attributes: { region: { any: true } } },
  lost_agent: { ceiling: ['reader', 'regional', 'elsewhere'] },
  none_agent: { ceiling: ['regional'], attributes: { region: [] } },
  powerless: { ceiling: [] },
};

const SNAPSHOT = compileSnapshot(
  policy({ roles: ROLES, subjects: SUBJECTS, masks: { pii: 'redact' } }),
  CATALOG,
);
const access = (chain: readonly string[], aclRoles: readonly string[], roles: readonly string[] = []) =>
  effectiveAccess(identity({ chain, aclRoles, roles }), SNAPSHOT, CATALOG);

t.test('data roles: what the token claims, below the ceiling of every subject', async (t) => {
  const rows: readonly [string, readonly string[], readonly string[], readonly string[]][] = [
    ['one subject', ['alice'], ['reader', 'crm'], ['crm', 'reader']],
    ['a role that the token does not claim', ['alice'], ['reader'], ['reader']],
    ['a role above the ceiling', ['eu_agent'], ['reader', 'crm'], ['reader']],
    ['a role that does not exist', ['alice'], ['root', 'reader'], ['reader']],
    ['the agent narrows alice', ['alice', 'eu_agent'], ['reader', 'crm'], ['reader']],
    ['alice does not widen the agent', ['eu_agent', 'alice'], ['reader', 'crm'], ['reader']],
    ['an unknown subject ends it', ['alice', 'mallory'], ['reader'], []],
    ['also at the root', ['mallory', 'alice'], ['reader'], []],
    ['also in the middle', ['alice', 'mallory', 'alice'], ['reader'], []],
    ['a subject without a ceiling', ['alice', 'powerless'], ALL, []],
    ['no claim', ['alice'], [], []],
    ['a subject called __proto__', ['__proto__'], ['reader'], []],
    ['a role called constructor', ['alice'], ['constructor'], []],
    ['a claim twice', ['alice'], ['reader', 'reader'], ['reader']],
  ];
  for (const [name, chain, claimed, effective] of rows) {
    t.strictSame([...access(chain, claimed).dataRoles], effective, name);
  }
});

t.test('admin roles: only `roles`, below every admin ceiling', async (t) => {
  const rows: readonly [string, readonly string[], readonly string[], readonly string[]][] = [
    ['one subject', ['alice'], ['TENANT_ADMIN'], ['TENANT_ADMIN']],
    ['not claimed', ['alice'], [], []],
    ['above the ceiling', ['alice'], ['ROOT'], []],
    ['the agent narrows alice', ['alice', 'eu_agent'], ['TENANT_ADMIN', 'AUDITOR'], ['AUDITOR']],
    ['an agent without an admin ceiling', ['alice', 'any_agent'], ['TENANT_ADMIN'], []],
    ['an unknown subject', ['alice', 'mallory'], ['TENANT_ADMIN'], []],
  ];
  for (const [name, chain, claimed, effective] of rows) {
    t.strictSame([...access(chain, ['reader'], claimed).adminRoles], effective, name);
  }
  t.strictSame([...access(['alice'], ['TENANT_ADMIN']).adminRoles], [], 'acl_roles give no admin role');
  t.strictSame([...access(['alice'], [], ['reader']).dataRoles], [], 'roles give no data role');
});

t.test('what a relation shows', async (t) => {
  const masks = [
    ['pii', 'redact'],
    ['secret', 'deny'],
  ];
  const rows: readonly [string, readonly string[], unknown][] = [
    ['no grant: it does not exist', ['crm'], null],
    ['one grant', ['reader'], { grants: ['id,region'], masks, denied: [] }],
    ['two grants stay two', ['reader', 'contact'], { grants: ['id,email', 'id,region'], masks, denied: [] }],
    [
      'a denied column stays in the grant',
      ['contact', 'contractor'],
      { grants: ['id,email'], masks, denied: ['email'] },
    ],
    ['a denied relation', ['reader', 'outsider'], null],
    ['a denied relation and column', ['reader', 'outsider', 'contractor'], null],
    ['a deny rule grants nothing', ['outsider'], null],
  ];
  for (const [name, roles, shown] of rows) t.strictSame(show(access(['alice'], roles), 'order'), shown, name);
});

t.test(
  'a denied relation is not a relation, but is known to be denied where a grant covers it',
  async (t) => {
    const all = ORDER.columns.map((c) => c.name);
    const each: PolicyDocument['roles'] = {
      ...ROLES,
      piecemeal: { grants: [], deny: all.map((column) => ({ on: 'order', columns: [column] })) },
    };
    const snapshot = compileSnapshot(
      policy({ roles: each, subjects: { ...SUBJECTS, alice: { ceiling: Object.keys(each) } }, masks: {} }),
      CATALOG,
    );
    const under = (...aclRoles: string[]) =>
      effectiveAccess(identity({ chain: ['alice'], aclRoles }), snapshot, CATALOG);
    for (const rule of ['outsider', 'piecemeal']) {
      const denied = under('reader', 'crm', rule);
      t.strictSame([...denied.relations.keys()], ['customer'], rule);
      t.strictSame([...(denied.denied?.keys() ?? [])], ['order'], rule);
      for (const g of denied.denied?.get('order')?.grants ?? [])
        t.match(
          g.filter,
          { kind: 'boolean', value: false },
          'and should anything read it, there are no rows',
        );
      t.strictSame([...(under('crm', rule).denied?.keys() ?? [])], [], 'what no grant covers does not exist');
    }
  },
);

t.test('an exchanged token cannot leave out what the policy denies its subject by name', async (t) => {
  const rule = {
    name: 'people',
    issuer: 'https://idp.example',
    subject: '{sub}',
    ceiling: ['reader', 'contact'],
  };
  const subjects = { ann: { ceiling: ['reader', 'contact', 'contractor'] } };
  const snapshot = compileSnapshot(
    policy({ roles: ROLES, subjects, exchange: [rule], masks: { pii: 'redact' } }),
    CATALOG,
  );
  const [made] = snapshot.exchange.byId.keys();
  const denied = (subject: string): unknown => {
    const aclRoles = ['reader', 'contact'];
    const members = [{ rule: made ?? null, roles: aclRoles, attributes: new Map() }];
    return show(
      effectiveAccess(identity({ chain: [subject], aclRoles, members }), snapshot, CATALOG),
      'order',
    )?.denied;
  };
  t.strictSame(denied('ann'), ['email']);
  t.strictSame(denied('bob'), [], 'whom the policy does not list');
});

t.test('an agent whose ceiling lacks a role does not shake off its deny rules', async (t) => {
  const rules = (chain: readonly string[]) =>
    show(access(chain, ['regional', 'contractor']), 'order')?.denied;
  t.strictSame(rules(['alice']), ['email']);
  t.strictSame(rules(['alice', 'eu_agent']), ['email']);
  t.strictSame(rules(['eu_agent']), [], 'a role that nobody in the chain can have denies nothing');
  const whole = (chain: readonly string[]) => [
    ...(access(chain, ['regional', 'outsider']).denied?.keys() ?? []),
  ];
  t.strictSame(whole(['alice']), ['order']);
  t.strictSame(whole(['alice', 'eu_agent']), ['order']);
  t.strictSame(whole(['eu_agent']), []);
});

t.test('row filters look at every subject of the chain', async (t) => {
  const eu: Row = { region: 'eu', team: null };
  const us: Row = { region: 'us', team: null };
  const ap: Row = { region: 'ap', team: null };
  const nowhere: Row = { region: null, team: null };
  const regions = (chain: readonly string[], role: string): string => {
    const found = access(chain, [role]);
    const filter: Expr | null = found.relations.get('order')?.grants[0]?.filter ?? null;
    const seen = (row: Row): boolean => filter !== null && truthOf(filter, row, found) === true;
    return [eu, us, ap, nowhere].flatMap((r) => (seen(r) ? [r.region ?? 'null'] : [])).join(' ');
  };
  const rows: readonly [string, readonly string[], string, string][] = [
    ['values', ['eu_agent'], 'regional', 'eu'],
    ['a list of values', ['alice'], 'regional', 'eu us'],
    ['a chain: both must hold', ['alice', 'eu_agent'], 'regional', 'eu'],
    ['any', ['any_agent'], 'regional', 'eu us ap null'],
    ['any leaves the other as it is', ['alice', 'any_agent'], 'regional', 'eu us'],
    ['missing', ['lost_agent'], 'regional', ''],
    ['missing in one subject', ['alice', 'lost_agent'], 'regional', ''],
    ['missing beside any', ['any_agent', 'lost_agent'], 'regional', ''],
    ['an empty list', ['none_agent'], 'regional', ''],
    ['negated: values', ['eu_agent'], 'elsewhere', 'us ap'],
    ['negated: a chain', ['alice', 'eu_agent'], 'elsewhere', 'ap'],
    ['negated: missing is still nothing', ['lost_agent'], 'elsewhere', ''],
    ['negated: missing in one subject is still nothing', ['alice', 'lost_agent'], 'elsewhere', ''],
    ['negated: any', ['any_agent'], 'elsewhere', ''],
  ];
  for (const [name, chain, role, seen] of rows) t.equal(regions(chain, role), seen, name);
});

t.test('attribute values', async (t) => {
  const who = identity({ chain: ['alice', 'any_agent', 'mallory'] });
  const { attributeValues: values } = effectiveAccess(who, SNAPSHOT, CATALOG);
  t.strictSame(values(0, 'region'), ['eu', 'us']);
  t.strictSame(values(0, 'team'), ['red']);
  t.strictSame(values(0, 'planet'), [], 'missing');
  t.strictSame(values(0, '__proto__'), [], 'a name of JavaScript');
  t.strictSame(values(1, 'region'), [], 'any');
  t.strictSame(values(2, 'region'), [], 'an unknown subject');
  t.strictSame(values(3, 'region'), [], 'beyond the chain');
});

t.test('equal signatures mean equal rights', async (t) => {
  const signature = (chain: readonly string[], roles: readonly string[]) => access(chain, roles).signature;
  const alice = signature(['alice'], ['regional', 'reader']);
  t.equal(
    signature(['alice'], ['reader', 'regional', 'nothing']),
    alice,
    'order and idle claims do not count',
  );
  t.equal(signature(['eu_agent'], ['reader']), signature(['none_agent', 'eu_agent'].slice(1), ['reader']));
  t.not(signature(['alice'], ['reader']), alice, 'roles count');
  t.not(signature(['eu_agent'], ['reader']), signature(['any_agent'], ['reader']), 'any is not a list');
  t.not(signature(['eu_agent'], ['reader']), signature(['lost_agent'], ['reader']), 'nor is missing');
  t.not(
    signature(['alice', 'eu_agent'], ['reader']),
    signature(['eu_agent', 'alice'], ['reader']),
    'nor its place',
  );
  t.not(signature(['alice'], ['reader', 'contractor']), signature(['alice'], ['reader']), 'deny rules count');
  const first = access(['eu_agent'], ['reader']);
  t.equal(
    access(['eu_agent'], ['reader', 'crm']).relations,
    first.relations,
    'and what they stand for is shared',
  );
});

t.test('versions are part of the signature', async (t) => {
  const who = identity({ chain: ['alice'], aclRoles: ['reader'] });
  const document = policy({ roles: ROLES, subjects: SUBJECTS, masks: { pii: 'null' } });
  const next = catalog([...CATALOG.relations.values()], 'catalog-2');
  const of = (d: PolicyDocument, c = CATALOG) => effectiveAccess(who, compileSnapshot(d, c), c);
  t.not(of(document).signature, access(['alice'], ['reader']).signature);
  t.not(of(document).signature, of(document, next).signature);
  t.equal(of(document).signature, of(document).signature);
  t.equal(of(document).policyVersion, compileSnapshot(document, CATALOG).version);
});

t.test('one identity is evaluated once per snapshot', async (t) => {
  const who = identity({ chain: ['alice'], aclRoles: ['reader'] });
  t.equal(effectiveAccess(who, SNAPSHOT, CATALOG), effectiveAccess(who, SNAPSHOT, CATALOG));
  const empty = compileSnapshot(policy({}), CATALOG);
  t.ok(isEmpty(effectiveAccess(who, empty, CATALOG)), 'a new policy counts at once');
  t.notOk(isEmpty(effectiveAccess(who, SNAPSHOT, CATALOG)));
});

t.test('of the attributes that were read from entities, only the last ones are kept', async (t) => {
  const who = identity({ chain: ['alice'], aclRoles: ['reader'] });
  const of = (team: string) => {
    const read = { key: team, subjects: [new Map([['team', [team]]])] };
    return effectiveAccess(who, SNAPSHOT, CATALOG, undefined, read);
  };
  const first = of('red');
  t.equal(of('red'), first);
  t.strictSame(of('blue').attributeValues(0, 'team'), ['blue']);
  t.not(of('red'), first);
  t.equal(effectiveAccess(who, SNAPSHOT, CATALOG).readAttributes, null);
});

t.test('another tenant, another catalog', async (t) => {
  const who = identity({ chain: ['alice'], aclRoles: ['reader'], tenant: 'globex' });
  t.throws(() => effectiveAccess(who, SNAPSHOT, CATALOG), { code: 'E3001' });
  const next = catalog([], 'catalog-2');
  t.throws(() => effectiveAccess(identity({ chain: ['alice'] }), SNAPSHOT, next), { name: 'InternalError' });
});

t.test('the relations of an access behave as a map', async (t) => {
  const { relations } = access(['alice'], ['reader', 'crm']);
  t.equal(relations.size, 2);
  t.strictSame([...relations.keys()].sort(), ['customer', 'order']);
  t.equal([...relations.values()].length, 2);
  t.strictSame(
    [...relations].map(([name]) => name),
    [...relations.keys()],
  );
  t.equal(relations.get('order'), relations.get('order'));
  t.equal(relations.get('order_tag'), undefined);
  t.equal(relations.has('order_tag'), false);
});

/** A role that may read a facet, of which no version hides what it may not read, is refused when the policy loads. */

await ready();

function problemsOf(manifest: string, policy: string): readonly string[] {
  const { catalog } = parseManifest(manifest, 'manifest.yaml');
  try {
    compileSnapshot(parsePolicyDocument(policy, 'policy.yaml').document, catalog);
    return [];
  } catch (error) {
    if (error instanceof PolicyProblems)
      return error.problems.map((p) => `${p.path.join('.')} ${p.code} ${p.hint}`);
    throw error;
  }
}

/** Versions that leave out one label each, and none that leaves out both. */
const APART = ARTICLES_MANIFEST.replace(
  /masked: \{ redact: \[pii, person\][^}]*\}/,
  'without_pii: { redact: [pii] }\n      without_person: { redact: [person] }',
);

t.test('a version that hides enough will do', async (t) => {
  t.same(problemsOf(ARTICLES_MANIFEST, ARTICLES_POLICY), []);
});

t.test('where none hides enough, each role that hears so is named', async (t) => {
  t.not(APART, ARTICLES_MANIFEST);
  const hint = 'unmask more, or declare a version that redacts person and pii';
  t.same(problemsOf(APART, ARTICLES_POLICY), [
    `roles.masked P0116 ${hint}`,
    `roles.regional P0116 ${hint}`,
    `roles.german P0116 ${hint}`,
  ]);
});
