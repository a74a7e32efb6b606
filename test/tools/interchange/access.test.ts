import t, { test } from 'tap';
import { manifestText, policyText } from '../../../interchange/index.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { SHOP_SQL } from './shop.js';
import { imported, reportOf } from './support.js';

t.setTimeout(600_000);

/** The sales of the shop under an access policy; measures are such that every column of theirs is a dimension. */
function cube(policies: string, measures = '[{ name: takings, type: sum, sql: "{total}" }]'): string {
  return `
cubes:
  - name: sale
    sql_table: shop.sales
    dimensions:
      - { name: sale_no, sql: sale_no, type: number, primary_key: true, public: true }
      - { name: state, sql: state, type: string }
      - { name: total, sql: total, type: number }
      - { name: sold_on, sql: sold_on, type: time }
      - { name: pieces, sql: pieces, type: number, public: false }
    measures: ${measures}
    access_policy:
${policies.replace(/^/gm, '      ')}
`;
}

function rolesOf(text: string): unknown {
  return JSON.parse(JSON.stringify(imported('cube', text).policy.roles));
}

const ALL = ['sale_no', 'state', 'total', 'sold_on'];

test('what a grant can say exactly becomes a role that nobody has', async (t) => {
  const text = cube(`- { group: books, member_level: { includes: "*" } }
- groups: [north, south]
  member_level: { excludes: [total, takings] }
  row_level:
    filters:
      - { member: state, operator: equals, values: [paid, "it's open"] }
      - or:
          - { member: "{CUBE.sale_no}", operator: gte, values: [12] }
          - { member: sale.total, operator: notSet }
- { role: own, row_level: { filters: [{ member: state, operator: equals, values: ["{ userAttributes.state }"] }] } }
- { group: other, row_level: { filters: [{ member: state, operator: notEquals, values: [void] }] } }
- { group: everything, row_level: { allow_all: true } }`);
  const rows = "(state in ('paid', 'it''s open')) and ((sale_no >= 12) or (total is null))";
  t.same(rolesOf(text), {
    books: { grants: [{ on: 'sale', columns: ALL }] },
    north: { grants: [{ on: 'sale', columns: ['sale_no', 'state', 'sold_on'], rows }] },
    south: { grants: [{ on: 'sale', columns: ['sale_no', 'state', 'sold_on'], rows }] },
    own: { grants: [{ on: 'sale', columns: ALL, rows: "state = attribute('state')" }] },
    other: { grants: [{ on: 'sale', columns: ALL, rows: "state not in ('void') or state is null" }] },
    everything: { grants: [{ on: 'sale', columns: ALL }] },
  });
  t.same(imported('cube', text).policy.subjects, {});
});

/** Policies that a grant cannot say: each must give nobody anything, and be reported as being about access. */
const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ['no group', '- { member_level: { includes: "*" } }', /names no group/],
  ['conditions', '- { group: g, conditions: [{ if: "{ userAttributes.ok }" }] }', /under conditions/],
  ['masks alone', '- { group: g, member_masking: { includes: [total] } }', /without saying which/],
  [
    'a key that is not known',
    '- { group: g, member_level: { includes_members: [total] } }',
    /no counterpart/,
  ],
  ['no rows', '- { group: g, row_level: { allow_all: false } }', /no rows/],
  ['an empty row level', '- { group: g, row_level: {} }', /says nothing/],
  ['an empty list of filters', '- { group: g, row_level: { filters: [] } }', /empty/],
  [
    'all rows and filters',
    '- { group: g, row_level: { allow_all: true, filters: [{ member: state, operator: set }] } }',
    /filters them too/,
  ],
  [
    'an unknown row level',
    '- { group: g, row_level: { allow_all: true, sql: "1 = 1" } }',
    /does not|no counterpart/,
  ],
  [
    'text search',
    '- { group: g, row_level: { filters: [{ member: state, operator: contains, values: [p] }] } }',
    /cannot be said exactly/,
  ],
  [
    'times',
    '- { group: g, row_level: { filters: [{ member: sold_on, operator: afterDate, values: ["2026-01-01"] }] } }',
    /cannot be said exactly/,
  ],
  [
    'an evaluated value',
    '- { group: g, row_level: { filters: [{ member: state, operator: equals, values: ["{ fn() }"] }] } }',
    /evaluated/,
  ],
  [
    'a negated attribute',
    '- { group: g, row_level: { filters: [{ member: state, operator: notEquals, values: ["{ userAttributes.s }"] }] } }',
    /attribute/,
  ],
  [
    'a number that is none',
    '- { group: g, row_level: { filters: [{ member: total, operator: equals, values: ["1 or true"] }] } }',
    /is not a number/,
  ],
  [
    'a member of another cube',
    '- { group: g, row_level: { filters: [{ member: client.area, operator: set }] } }',
    /not a dimension/,
  ],
  [
    'a hidden dimension',
    '- { group: g, row_level: { filters: [{ member: pieces, operator: set }] } }',
    /not a column here/,
  ],
  [
    'only a measure, without its columns',
    '- { group: g, member_level: { includes: [takings] } }',
    /no column of it/,
  ],
  [
    'columns only of a measure that is withheld',
    '- { group: g, member_level: { includes: [total] } }',
    /no column/,
  ],
  ['no column', '- { group: g, member_level: { includes: [] } }', /no column/],
];

for (const [name, policy, reason] of REFUSED) {
  test(`an access policy that a grant cannot say gives nothing: ${name}`, async (t) => {
    const text = cube(policy);
    t.same(rolesOf(text), {});
    t.ok(
      reportOf(imported('cube', text)).some((l) => /lost!: .*grants nobody/.test(l) && reason.test(l)),
      reportOf(imported('cube', text)).join('\n'),
    );
  });
}

/** Policies that a grant can say only more narrowly: what it grants, and what the report says about the rest. */
const NARROWER: readonly (readonly [string, string, object, RegExp])[] = [
  [
    'a measure over a column that is not a dimension is not granted by granting the column',
    '- { group: g }',
    { g: { grants: [{ on: 'sale', columns: ALL }] } },
    /lost!: measure `most` is granted without the columns that it is made of/,
  ],
  [
    'a measure without its columns is left out',
    '- { group: g, member_level: { includes: [state, takings] } }',
    { g: { grants: [{ on: 'sale', columns: ['state'] }] } },
    /lost!: measure `takings` is granted without the columns/,
  ],
  [
    'columns that would give a measure that is withheld are left out',
    '- { group: g, member_level: { includes: [state, total] } }',
    { g: { grants: [{ on: 'sale', columns: ['state'] }] } },
    /lost!: column `total` is left out of the grant: measure `takings` is not granted/,
  ],
  [
    'a computed dimension that is withheld is not given by its columns',
    '- { group: g, member_level: { excludes: [big, most] } }',
    { g: { grants: [{ on: 'sale', columns: ['state', 'sold_on'] }] } },
    /lost!: column `sale_no` is left out of the grant: dimension `big` is not granted/,
  ],
];

for (const [name, policy, roles, reason] of NARROWER) {
  test(`a grant is narrower where it cannot say the same: ${name}`, async (t) => {
    const text = cube(
      policy,
      '[{ name: takings, type: sum, sql: "{total}" }, { name: most, type: max, sql: "{CUBE}.pieces" }]',
    ).replace(
      '    measures:',
      '      - { name: big, sql: "{total} > {sale_no}", type: boolean }\n    measures:',
    );
    t.same(rolesOf(text), roles);
    t.match(reportOf(imported('cube', text)).join('\n'), reason);
  });
}

test('a policy for everybody is a role that no group has, and attributes stand beside values', async (t) => {
  const values = '["{ userAttributes.area }", open, "{ securityContext.other }", void]';
  const text =
    cube(`- { group: "*", row_level: { filters: [{ member: state, operator: equals, values: ${values} }] } }
- { group: everyone }`);
  const rows = "state in ('open', 'void') or state = attribute('area') or state = attribute('other')";
  t.same(rolesOf(text), {
    everyone_2: { grants: [{ on: 'sale', columns: ALL, rows }] },
    everyone: { grants: [{ on: 'sale', columns: ALL }] },
  });
});

test('a mask is a label of its column, which only grants with its values unmask', async (t) => {
  const text = cube(`- group: books
  member_level: { includes: "*" }
- group: clerks
  member_level: { includes: [sale_no, state] }
  member_masking: { includes: [total, sold_on] }
  row_level: { filters: [{ member: total, operator: gt, values: [5] }] }
- group: guests
  member_level: { includes: [state] }
  member_masking: { excludes: [total, takings] }
- group: shown
  member_level: { includes: [state, takings] }
  member_masking: { includes: "*" }`)
    .replace('name: total, sql', 'name: total, mask: -1, sql')
    .replace('name: state, sql', 'name: state, mask: { sql: "\'***\'" }, sql');
  const { policy, document } = imported('cube', text);
  t.same(JSON.parse(JSON.stringify(policy.roles)), {
    books: { grants: [{ on: 'sale', columns: ALL, unmask: ['sale_total', 'sale_sold_on'] }] },
    clerks: { grants: [{ on: 'sale', columns: ALL, rows: 'total > 5' }] },
    guests: { grants: [{ on: 'sale', columns: ['state', 'sold_on'] }] },
    shown: { grants: [{ on: 'sale', columns: ['state', 'sold_on'] }] },
  });
  t.same({ ...policy.masks }, { sale_total: 'null', sale_sold_on: 'null' });
  t.match(document.connectors['db']?.tables['shop.sales']?.columns, {
    total: { sensitivity: 'sale_total' },
    sold_on: { sensitivity: 'sale_sold_on' },
  });
  const report = reportOf(imported('cube', text)).join('\n');
  t.match(report, /approximated!: where the column is masked its value is NULL/);
  t.match(report, /lost: no access policy that is a grant masks it/);
  t.match(report, /lost!: column `sale_no` is left out of the grant: the column of a key or a link/);
  t.match(
    report,
    /lost!: column `total` is left out of the grant: measure `takings` is granted with its values/,
  );
});

test('a mask counts in every cube over the table, and never shows a column that another dimension shows', async (t) => {
  const text = `
cubes:
  - name: open
    sql_table: shop.sales
    dimensions:
      - { name: sale_no, sql: sale_no, type: number, primary_key: true, public: true }
      - { name: amount, sql: total, type: number }
    access_policy: [{ group: owners }]
  - name: closed
    sql_table: sales
    dimensions:
      - { name: sale_no, sql: sale_no, type: number, primary_key: true, public: true }
      - { name: total, sql: total, type: number }
      - { name: same, sql: "{total}", type: number }
      - { name: state, sql: state, type: string }
    access_policy:
      - { group: clerks, member_level: { includes: [sale_no] }, member_masking: { includes: [total] } }
      - { group: books, member_level: { includes: [same] }, member_masking: { includes: [total, state] } }
`;
  const { policy, document } = imported('cube', text, { schema: 'shop' });
  t.match(document.connectors['db']?.tables['shop.sales']?.columns, {
    total: { sensitivity: 'closed_total' },
    state: { sensitivity: 'closed_state' },
  });
  t.same(JSON.parse(JSON.stringify(policy.roles)), {
    owners: { grants: [{ on: 'open', columns: ['sale_no', 'amount'], unmask: ['closed_total'] }] },
    clerks: { grants: [{ on: 'closed', columns: ['sale_no', 'total'] }] },
    books: { grants: [{ on: 'closed', columns: ['same', 'state'], unmask: ['closed_total'] }] },
  });
});

test('policies of views, of cubes that are lost and of those without a key are reported', async (t) => {
  const text = `
cubes:
  - { name: a, sql: "select 1", access_policy: [{ group: g }] }
  - { name: b, extends: a, access_policy: [{ group: g }] }
  - { name: c, sql_table: s.c, dimensions: [{ name: x, sql: x, type: string }], access_policy: [{ group: g }] }
views:
  - { name: v, cubes: [], access_policy: [{ group: g, member_level: { includes: "*" } }] }
`;
  t.same(rolesOf(text), {});
  t.same(reportOf(imported('cube', text)).filter((l) => / lost!: /.test(l)).length, 4);
});

test('on the real engine a role sees what its group saw there, and no more', async (t) => {
  const model = imported(
    'cube',
    cube(`- group: paid
  member_level: { excludes: [sold_on] }
  row_level: { filters: [{ member: state, operator: equals, values: [paid] }] }`),
    { kind: 'pglite', tenant: 'shop' },
  );
  const policy = {
    ...model.policy,
    subjects: { 'user:paid': { ceiling: ['paid'] }, 'user:none': { ceiling: [] } },
  };
  const rest = await startRest({
    manifest: manifestText(model.document),
    policy: policyText(policy),
    script: SHOP_SQL,
  });
  t.teardown(() => rest.close());
  const rows = await rest.ask('user:paid', { metrics: ['takings'] });
  t.match(rows.json()['rows'], [{ takings: '170.75' }], rows.text);
  const hidden = await rest.ask('user:paid', { osql: 'select sold_on from osl.entities.sale' });
  t.match(hidden.json(), { code: 'E0512' });
  const none = await rest.ask('user:none', { metrics: ['takings'] });
  t.not(none.status, 200);
});
