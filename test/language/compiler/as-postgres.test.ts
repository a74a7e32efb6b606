import {
  type Access,
  type Catalog,
  type Column,
  compile,
  emit,
  QueryError,
  type Relation,
  ready,
  type TypeName,
  valuesOf,
} from 'osl-compiler';
import t from 'tap';
import { type Answer, openEngine } from '../../proof/golden/engine.js';

/**
 * A statement of a caller who may see everything means what it means to Postgres: the same text is compiled, and run as
 * it is over tables of the entities' names.
 */

await ready();

const COLUMNS = {
  item: {
    id: 'int4',
    k: 'text',
    n: 'int4',
    f4: 'float4',
    f8: 'float8',
    c: 'bpchar',
    n2: 'numeric',
    i2: 'int2',
  },
  part: { id: 'int4', item: 'int4', k: 'text' },
  kind: { k: 'text', label: 'text' },
} satisfies Record<string, Record<string, TypeName>>;

const engine = await openEngine(['entities']);
t.teardown(() => engine.close());
await engine.setUp(`
  create table entities.item (id int primary key, k text, n int, f4 real, f8 float8, c char(3), n2 numeric(8,2), i2 int2);
  create table entities.part (id int primary key, item int, k text);
  create table entities.kind (k text primary key, label text);
  insert into entities.item values
    (1, 'a', 10, 0.1, 0.1, 'ab', 1.25, 1), (2, 'b', 20, 16777216, 2.5, 'b', 2, 3),
    (3, 'a', null, 'NaN', 1e300, 'abc', null, 4), (4, null, 20, null, null, null, 1.25, null);
  insert into entities.part values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a'), (4, null, 'c');
  insert into entities.kind values ('a', 'first'), ('b', 'second');`);

function entity(name: string, columns: Record<string, TypeName>): Relation {
  const column = (of: string, type: TypeName): Column => ({
    ...{ name: of, physical: of, type, description: null },
    ...{ nullable: true, sensitivity: null, keyDomain: null },
  });
  return {
    ...{ kind: 'entity', name, description: null, connector: 'main', schema: 'entities', table: name },
    columns: Object.entries(columns).map(([of, type]) => column(of, type)),
    primaryKey: [Object.keys(columns)[0] ?? ''],
    sealedKeys: [],
  };
}

const relations = new Map(Object.entries(COLUMNS).map(([name, columns]) => [name, entity(name, columns)]));
const CATALOG: Catalog = {
  ...{ version: 'v', relations, metrics: new Map(), facets: new Map(), edges: [], joins: 'any' },
};
const ACCESS: Access = {
  ...{ signature: 's', policyVersion: 'p', chainLength: 1 },
  relations: new Map(
    [...relations].map(([name, { columns }]) => {
      const grant = { id: name, columns: new Set(columns.map((c) => c.name)), unmask: new Set<string>() };
      return [name, { grants: [{ ...grant, filter: null }], masks: new Map(), denied: new Set() }];
    }),
  ),
};

const nothing = (): never => {
  throw new Error('no such values here');
};

async function compiled(text: string): Promise<Answer> {
  const { sql, slots } = emit(compile(text, CATALOG, ACCESS));
  const values = valuesOf(slots, {
    ...{ client: nothing, attribute: nothing, runtime: nothing, keys: nothing, given: nothing, pad: nothing },
    text: (value) => value,
  });
  return engine.ask(sql, values);
}

const ALIKE: Readonly<Record<string, readonly string[]>> = {
  'the order of *': [
    'select * from entities.part join entities.kind using (k) order by id',
    'select * from entities.item i, entities.part p join entities.kind using (k) order by i.id, p.id',
    'select * from (entities.item i join entities.part p using (id)) cross join (entities.part q join entities.kind using (k)) order by i.id, q.id',
    'select * from entities.item i join (entities.part p join entities.kind x using (k)) using (id) order by id',
    'select * from entities.item i join entities.part p using (id) join entities.kind x on x.k = p.k order by id',
    'select * from entities.part p right join entities.kind x using (k) order by k, id',
    'select * from (select id, k from entities.part) p full join entities.kind x using (k) order by k, id',
    'select * from (select 1 as a, 2 as b) x join (select 2 as b, 1 as a, 3 as c) y using (b, a), (select 4 as b) z',
  ],
  'numbers of single precision': [
    "select coalesce(null::float8, '0.1'::float4), sqrt('0.1'::float4), greatest(real '0.1', 0.05::float8)",
    'select id from entities.item where f4 in (0.1, 0.2) order by id',
    'select id from entities.item where f4 in (0.1) order by id',
    'select id from entities.item where f4 not in (0.1, 0.2) order by id',
    'select id from entities.item where f4 in (16777217, 1) order by id',
    `select id from entities.item where f4 in (${Array.from({ length: 300 }, (_, i) => 16_777_217 + i).join()}) order by id`,
    'select id from entities.item where f8 in (0.1, 1) order by id',
    'select id from entities.item where f4 in (0.1, 0.2, f8) order by id',
    'select id from entities.item where f4 not in (0.1, 0.2, f8) order by id',
  ],
  'lists of several types': [
    "select id from entities.item where c in ('ab', 'b') order by id",
    "select id from entities.item where c in ('ab '::text, 'b') order by id",
    'select id from entities.item where n in (10, 20.0) order by id',
    "select interval '1 hour' in (time '01:00', time '02:00')",
    "select interval '1 hour' in (interval '2 hours', time '01:00')",
    'select id from entities.item where n in (id * 10, 20.0) order by id',
  ],
  'operands without a type': [
    "select '1' union select 2 order by 1",
    "select 2 union select '1' order by 1",
    "select 'a ' as c union select c from entities.item order by 1",
    "select '{1}' intersect select array[1]",
    'select null, 1 union all select 2, null order by 1',
    "select k, null as n, count(*) from entities.item group by k union all select 'all', 1, 2 order by 1, 3",
    "select '1', 'x' except (select 2, 'x' union all select 3, 'y')",
  ],
  'recursive tables': [
    'with recursive t(a) as (select 1::numeric(10, 2)::numeric union all select a + 1 from t where a < 3) select a from t',
    'with recursive t(a) as (select n2 from entities.item where id = 1 union all select a from t where false) select a from t',
    "with recursive t(a) as (select 'x'::char(3)::bpchar union all select (a || 'x')::bpchar from t where length(a) < 5) select a from t",
    'with recursive t(a, b) as (select 1, null union all select a + 1, null from t where a < 3) select a, b from t',
    "with recursive t(a, b) as (select 1, 2 union all select a + 1, '7' from t where a < 3) select a, b from t",
  ],
  'the outer query in ON': [
    'select i.id, x.* from entities.item i, lateral (select p.id, y.label from entities.part p join entities.kind y on y.k = p.k and p.item = i.id) x order by 1, 2',
    'select i.id, (select count(*) from entities.part p left join entities.kind y on y.k = i.k where p.item = i.id) from entities.item i order by 1',
  ],
  'fields of a date': [
    "select date_part('hour', d), date_part('us', d), date_part('day', d) from (values (date '2020-02-29')) as v(d)",
  ],
  'counts and offsets': [
    'select id from entities.item order by id limit 1.5',
    'select id from entities.item order by id limit 2.5::float8 offset 0.4',
    'select id, count(*) over (order by i2 range between 1 preceding and 1 following) from entities.item order by id',
    'select id, count(*) over (order by i2 range between 1::int8 preceding and current row) from entities.item order by id',
    'select id, count(*) over (order by n range between 10::int2 preceding and current row) from entities.item order by id',
    "select t, count(*) over (order by t range '1 hour' preceding) from (values (timetz '10:00+00'), (timetz '10:30+00'), (timetz '12:00+00')) as v(t) order by 1",
  ],
  'names of groups': [
    'select x / 2 as g, count(*) from generate_series(1, 4) as g(x) group by g order by 1',
    'select n / 20 as n, count(*) from entities.item group by n order by 1, 2',
    'select n / 20 as m, count(*) from entities.item group by m order by 1, 2',
    'select g, count(*) from generate_series(1, 2) as g group by g order by 1',
    'select cast(false as bool) as f, count(*) from entities.item group by cast(false as bool)',
    'select count(*) from entities.item group by rollup (true::bool) order by 1',
  ],
  'constant keys': [
    'select id from entities.item order by true::bool, id desc',
    'select id from entities.item order by cast(false as bool) desc, id',
    'select distinct on (true::bool) id from entities.item order by true::bool, id',
  ],
  'the operand of CASE': [
    "select case cast(floor(random()) as int4) when 0 then 'zero' else 'other' end",
    "select case n when 10 then 'ten' when 20 then 'twenty' when random() then 'random' end from entities.item order by id",
  ],
  'the least integers': [
    'select -2147483648, -2147483649, -9223372036854775808, 2147483648, - 2147483648',
    'select pg_typeof(-2147483648)::text, pg_typeof(-2147483649)::text, pg_typeof(2147483648)::text',
  ],
  'columns of JSON objects': [
    `select distinct a, b from json_to_record('{"a": {"x": 1}, "b": [1]}') as t(a jsonb, b jsonb)`,
    `select a @> '{"x": 1}' from json_to_recordset('[{"a": {"x": 1}}, {"a": null}, {}]') as t(a jsonb)`,
    `select a, b from jsonb_to_record('{"a": {"x": 1}, "b": null}') as t(a json, b json)`,
    `select a, b from json_to_record('{"a": 1.50, "b": [1,  2]}') as t(a numeric, b json)`,
  ],
};

for (const [name, texts] of Object.entries(ALIKE)) {
  t.test(name, async (t) => {
    for (const text of texts) {
      const wanted = await engine.ask(text, []);
      t.equal(wanted.sqlstate, null, text);
      t.strictSame(await compiled(text), wanted, text);
    }
  });
}

/** The first use of a parameter determines its type, in the order in which Postgres reads the clauses. */
const TYPED = [
  'select $1 / 2 from entities.item where f8 > $1',
  'select n + $1 from entities.item where f8 > $1 and id = $2',
  'select id from entities.item where f8 > $1 and n = $1',
  'select id from entities.item where ($1 + 1) < ($1 * 2.5)',
  'select case when id = $1 then $2 + 1 when f8 = $2 then $1 end from entities.item',
  'select case id when $1 then $2 else $1 end, f8 = $2 from entities.item',
  'select id from entities.item where id in ($1, $2) and k in ($3) and f4 between $4 and $5',
  'select id from entities.item where ($1::float8, id) < (id, $1) or (id, $2) = ($2::int8, 1::int8)',
  'select $1 union select n from entities.item except select $2',
  'select id, $1 from entities.item union all select $2, k from entities.part',
  'select id from entities.item where id = any ($1) and k like $2 order by id limit $3 offset $4',
  'select i.id from entities.item i join entities.part p on p.id = $1 and p.k = $2 where i.k = $2 group by i.id having count(*) > $3',
];

t.test('parameters have the types that Postgres infers', async (t) => {
  for (const text of TYPED) {
    await engine.ask(`prepare typed as ${text}`, []);
    const { rows } = await engine.ask(
      "select (select string_agg(t::oid::text, ',' order by n) from unnest(parameter_types) with ordinality u(t, n)) from pg_prepared_statements where name = 'typed'",
      [],
    );
    await engine.ask('deallocate typed', []);
    t.equal(compile(text, CATALOG, ACCESS).clientOids.join(), rows[0]?.[0], text);
  }
});

/** Postgres refuses some of these, and means something that is not supported by the others. */
const REFUSED = [
  "select case cast(floor(random() * 2) as int4) when 0 then 'a' when 1 then 'b' else 'neither' end",
  'select i.id from entities.item i join entities.part p using (id, id)',
  'select id from entities.item where (k, id) in (select k, id, item from entities.part)',
  'select id from entities.item where (k, id) in (select k from entities.part)',
  'select null::text union select 1',
  "select + 'a'::text",
  "select array['{1,2}'::int4[]]::text[]",
  'select cast(array[array[1], null] as text[])',
  'with recursive a as (select * from kind), kind as (select 1 as x) select * from a',
  'with recursive a as (select 1 as x), b as (with c as (select * from item) select * from c), item as (select 2 as x) select * from b',
];

t.test('what would be taken for something else is refused', async (t) => {
  for (const text of REFUSED) t.throws(() => compile(text, CATALOG, ACCESS), QueryError, text);
});
