import type * as Compiler from 'osl-compiler';
import type { Access, Catalog, FacetStore, Relation, RelationGrant, TypeName } from 'osl-compiler';

/** A question that fails on one row: `$1` is a key that is hidden, then one that nobody has. */
export interface Probe {
  readonly caller: 'clerk' | 'stats';
  readonly text: string;
  readonly keys: readonly [hidden: string, nobody: string];
  /** In OSL-SQL, by the names of entities; else raw SQL. */
  readonly entities?: boolean;
  /** What the store of a facet is asked for it, not the statement itself. */
  readonly stores?: boolean;
}

/** Employees to 8 are shown to the clerk; with a dear filter, so that the planner would rather ask the question first. */
export const SCRIPT = `
create table hr.department (id int4 primary key, label text, weight numeric, code text);
insert into hr.department select i, 'd' || i, 10 ^ i, i::text from generate_series(1, 8) i;
create table hr.employee (
  id int4 primary key, dept_id int4, name text, region text, salary numeric, bonus float8, hired date, spell interval,
  extra jsonb, host inet, seats int4range, words tsvector
);
insert into hr.employee select i, i % 8 + 1, 'Ann ' || i, 'eu', 1000 + i, i, '2020-01-01', '1 day' from generate_series(1, 8) i;
insert into hr.employee select i, i % 8 + 1, 'Zedekiah', 'us', 977.56, 1e308, '294277-01-01', '178000000 years'
  from generate_series(101, 116) i;
update hr.employee set host = case when id < 100 then inet '10.0.0.1' else '255.255.255.255' end,
  seats = case when id < 100 then int4range(1, 5) else int4range(2, 2147483647, '[)') end, words = 'zed:1';
create table hr.badge (id int4 primary key, employee_id int4);
insert into hr.badge select i, i from generate_series(1, 8) i;
update hr.employee set salary = -1 where id = 101;
create table hr.note_v1 (chunk_id text, doc_id text, source text, start_char int4, end_char int4, text text,
  sha256 text, redacted_fields text[], terms int4[], lex sparsevec, dense vector, entity_key int4, mark int4, label text);
insert into hr.note_v1 select 'c' || e.id, 'd', 's', 0, 1, 'note ' || e.id, 'h', '{}', array[1], '{1:1}/2', '[1]',
  e.id, e.id, case when e.id in (8, 108) then 'secret' else 'open' end from hr.employee e;
create table hr.note_w1 (term int4, passages int8);
insert into hr.note_w1 select n, count(*) from hr.note_v1, generate_series(0, 1) as n group by 1;
create table hr.note_d1 (entity_key int4, attribute text, doc_id text, value jsonb, score float8, support int4, chunk_id text);
insert into hr.note_d1 select e.id, 'mood', 'd', '"good"', 1, 1, 'c' || e.id from hr.employee e;
create index on hr.employee (dept_id);
analyze hr.employee; analyze hr.department;
`;

const COLUMNS: Readonly<Record<string, Readonly<Record<string, TypeName>>>> = {
  employee: {
    id: 'int4',
    dept_id: 'int4',
    name: 'text',
    region: 'text',
    salary: 'numeric',
    bonus: 'float8',
    hired: 'date',
    spell: 'interval',
    extra: 'jsonb',
    host: 'inet',
    seats: 'int4range',
    words: 'tsvector',
  },
  badge: { id: 'int4', employee_id: 'int4' },
  department: { id: 'int4', label: 'text', weight: 'numeric', code: 'text' },
  note: { employee_id: 'int4', mark: 'int4', label: 'text' },
};

function relationOf(name: string): Relation {
  return {
    kind: name === 'note' ? 'facet' : 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 'hr',
    table: name,
    columns: Object.entries(COLUMNS[name] ?? {}).map(([column, type]) => ({
      name: column,
      physical: column === 'employee_id' && name === 'note' ? 'entity_key' : column,
      type,
      description: null,
      nullable: column !== 'id',
      sensitivity: column === 'hired' ? 'birth' : null,
      keyDomain: null,
    })),
    primaryKey: name === 'note' ? [] : ['id'],
    sealedKeys: Object.keys(COLUMNS[name] ?? {}).filter((column) => /id$/.test(column)),
  };
}

const DEAR = "lower(upper(lower(upper(lower(upper(region)))))) = 'eu'";

/** Text about employees; two of its passages, one of them about somebody who is shown, have a label that hides them. */
const NOTE: FacetStore = {
  name: 'note',
  entity: 'employee',
  entityKey: 'employee_id',
  keyOfEntity: 'id',
  scalarIndexed: ['employee_id', 'mark', 'label'],
  maxTopK: 100,
  lane: 'lexical',
  approximate: false,
  versions: [
    {
      name: 'v1',
      redacts: new Set(),
      searched: false,
      table: 'note_v1',
      bits: 'note_b1',
      words: 'note_w1',
      derivedTable: 'note_d1',
    },
  ],
  derived: [{ name: 'mood', type: 'text', description: null }],
  connector: 'main',
  schema: 'hr',
};

/** What a step of a runtime relation is given: a word that all passages have, and everybody's keys. */
export function givenFor(name: string): string {
  switch (name) {
    case 'vector':
      return '{1:1}/2';
    case 'terms':
    case 'term':
      return '{1}';
    case 'words':
      return '[{"word":1,"term":[1]}]';
    default:
      return '1000';
  }
}

export function worldOf(
  compiler: typeof Compiler,
  caller: Probe['caller'],
): { catalog: Catalog; access: Access } {
  const [employee, department, badge, note] = [
    relationOf('employee'),
    relationOf('department'),
    relationOf('badge'),
    relationOf('note'),
  ];
  const grant = (of: Relation, more: Partial<RelationGrant>): RelationGrant => ({
    id: of.name,
    columns: new Set(of.columns.map((c) => c.name)),
    unmask: new Set(caller === 'stats' ? ['birth'] : []),
    filter: null,
    ...more,
  });
  const ofEmployees =
    caller === 'clerk'
      ? grant(employee, { filter: compiler.bindPredicate(DEAR, employee) })
      : grant(employee, { groups: { minimum: 3, metrics: null } });
  const rights = (g: RelationGrant) => ({
    grants: [g],
    masks: new Map([['birth', 'year' as const]]),
    denied: new Set<string>(),
  });
  return {
    catalog: {
      version: 'v',
      relations: new Map([employee, department, badge, note].map((r) => [r.name, r])),
      rawTables: new Map([employee, department].map((r) => [`hr.${r.name}`, r])),
      metrics: new Map(),
      facets: new Map([['note', NOTE]]),
      edges: [],
    },
    access: {
      signature: caller,
      policyVersion: 'p',
      chainLength: 1,
      relations: new Map([
        ['employee', rights(ofEmployees)],
        ['department', rights(grant(department, {}))],
        ['badge', rights(grant(badge, {}))],
        ['note', rights(grant(note, { filter: compiler.bindPredicate("label <> 'secret'", note) }))],
      ]),
    },
  };
}

/** Joins of OSL-SQL, with a condition beside the key, or with something that a query has worked out. */
const JOINED: readonly string[] = [
  'select d.id from department d join employee e on e.dept_id = d.id and 1 / (e.id - $1) <> 5',
  'select d.id, e.id from department d left join employee e on e.dept_id = d.id and 1 / (e.id - $1 + d.id - d.id) <> 5',
  'select e.id from employee e left join department d on d.id = e.dept_id and 1 / (e.id - $1) <> 5',
  'select d.id from department d full join employee e on e.dept_id = d.id where 1 / (e.id - $1) <> 5',
  'select d.id from (select id, weight from department) d join employee e on 1 / (e.id - $1) < d.weight',
  'select d.id from department d full join employee e on e.dept_id = d.id and 1 / (e.id - $1) <> 5',
  "select d.id from department d full join employee e on e.dept_id = d.id and e.name ~ 'x'",
  'select id from department full join (select id, 1 / (id - $1) as x from employee) e using (id) where x <> 5',
  'select d.id from (select id from department) d full join employee e on d.id = 1 / (e.id - $1)',
  'select d.id from (select id from department) d join employee e on d.id = 1 / (e.id - $1)',
  'select v.x from employee e, (values (1), (2)) v (x) where v.x > 1 / (e.id - $1)',
  'select e.id from employee e join (values (1, 9), (2, 8)) v (lo, hi) on 1 / (e.id - $1) between v.lo and v.hi',
  'with w as (select id, 1 / (id - $1) as x from employee) select w.id from w join department d on w.x <> d.id',
  'select e.id from employee e cross join (select max(weight) as most from department) m where 1 / (e.id - $1) < m.most',
  'select d.id, x.y from department d cross join lateral (select e.id as y from employee e where e.dept_id = d.id and 1 / (e.id - $1) <> 5) x',
  'select d.id from department d, lateral (select e.id as y from employee e where e.dept_id = d.id) x where 1 / (x.y - $1) <> 5',
  'select d.id from department d left join lateral (select 1 / (e.id - $1) as y from employee e where e.dept_id = d.id) x on x.y <> 5',
  'select e.id from employee e left join lateral (select d.id as k from department d where d.id = e.dept_id) x on 1 / (e.id - $1 + x.k - x.k) <> 5',
  'select e.id from employee e, lateral (select max(d.weight) as m from department d where d.id = e.dept_id) x where e.id = $1 and 1 / (x.m - x.m) > 0',
  'select d.id from department d join employee e on e.dept_id is not distinct from d.id and 1 / (e.id - $1) <> 5',
  'select e.id from employee e, lateral (select 1 / (e.id - $1) as y) x where x.y <> 5',
  'select e.id from employee e cross join lateral (values (1 / (e.id - $1)), (2)) v (y) where v.y <> 5',
  'select e.id from employee e, lateral (select x.y + 1 as z from (select 1 / (e.id - $1) as y) x) w where w.z <> 5',
  'select e.id from employee e where e.id = $1 and (select 1 / (e.id - e.id)) > 0',
  'select e.id from employee e left join lateral (select d.id as k, 1 / (e.id - $1) as y from department d where d.id = e.dept_id) x on true where x.y <> 5',
  'select e.id from employee e join department d on d.id = e.dept_id, lateral (values (1 / (e.id - $1)), (d.id)) x (y) where x.y <> 5',
  'select q.a from (select x.a from employee e cross join lateral (select 1 / (e.id - $1) as a) x) q where q.a <> 5',
  'select e.id from employee e join lateral (select d.id as k from department d where d.id = e.dept_id and 1 / (e.id - $1) <> d.id) x on true',
];

const KEYS = ['101', '999'] as const;
const clerk = (...texts: readonly string[]): readonly Probe[] =>
  texts.map((text) => ({ caller: 'clerk', text, keys: KEYS }));
/** What passages are read, by a key that the text names; \`8\` is shown, with a passage that is not. */
const stores = (keys: readonly [string, string], ...texts: readonly string[]): readonly Probe[] =>
  texts.map((text) => ({ caller: 'clerk', text, keys, stores: true }));
const ABOUT = "from retrieve(facet => 'note', query => 'note', top_k => 100) r where";
/** A figure of one person, which is withheld; \`$1\` is what that person has, or has not. */
const stats = (keys: readonly [string, string], ...texts: readonly string[]): readonly Probe[] =>
  texts.map((text) => ({ caller: 'stats', text, keys }));
const PAY = ['978', '977'] as const;
const ONE = 'id between 105 and 105 and salary < $1 and';

export const PROBES: readonly Probe[] = [
  ...clerk(
    'select id from hr.employee where 1 / (id - $1) <> 5',
    'select id from hr.employee where ln(id - $1 + 0.0) <> 5 or id = 1',
    'select id from hr.employee where id = $1 and ln(salary) > 0',
    "select id from hr.employee where sqrt((case when id = $1 then '-1' else '1' end)::float8) = 1",
    'select id from hr.employee where sqrt(case when id = $1 then -1::float8 else 1::float8 end) = 1',
    "select id from hr.employee where (case when id = $1 then 'x' else '1' end)::int4 = 1",
    'select id from hr.employee where (case when id = $1 then 100 else 1 end)::numeric(2, 0) = 1',
    'select id from hr.employee where coalesce(1 / (id - $1), 1) <> 5',
    "select id from hr.employee where id <> $1 or now() > date '2020-01-01' - interval '99999 years'",
    "select id from hr.employee where id <> $1 or now() > cast('2020-13-45'::text as date)",
    "select id from hr.employee where id <> $1 or now() > now() - interval '99999 weeks' - interval '99999 weeks' - interval '99999 weeks' - interval '99999 weeks'",
    'select id from hr.employee where id <> $1 or now() > make_date(2024, 2, 30)',
    'select id from hr.employee where id <> $1 or salary > ln(0.0)',
    'select id from hr.employee where id <> $1 or id > 2147483647 + 1',
    'select id from hr.employee where id <> $1 or id > 99999 * 99999',
    'select id from hr.employee where id <> $1 or id > 99999::int8 * 99999::int8 * 99999::int8 * 99999::int8',
    'select x from (select 1 / (id - $1) as x from hr.employee) d where x <> 5',
    'with w as (select id as k from hr.employee) select a.k from w a join w b on a.k = b.k where 1 / (b.k - $1) <> 5',
    'select x from (select id as x from hr.employee union select id from hr.department) d where 1 / (x - $1) <> 5',
    "select id from hr.employee where id = $1 and hired > date '1990-01-01'",
    'select id from hr.employee group by id having 1 / (id - $1) <> 5',
    'select id from hr.employee where random() < 2 and id <> $1',
    'with w as (select id as k, dept_id as d from hr.employee) select c.k from (select a.k from hr.department x left join w a on a.d = x.id) b left join w c on b.k + c.k > 2 and 1 / (c.k - $1 + b.k - b.k) <> 5',
    'select id from hr.employee tablesample system (100) where id <> $1',
    'select e.id from hr.employee e where (e.dept_id, e.id) in (select d.id, 1 / (d.id - d.id) from hr.department d) and e.id = $1',
    'select d.id from hr.department d where (d.id, d.id) in (select 5, 1 / (id - $1) from hr.employee)',
    "select id from hr.employee where ('x' || case when id = $1 then 'zz' else '01' end)::bit(8)::int = 1",
    'select id from hr.employee where (dept_id, 1 / (id - $1)) > (0, 5)',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id > (select d.id from hr.department d order by d.code is null fetch first 1 row with ties)',
    'select id, count(*) from hr.employee group by rollup (id) having 1 / (id - $1) = 0',
    'select g from (select id as g, count(*) as n from hr.employee group by rollup (id)) d where g is null or 1 / (g - $1) <> 5',
    `select id from hr.employee where id = $1 and extra @> '[[1]]'`,
    "select id from hr.employee where id = $1 and host + 1 > '10.0.0.1'",
    "select id from hr.employee where id = $1 and seats -|- '(2147483647,)'",
    "select id from hr.employee where id = $1 and seats + '[2147483600,2147483646]' is not null",
    `select id from hr.employee where id = $1 and words @@ to_tsquery('(')`,
    "select id from hr.employee where id = $1 and array_position('{{Ann},{Bob}}'::text[], name) = 1",
    `select id from hr.employee where id = $1 and words @@ websearch_to_tsquery('${'-'.repeat(60)}x')`,
    'select d.id from hr.department d join hr.employee e on e.dept_id = d.id and 1 / (e.id - $1) <> 5',
    'select d.id from hr.department d join hr.employee e on d.id = 1 / (e.id - $1)',
    'select d.id, e.id from hr.department d full join hr.employee e on d.id = 1 / (e.id - $1)',
    'select d.id from hr.department d, hr.employee e where e.dept_id = d.id and 1 / (e.id - $1 + d.id - d.id) <> 5',
    'select a.id from hr.employee a join hr.employee b on a.dept_id = b.dept_id where 1 / (a.id - $1 + b.id - b.id) <> 5',
    'select k from (select 5 as k) v where k in (select 1 / (id - $1) from hr.employee)',
    'select e.id from hr.employee e where 1 / (e.id - $1) in (select d.id from hr.department d)',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id not in (select 1 / (d.id - d.id) from hr.department d)',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id in (select d.id from hr.department d where d.id <> e.id and 1 / (d.id - d.id) > 0)',
    'select e.id from hr.employee e where e.id = $1 and exists (select 1 from hr.department d where d.id = e.dept_id and 1 / (d.id - d.id) > 0 group by d.id)',
    'select e.id from hr.employee e where e.id = $1 and exists (select 1 from hr.department d where d.id = e.dept_id having sum(1 / (d.id - d.id)) > 0)',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or exists (select 1 from hr.department d where d.id = e.dept_id and 1 / (d.id - d.id) > 0))',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or exists (select 1 from (select 1 / (d.id - d.id) as x, d.id from hr.department d) s where s.id = e.dept_id and s.x > 0))',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or e.dept_id in (select d.id from hr.department d order by 1 limit -1))',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id > (select d.id from hr.department d)',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id > (select d.id from hr.department d limit 2)',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or e.bonus in (select sum(x.bonus) from hr.employee x))',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or e.dept_id in (select s.id from (select d.id from hr.department d where 1 / (d.id - d.id) > 0) s))',
    'select e.id from hr.employee e where e.dept_id = 0 or exists (select 1 from generate_series(1, 2, e.id - $1) g where g = 5)',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or exists (select 1 from unnest(array[e.id, e.dept_id]) u where 1 / (u - $1) > 0))',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or exists (select 1 from generate_series(-1000000000.0, 1.0, e.salary) g where g = 5.0))',
    'select g from hr.employee e, generate_series(1, 2, e.id - $1) g',
    'with recursive w(id) as (select 1 union all select e.id from w join hr.employee e on e.id > w.id where 1 / (e.id - $1) <> 5) select count(*) from w',
    'with recursive w(id) as (select id from hr.employee where 1 / (id - $1) <> 5 union select dept_id from w, hr.employee e where e.id = w.id) select count(*) from w',
    'with recursive w(id) as (select id from hr.employee union select w.id + 1 from w where w.id < 20) select count(*) from w where 1 / (id - $1) <> 5',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or e.dept_id in (with recursive t(n) as (select 1 union all select n from t) select n from t where n = 1000))',
    'select generate_series(1, 2, e.id - $1) from hr.employee e',
    'select x from (select generate_series(1, 2, e.id - $1) as x from hr.employee e) d where x < 5',
    'select d.id from hr.department d join hr.employee e on e.dept_id = d.id, unnest(array[e.id]) u where 1 / (u - $1) <> 5',
    'select d.id from hr.department d join hr.employee e on e.dept_id = d.id, jsonb_each(jsonb_build_object(d.id, 1 / (e.id - $1))) u',
    'select d.id from hr.department d join hr.employee e on e.dept_id = d.id where d.id = 1 / (e.id - $1) and 1 / (e.id - $1) <> 5',
    'select e.id from hr.employee e where e.id = $1 and (e.dept_id = 0 or exists (select 1 from hr.department d where 1 / (d.id - d.id) > 0 and d.id = e.id - e.id))',
    'select e.id from hr.employee e where e.id = $1 and (select count(*) from hr.department d where d.id > 1 / (e.id - e.id)) > 0',
    'select e.id from hr.employee e where e.id = $1 and exists (select 1 from hr.department d where d.id > 1 / (e.id - e.id))',
    'select d.id, (select count(*) from hr.employee e where 1 / (e.id - $1) < d.id) from hr.department d',
    'select e.id from hr.employee e where e.id = $1 and e.dept_id > all (select 1 / (d.id - d.id) from hr.department d)',
    'select d.id from hr.department d where d.id <> all (select 1 / (e.id - $1) from hr.employee e)',
    'select d.id from hr.department d where d.id >= any (select 1 / (e.id - $1) from hr.employee e)',
    'select e.id from hr.employee e where e.id = $1 and (array(select 1 / (d.id - d.id) from hr.department d))[1] = 1',
    'select x.id from (select id from hr.department) x full join (select 1 / (id - $1) as id from hr.employee) y using (id) where id <> 5',
    "select id from hr.employee where id = $1 and daterange(hired, date '2020-01-01') is not null",
    'select e.id from hr.employee e where e.id = $1 and e.dept_id + 1 in (select 1 / (d.id - d.id) from hr.department d)',
    'select d.id from hr.employee e, (hr.department d join lateral (select 1 / (e.id - $1) as y) x on x.y <> 5)',
    'select e.dept_id, (select count(*) from hr.employee x where 1 / (x.id - $1) > e.dept_id) from hr.employee e group by e.dept_id',
    'select d.id, (with w as (select 1 / (e.id - $1 + d.id - d.id) as y from hr.employee e) select count(*) from w where y <> 5) from hr.department d',
    'select e.id from hr.employee e where e.id = $1 and 1 < (with w as (select 1 / (e.id - e.id) as y from hr.department d) select max(y) from w)',
  ),
  ...JOINED.map((text): Probe => ({ caller: 'clerk', text, keys: KEYS, entities: true })),
  ...[
    ['Zed\\', 'Qed\\'],
    ['%edek\\', '%edeq\\'],
  ].map(
    ([hidden = '', nobody = '']): Probe => ({
      caller: 'clerk',
      text: "select id from hr.employee where name like '$1'",
      keys: [hidden, nobody],
    }),
  ),
  ...[
    ['101', '999'],
    ['8', '998'],
  ].flatMap(([hidden = '', nobody = '']) =>
    stores(
      [hidden, nobody],
      `select text ${ABOUT} mark = $1`,
      `select text ${ABOUT} 1 / (mark - $1) <> 5`,
      `select text ${ABOUT} mark = $1 and 1 / (mark - mark) <> 5`,
    ),
  ),
  ...stores(
    ['101', '999'],
    'select id, mood, evidence from osl.entities.employee where id in ($1)',
    'select id, mood from osl.entities.employee where id in ($1)',
  ),
  ...stores(['8', '998'], 'select mood from osl.entities.employee where id in ($1)'),
  ...stats(
    PAY,
    `select sum(salary) from hr.employee where ${ONE} name like '\\'`,
    `select sum(salary) from hr.employee where ${ONE} hired::timestamp > '2020-01-01'`,
    `select sum(salary) from hr.employee where ${ONE} 1 / (id - 105) > 0`,
    `select count(*) from hr.employee where ${ONE} true group by 1 / (id - 105)`,
    'select sum(bonus) from hr.employee where id between 105 and 106 and salary < $1',
    'select sum(spell) from hr.employee where id between 105 and 106 and salary < $1',
    'select sum(1 / (id - 105)) from hr.employee where id = 105 and salary < $1',
    'select id, count(*) from hr.employee where salary < $1 and id = 105 group by rollup (id)',
    'select count(*) from hr.employee where salary < $1 and id = 105 group by grouping sets ((), ())',
    'select count(*) from hr.employee where salary < $1 and id = 105 having random() < 2',
    'select percentile_disc(0) within group (order by salary) from hr.employee where id = 105 and salary < $1',
    'select mode() within group (order by salary) from hr.employee where id = 105 and salary < $1',
    'select max(salary) from hr.employee where id = 105 and salary < $1',
    'select rank(977.5) within group (order by salary) from hr.employee where id = 105 and salary < $1',
    'select salary from hr.employee where id = 105 and salary < $1',
    'select g, (select count(*) from hr.employee e where e.salary < g and e.salary < $1) from generate_series(1, 2000, 1999) g',
  ),
  ...[
    'select sum(d.weight) from employee e join department d on d.id = e.dept_id where e.salary < $1',
    'select avg(d.weight) from employee e join department d on d.id = e.dept_id where e.salary < $1',
    'select count(*) from employee e join badge b on b.employee_id = e.id where e.salary < $1',
    'select sum(a.salary) from employee a join employee b on a.dept_id = b.dept_id where a.salary < $1',
    'select sum(case when id = 105 then salary end) from employee where salary < $1',
    'select count(*) from department d left join employee e on d.id = e.id where d.id < $1',
    'select count(*) from employee e join badge b on b.employee_id = e.id and e.salary < $1',
    'select d.id, x.n from department d cross join lateral (select count(*) as n from employee e where e.dept_id = d.id and e.id = 105 and e.salary < $1) x',
    'select d.id from department d join employee e on e.dept_id = d.id and e.id = 105 and e.salary < $1',
    'select count(*) from department d full join employee e on e.dept_id = d.id and e.id = 105 and e.salary < $1',
    'select d.id, x.n from department d cross join lateral (select count(*) as n, d.id as k from employee e where e.dept_id = d.id and e.id = 105 and e.salary < $1 + d.id - d.id) x',
    'select g, x.n from generate_series(1, 2) g, lateral (select count(*) as n from employee e where e.id = 105 and e.salary < $1) x',
  ].map((text): Probe => ({ caller: 'stats', text, keys: PAY, entities: true })),
];
