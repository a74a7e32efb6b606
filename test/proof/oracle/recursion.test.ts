import { type Access, bindPredicate, type Catalog, compile, emit, type Relation, ready } from 'osl-compiler';
import t from 'tap';
import { column } from '../golden/catalog.js';
import { openEngine } from '../golden/engine.js';
import { diceFrom } from './dice.js';

/**
 * Recursion over a hierarchy of which some rows are hidden, against Postgres over the rows that are shown: somebody
 * below a hidden manager is reached from nobody above.
 */

await ready();

/** Hierarchies that are asked; each is another tree, with other rows hidden. */
const TREES = 25;
const STAFF = 12;

function staffIn(schema: string): Relation {
  return {
    kind: 'entity',
    name: 'staff',
    description: null,
    connector: 'main',
    schema,
    table: 'staff',
    columns: [
      column('id', 'int4'),
      column('manager_id', 'int4'),
      column('pay', 'int4'),
      column('open', 'bool'),
    ],
    primaryKey: ['id'],
    sealedKeys: ['id', 'manager_id'],
  };
}

function worldOf(schema: string): readonly [Catalog, Access] {
  const staff = staffIn(schema);
  const grant = {
    id: 'g',
    columns: new Set(staff.columns.map((c) => c.name)),
    unmask: new Set<string>(),
    filter: bindPredicate('open', staff),
  };
  const access = { grants: [grant], masks: new Map(), denied: new Set<string>() };
  return [
    {
      version: 'v',
      joins: 'any',
      relations: new Map([['staff', staff]]),
      metrics: new Map(),
      facets: new Map(),
      edges: [],
    },
    { signature: 's', policyVersion: 'p', chainLength: 1, relations: new Map([['staff', access]]) },
  ];
}

const QUESTIONS: readonly string[] = [
  'with recursive below(id, depth) as (select id, 0 from staff where manager_id is null union all select s.id, b.depth + 1 from staff s join below b on s.manager_id = b.id) select id, depth from below order by 1',
  'with recursive above as (select id, manager_id from staff where id = 11 union select s.id, s.manager_id from above a join staff s on s.id = a.manager_id) select id from above order by 1',
  'with recursive below(top, id, pay) as (select id, id, pay from staff union all select b.top, s.id, s.pay from below b, staff s where s.manager_id = b.id) select top, count(*), sum(pay) from below group by top order by top',
  'with recursive path(id, way) as (select id, array[id] from staff where id = 0 union all select s.id, p.way || s.id from path p join staff s on s.manager_id = p.id where 100 / (s.pay - 500) <> 7) select way from path order by 1',
  'select s.id, (select count(*) from unnest(array[s.id, s.manager_id]) u where u > 3) from staff s order by 1',
  'select n, c.pays from generate_series(0, 12, 4) n left join (select id, json_agg(pay) as pays from staff group by id) c on c.id = n order by n',
];

t.test('recursion sees what the caller may see, at every step', async (t) => {
  const engine = await openEngine(['whole', 'shown']);
  t.teardown(() => engine.close());
  const columns = '(id int4 primary key, manager_id int4, pay int4, open bool)';
  await engine.setUp(`create table whole.staff ${columns}; create table shown.staff ${columns};
    grant select on whole.staff, shown.staff to reader`);
  const [catalog, access] = worldOf('whole');
  let cut = 0;
  for (let seed = 0; seed < TREES; seed++) {
    const dice = diceFrom(seed);
    const rows = Array.from({ length: STAFF }, (_, id) => {
      const open = dice.chance(0.7);
      // What a condition of the step fails on is hidden.
      const pay = open ? 100 + dice.upTo(300) : 500;
      return `(${id}, ${id === 0 ? 'null' : dice.upTo(id - 1)}, ${pay}, ${open})`;
    });
    await engine.setUp(`truncate whole.staff, shown.staff; insert into whole.staff values ${rows.join()};
      insert into shown.staff select * from whole.staff where open`);
    for (const question of QUESTIONS) {
      const { sql, slots } = emit(compile(question, catalog, access));
      const values = slots.map((s) => (s.kind === 'literal' && typeof s.value === 'string' ? s.value : null));
      const [got, wanted] = [
        await engine.ask(sql, values),
        await engine.ask(question.replaceAll(/\bstaff\b(?! s\.)/g, 'shown.staff'), []),
      ];
      t.strictSame([got.rows, got.sqlstate], [wanted.rows, null], question);
      cut += question === QUESTIONS[0] && got.rows.length < STAFF ? 1 : 0;
    }
  }
  t.ok(cut > TREES / 2, `${cut} of ${TREES} hierarchies have somebody who is not reached`);
});
