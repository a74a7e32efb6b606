import { ready } from 'osl-compiler';
import { test } from 'tap';
import { lookOf, tenantRank, viewFlows } from '../../../cli/proposal/index.js';
import type { UpstreamRelation } from '../../../src/model/discovery/index.js';

await ready();

function relation(name: string, columns: string, definition: string | null = null): UpstreamRelation {
  return {
    schema: 's',
    name,
    kind: definition === null ? 'table' : 'view',
    comment: null,
    definition,
    inherited: false,
    rowEstimate: null,
    columns: columns.split(' ').map((column) => {
      const facts = {
        type: 'text',
        typeOid: 25,
        stored: null,
        nullable: true,
        filled: false,
        readable: true,
      };
      return { name: column, comment: null, modifier: -1, labels: null, ...facts };
    }),
    primaryKey: null,
    uniqueKeys: [],
    foreignKeys: [],
  };
}

const TABLES = [relation('person', 'id name mail'), relation('note', 'id person_id body')];

/** What each column of a view is made of. */
function flowsOf(columns: string, definition: string): Readonly<Record<string, string>> {
  const flows = viewFlows([...TABLES, relation('v', columns, definition)]);
  return Object.fromEntries(
    columns.split(' ').map((c) => [
      c,
      (flows.get(`s.v.${c}`) ?? [])
        .map((b) => b.id.slice(2))
        .sort()
        .join(' '),
    ]),
  );
}

const CASES: readonly (readonly [columns: string, definition: string, made: readonly string[]])[] = [
  ['a b', 'SELECT id, upper(mail) || name FROM s.person;', ['person.id', 'person.mail person.name']],
  ['a n', 'SELECT p.id, count(p.mail) AS n FROM s.person p GROUP BY p.id', ['person.id', '']],
  ['a b c', 'SELECT * FROM s.person', ['person.id', 'person.name', 'person.mail']],
  ['a', 'SELECT q.x FROM (SELECT mail AS x, id FROM s.person) q(x, y)', ['person.mail']],
  ['a', 'WITH q AS (SELECT mail AS x FROM s.person) SELECT z.x FROM q z', ['person.mail']],
  ['a', 'SELECT id FROM s.note UNION ALL SELECT name FROM s.person', ['note.id person.name']],
  [
    'a b',
    'SELECT n.id, (SELECT p.mail FROM s.person p WHERE p.id = n.person_id) FROM s.note n',
    ['note.id', 'person.mail'],
  ],
  ['a', 'SELECT row_to_json(p.*) FROM s.person p', ['person.id person.mail person.name']],
  [
    'a',
    'SELECT w FROM s.person p, LATERAL regexp_split_to_table(p.mail, $$@$$) w(w)',
    ['person.id person.mail person.name'],
  ],
  [
    'a',
    'WITH RECURSIVE q AS (SELECT id FROM s.person UNION ALL SELECT q.id FROM q) SELECT id FROM q',
    ['person.id person.mail person.name'],
  ],
  [
    'a b',
    'this is no SQL of a view over person',
    ['person.id person.mail person.name', 'person.id person.mail person.name'],
  ],
];

test('what a column of a view is made of', (t) => {
  for (const [columns, definition, made] of CASES)
    t.same(Object.values(flowsOf(columns, definition)), made, definition);
  t.end();
});

test('columns by their names: personal, secret or plain', async (t) => {
  const cases: readonly (readonly [table: string, column: string, look: string])[] = [
    ['customer', 'email', 'personal'],
    ['order', 'ContactEmail', 'personal'],
    ['x', 'HOME_PHONE', 'personal'],
    ['x', 'dateOfBirth', 'personal'],
    ['x', 'born_at', 'personal'],
    ['x', 'tax_id', 'personal'],
    ['users', 'name', 'personal'],
    ['product', 'name', 'plain'],
    ['users', 'passwordHash', 'secret'],
    ['integration', 'API_KEY', 'secret'],
    ['x', 'email_verified', 'plain'],
    ['x', 'address_id', 'plain'],
    ['x', 'token_count', 'plain'],
    ['x', 'stage', 'plain'],
    ['x', 'shipping', 'plain'],
    ['x', 'package', 'plain'],
    ['x', 'zipper', 'plain'],
    ['x', 'status', 'plain'],
    ['x', '', 'plain'],
  ];
  for (const [table, column, look] of cases) t.equal(lookOf(table, column), look, `${table}.${column}`);
});

test("a tenant's column by its name", async (t) => {
  for (const name of ['tenant_id', 'orgId', 'workspace', 'account_id']) t.not(tenantRank(name), null, name);
  for (const name of ['company', 'client', 'organization_name', 'id', 'tenancy'])
    t.equal(tenantRank(name), null, name);
});
