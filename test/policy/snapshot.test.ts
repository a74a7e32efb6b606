import { type Relation, ready } from 'osl-compiler';
import t from 'tap';
import type { AttributeScalar } from '../../policy/attributes.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import type { GrantDocument, PolicyDocument, RoleDocument } from '../../policy/document.js';
import { type PolicyProblem, PolicyProblems, ProblemList } from '../../policy/problems.js';
import { PredicateBinder } from '../../policy/role.js';
import { CATALOG, catalog, column, policy, relation } from './fixtures.js';

await ready();

interface Row {
  readonly name: string;
  readonly policy: PolicyDocument;
  /** Path, code and hint or offset of each problem, in document order. */
  readonly problems: readonly (readonly [path: string, code: string, hint?: string | number])[];
}

const numbered = (n: number): readonly string[] => Array.from({ length: n }, (_, i) => `r${i}`);
const role = (r: RoleDocument): PolicyDocument => policy({ roles: { analyst: r } });
const grant = (g: Partial<GrantDocument>): PolicyDocument =>
  role({ grants: [{ on: 'order', columns: '*', ...g }] });
const deny = (on: string, columns?: readonly string[]): PolicyDocument =>
  role({ grants: [], deny: [{ on, ...(columns === undefined ? {} : { columns }) }] });
const attribute = (value: unknown): PolicyDocument =>
  policy({ subjects: { alice: { ceiling: [], attributes: { region: value as string } } } }); // wrong on purpose

/** A subject with `value` of attribute `a`, in a role whose rows are those. */
function compared(rows: string, value: AttributeScalar | readonly AttributeScalar[]): PolicyDocument {
  return {
    ...grant({ rows }),
    subjects: { alice: { ceiling: ['analyst'], attributes: { a: value } } },
  };
}

/** Hint of the problem with the value of an attribute. */
const MISFITS = {
  fits: null,
  'no such value': [],
  'another type': ['put the value between quotes, as it is written in the database'],
} as const;

/** Rows, the value of the attribute, and how it fits. */
const FITTING: readonly (readonly [
  rows: string,
  value: AttributeScalar | readonly AttributeScalar[],
  misfit: keyof typeof MISFITS,
])[] = [
  ["quantity = attribute('a')", 7, 'fits'],
  ["quantity = attribute('a')", [7, '8'], 'fits'],
  ["quantity = attribute('a')", 7.5, 'no such value'],
  ["quantity = attribute('a')", 3_000_000_000, 'no such value'],
  ["quantity = attribute('a')", '3000000000', 'no such value'],
  ["quantity = attribute('a')", 'eu', 'no such value'],
  ["quantity = attribute('a')", true, 'no such value'],
  ["region = attribute('a')", 7, 'another type'],
  ["region = attribute('a')", '7', 'fits'],
  ["region = attribute('a')", false, 'another type'],
  ["(quantity > 5) = attribute('a')", true, 'fits'],
  ["(quantity > 5) = attribute('a')", 'yes', 'fits'],
  ["(quantity > 5) = attribute('a')", 1, 'another type'],
  ["quantity::numeric = attribute('a')", 7.5, 'fits'],
  ["region = attribute('a') and quantity = attribute('a')", '7', 'fits'],
  ["region = attribute('a') and quantity = attribute('a')", 7, 'another type'],
];

const TABLE: readonly Row[] = [
  {
    name: 'certificates name a subject, roles, and which certificates they mean',
    policy: policy({
      subjects: { alice: { ceiling: [] } },
      certificates: {
        good: { subject: 'alice', cn: 'alice' },
        stranger: { subject: 'bob', cn: 'bob' },
        anybody: { subject: 'alice', issuer: 'CN=Root' },
        role: { subject: 'alice', cn: 'a', acl_roles: ['analist'] },
      },
    }),
    problems: [
      ['certificates.stranger.subject', 'P0118'],
      ['certificates.anybody', 'P0118', 'say which: one of dn, cn, dns, uri, email'],
      ['certificates.role.acl_roles.0', 'P0101'],
    ],
  },
  { name: 'nothing at all is a policy that allows nothing', policy: policy({}), problems: [] },
  { name: 'a bridge takes grants', policy: grant({ on: 'order_tag' }), problems: [] },
  {
    name: 'a label that only `masks` names',
    policy: { ...grant({ unmask: ['hr'] }), masks: { hr: 'null' } },
    problems: [],
  },
  {
    name: 'unknown role in a ceiling',
    policy: policy({
      subjects: { alice: { ceiling: ['analyst', 'analist'] } },
      roles: { analyst: { grants: [] } },
    }),
    problems: [['subjects.alice.ceiling.1', 'P0101', 'perhaps you meant `analyst`']],
  },
  {
    name: 'a ceiling that no token can claim',
    policy: policy({
      subjects: { alice: { ceiling: numbered(257) }, bob: { ceiling: [...numbered(256), 'r0'] } },
      roles: Object.fromEntries(numbered(257).map((name) => [name, { grants: [] }])),
    }),
    problems: [['subjects.alice.ceiling', 'P0122', 'let one role have the grants of several']],
  },
  {
    name: 'unknown entity, with a suggestion',
    policy: grant({ on: 'oder' }),
    problems: [['roles.analyst.grants.0.on', 'P0102', 'perhaps you meant `order`']],
  },
  {
    name: 'unknown entity, nothing near',
    policy: grant({ on: 'zzz' }),
    problems: [['roles.analyst.grants.0.on', 'P0102']],
  },
  {
    name: 'an entity by its schema name is not a name',
    policy: grant({ on: 'osl.entities.order' }),
    problems: [['roles.analyst.grants.0.on', 'P0102']],
  },
  {
    name: 'entity __proto__',
    policy: grant({ on: '__proto__' }),
    problems: [['roles.analyst.grants.0.on', 'P0102']],
  },
  {
    name: 'unknown columns',
    policy: grant({ columns: ['id', 'regoin', 'nothing like it'] }),
    problems: [
      ['roles.analyst.grants.0.columns.1', 'P0103', 'perhaps you meant `region`'],
      ['roles.analyst.grants.0.columns.2', 'P0103'],
    ],
  },
  {
    name: 'column constructor',
    policy: grant({ columns: ['constructor'] }),
    problems: [['roles.analyst.grants.0.columns.0', 'P0103']],
  },
  {
    name: 'a grant of no column',
    policy: grant({ columns: [] }),
    problems: [['roles.analyst.grants.0.columns', 'P0106', 'all: `*`']],
  },
  {
    name: 'a permission to send what has no passages',
    policy: grant({ decode: true }),
    problems: [['roles.analyst.grants.0.decode', 'P0114', 'leave `decode` out']],
  },
  {
    name: 'a grant for aggregates alone',
    policy: grant({ min_group_size: 5 }),
    problems: [],
  },
  {
    name: 'a minimum of one is none',
    policy: grant({ min_group_size: 1 }),
    problems: [['roles.analyst.grants.0.min_group_size', 'P0111']],
  },
  {
    name: 'rules of figures without a minimum',
    policy: grant({ distinct: { region: 2 }, dominance: 60 }),
    problems: [['roles.analyst.grants.0.min_group_size', 'P0111']],
  },
  {
    name: 'rules of figures that mean nothing',
    policy: grant({ min_group_size: 5, distinct: { region: 1, regoin: 3 }, dominance: 100 }),
    problems: [
      ['roles.analyst.grants.0.dominance', 'P0111'],
      ['roles.analyst.grants.0.distinct.1', 'P0103', 'perhaps you meant `region`'],
      ['roles.analyst.grants.0.distinct', 'P0111'],
    ],
  },
  {
    name: 'units that are none, and dominance beside one',
    policy: {
      ...grant({ min_group_size: 5, dominance: 60 }),
      privacy_units: { order: 'team', oder: 'team', customer: 'town' },
    },
    problems: [
      ['privacy_units.oder', 'P0102', 'perhaps you meant `order`'],
      ['privacy_units.customer.0', 'P0103'],
      ['privacy_units.customer', 'P0111'],
      [
        'roles.analyst.grants.0.dominance',
        'P0111',
        'leave `dominance` out, or grant an entity that has one row for each of them',
      ],
    ],
  },
  {
    name: 'a minimum that is not a whole number',
    policy: grant({ min_group_size: 2.5 }),
    problems: [['roles.analyst.grants.0.min_group_size', 'P0111']],
  },
  {
    name: 'metrics without a minimum',
    policy: grant({ columns: [], metrics: [] }),
    problems: [
      ['roles.analyst.grants.0.metrics', 'P0111', 'without it a group of one shows its value'],
      ['roles.analyst.grants.0.metrics', 'P0111', 'leave `metrics` out for any aggregate'],
    ],
  },
  {
    name: 'a metric that is not of the entity',
    policy: grant({ metrics: ['nothing'], min_group_size: 5 }),
    problems: [['roles.analyst.grants.0.metrics.0', 'P0112']],
  },
  {
    name: 'unknown label',
    policy: grant({ unmask: ['ppi'] }),
    problems: [['roles.analyst.grants.0.unmask.0', 'P0104', 'perhaps you meant `pii`']],
  },
  {
    name: 'a masked label that is a slip',
    policy: policy({ masks: { ppi: 'redact' } }),
    problems: [['masks.ppi', 'P0104', 'perhaps you meant `pii`']],
  },
  {
    name: 'a masked label that no column has yet',
    policy: policy({ masks: { medical: 'redact', pii: 'redact' } }),
    problems: [],
  },
  {
    name: 'an unknown mask',
    policy: policy({ masks: { pii: 'blur' as 'redact' } }), // wrong on purpose
    problems: [['masks.pii', 'P0109', 'a mask is one of redact, null, hash, partial, year, deny']],
  },
  {
    name: 'predicate: an unknown column',
    policy: grant({ rows: "regoin = attribute('region')" }),
    problems: [['roles.analyst.grants.0.rows', 'P0105', 0]],
  },
  {
    name: 'predicate: an unknown column further on',
    policy: grant({ rows: "region = attribute('region') and taem is null" }),
    problems: [['roles.analyst.grants.0.rows', 'P0105', 33]],
  },
  ...["attribute('region') = region", "region <> attribute('region')", "attribute('region')"].map((rows) => ({
    name: `predicate: an attribute in another place: ${rows}`,
    policy: grant({ rows }),
    problems: [
      [
        'roles.analyst.grants.0.rows',
        'P0105',
        "write a column before it, as in region = attribute('region')",
      ] as const,
    ],
  })),
  {
    name: 'predicate: broken syntax',
    policy: grant({ rows: 'region = = 1' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105', 9]],
  },
  {
    name: 'predicate: empty',
    policy: grant({ rows: '' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: no truth value',
    policy: grant({ rows: 'quantity + 1' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: of mixed types',
    policy: grant({ rows: 'quantity = region' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: a subquery',
    policy: grant({ rows: 'id in (select id from customer)' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: another statement',
    policy: grant({ rows: 'true; drop table x' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: a way out of its parentheses',
    policy: grant({ rows: 'true) or (true' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: a clause behind it',
    policy: grant({ rows: 'true limit 1' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: a comment that hides its end',
    policy: grant({ rows: 'true) or true --' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: a parameter',
    policy: grant({ rows: 'id = $1' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'predicate: an aggregate',
    policy: grant({ rows: 'count(*) > 1' }),
    problems: [['roles.analyst.grants.0.rows', 'P0105']],
  },
  {
    name: 'deny: unknown entity',
    policy: deny('oder'),
    problems: [['roles.analyst.deny.0.on', 'P0102', 'perhaps you meant `order`']],
  },
  {
    name: 'deny: unknown column',
    policy: deny('order', ['emal']),
    problems: [['roles.analyst.deny.0.columns.0', 'P0103', 'perhaps you meant `email`']],
  },
  {
    name: 'deny: no column',
    policy: deny('order', []),
    problems: [['roles.analyst.deny.0.columns', 'P0106', 'leave `columns` out to deny all of it']],
  },
  ...[0, -1, 1.5, Number.NaN, 2_000_000].map((n) => ({
    name: `limit ${n}`,
    policy: policy({ limits: { query: n } }),
    problems: [['limits.query', 'P0107']] as const,
  })),
  { name: 'tenant without a name', policy: policy({ tenant: '' }), problems: [['tenant', 'P0108']] },
  {
    name: 'subject that no token can carry',
    policy: policy({ subjects: { 'a\nb': { ceiling: [] } } }),
    problems: [['subjects.a\nb', 'P0108']],
  },
  ...[null, { any: false }, [['eu']], Number.NaN, 2 ** 53, 1 / 3].map((value) => ({
    name: `attribute: ${JSON.stringify(value)}`,
    policy: attribute(value),
    problems: [
      ['subjects.alice.attributes.region', 'P0110', 'put a number of more than 15 digits between quotes'],
    ] as const,
  })),
  ...FITTING.map(([rows, value, misfit]): Row => {
    const hint = MISFITS[misfit];
    return {
      name: `attribute ${JSON.stringify(value)} under ${rows}: ${misfit}`,
      policy: compared(rows, value),
      problems: hint === null ? [] : [['subjects.alice.attributes.a', 'P0110', ...hint]],
    };
  }),
  {
    name: 'attribute: a type that only a role beyond the ceiling compares it with',
    policy: {
      ...compared("quantity = attribute('a')", 'eu'),
      subjects: { alice: { ceiling: [], attributes: { a: 'eu' } } },
    },
    problems: [],
  },
  {
    name: 'everything at once',
    policy: policy({
      tenant: '',
      subjects: { alice: { ceiling: ['x'] } },
      roles: {
        analyst: {
          grants: [
            { on: 'nope', columns: '*' },
            { on: 'order', columns: ['nope'], rows: 'nope = 1' },
          ],
        },
      },
      limits: { schema: 0 },
    }),
    problems: [
      ['tenant', 'P0108'],
      ['subjects.alice.ceiling.0', 'P0101'],
      ['roles.analyst.grants.0.on', 'P0102'],
      ['roles.analyst.grants.1.columns.0', 'P0103'],
      ['roles.analyst.grants.1.rows', 'P0105', 0],
      ['limits.schema', 'P0107'],
    ],
  },
];

t.test('what is wrong with a policy, and where', async (t) => {
  for (const row of TABLE) {
    const problems = problemsOf(row.policy);
    const shown = problems.map((p, i) => {
      const third = row.problems[i]?.[2];
      const fact = typeof third === 'number' ? p.offset : p.hint;
      return third === undefined ? [p.path.join('.'), p.code] : [p.path.join('.'), p.code, fact];
    });
    t.strictSame(shown, row.problems, row.name);
    for (const p of problems) t.ok(p.message.length > 0 && Object.isFrozen(p));
  }
});

function problemsOf(document: PolicyDocument): readonly PolicyProblem[] {
  try {
    compileSnapshot(document, CATALOG);
    return [];
  } catch (error) {
    if (error instanceof PolicyProblems) return error.problems;
    throw error;
  }
}

t.test('YAML keys that are JavaScript names are names like any other', async (t) => {
  const text = `{"version":1,"tenant":"acme","masks":{"__proto__":"deny"},
    "subjects":{"__proto__":{"ceiling":["constructor"],"attributes":{"__proto__":"eu"}}},
    "roles":{"constructor":{"grants":[{"on":"order","columns":["id"]}]}}}`;
  const snapshot = compileSnapshot(JSON.parse(text) as PolicyDocument, CATALOG); // as the YAML loader gives it
  t.strictSame([...snapshot.subjects.keys()], ['__proto__']);
  t.strictSame([...(snapshot.subjects.get('__proto__')?.attributes ?? [])], [['__proto__', ['eu']]]);
  t.strictSame([...snapshot.roles.keys()], ['constructor']);
  t.equal(snapshot.subjects.get('toString'), undefined);
});

t.test('the version is the content', async (t) => {
  const one = policy({ masks: { pii: 'redact', secret: 'deny' } });
  const same = policy({ masks: { secret: 'deny', pii: 'redact' } });
  const other = policy({ masks: { pii: 'null', secret: 'deny' } });
  const version = (d: PolicyDocument): string => compileSnapshot(d, CATALOG).version;
  t.match(version(one), /^[0-9a-f]{32}$/);
  t.equal(version(one), version(same), 'whatever the order of keys');
  t.not(version(one), version(other));
});

t.test('masks cover every label that occurs; what the policy does not name is denied', async (t) => {
  const { masks } = compileSnapshot(policy({ masks: { pii: 'redact' } }), CATALOG);
  t.strictSame(
    [...(masks.get('order') ?? [])],
    [
      ['pii', 'redact'],
      ['secret', 'deny'],
    ],
  );
  t.strictSame([...(masks.get('order_tag') ?? [])], []);
});

t.test('grant ids are stable, distinct and tell no role name', async (t) => {
  const document = policy({
    roles: {
      analyst: {
        grants: [
          { on: 'order', columns: '*' },
          { on: 'order', columns: ['id'] },
        ],
      },
      auditor: { grants: [{ on: 'order', columns: '*' }] },
    },
  });
  const ids = (): string[] =>
    [...compileSnapshot(document, CATALOG).roles.values()].flatMap((r) =>
      [...r.grants.values()].flat().map((g) => g.id),
    );
  t.equal(new Set(ids()).size, 3);
  t.strictSame(ids(), ids());
  for (const id of ids()) t.match(id, /^g[0-9a-f]{12}\.\d+$/);
});

t.test('a snapshot is frozen', async (t) => {
  const snapshot = compileSnapshot(grant({ rows: "region = attribute('region')" }), CATALOG);
  t.ok(Object.isFrozen(snapshot) && Object.isFrozen(snapshot.limits));
  for (const r of snapshot.roles.values()) {
    t.ok(Object.isFrozen(r));
    for (const list of r.grants.values())
      t.ok(Object.isFrozen(list) && list.every((g) => Object.isFrozen(g)));
  }
});

t.test('100,000 grants on 10,000 entities load within 2 s of a processor', async (t) => {
  const columns = [column('id', 'int4'), column('region', 'text'), column('email', 'text', 'pii')];
  const large = catalog(Array.from({ length: 10_000 }, (_, i) => relation(`e${i}`, columns)));
  const grants = (r: number): GrantDocument[] =>
    Array.from({ length: 1_000 }, (_, i) => ({
      on: `e${(r * 997 + i * 13) % 10_000}`,
      columns: i % 2 === 0 ? '*' : ['id', 'region'],
      ...(i % 3 === 0 ? { rows: "region = attribute('region')" } : {}),
    }));
  const roles = Object.fromEntries(
    Array.from({ length: 100 }, (_, r) => [`role${r}`, { grants: grants(r) }]),
  );
  const document = policy({ roles, masks: { pii: 'redact' } });
  // On a processor, and the best of three: other work on the machine only ever adds.
  const times = [1, 2, 3].map(() => {
    const start = process.cpuUsage();
    t.equal(compileSnapshot(document, large).roles.size, 100);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  });
  t.ok(Math.min(...times) < 2_000, times.map(Math.round).join(', '));
});

t.test('a row filter that two relations share is bound for each whose column is stored otherwise', (t) => {
  const state = {
    name: 'state',
    physical: 'state',
    type: 'text',
    description: null,
    nullable: true,
  } as const;
  const rest = { sensitivity: null, keyDomain: null };
  const over = (name: string, stored?: string): Relation => ({
    kind: 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 's',
    table: name,
    columns: [{ ...state, ...rest, ...(stored !== undefined && { stored }) }],
    primaryKey: [],
    sealedKeys: [],
  });
  const predicates = new PredicateBinder(new ProblemList());
  const bound = (of: Relation): string => JSON.stringify(predicates.bind("state = 'open'", of, []));
  t.notMatch(bound(over('texts')), '"stored"');
  t.match(bound(over('enums', 'enum s.state')), '"stored":"enum s.state"');
  t.equal(bound(over('others')), bound(over('texts')));
  t.end();
});
