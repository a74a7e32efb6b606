import { readdirSync, readFileSync } from 'node:fs';
import {
  type Access,
  type AttributePattern,
  attributePattern,
  bindPredicate,
  type Catalog,
  compile,
  emit,
  forChain,
  NO_FEATURES,
  type Relation,
  type RelationAccess,
} from 'osl-compiler';
import t from 'tap';
import { CATALOG } from '../../proof/golden/catalog.js';
import { callerNamed } from '../../proof/golden/outcome.js';

/** Rules that no golden case shows, each the place of a fault that was there once. */

function relationNamed(name: string): Relation {
  const found = CATALOG.relations.get(name);
  if (found === undefined) throw new Error(`no relation ${name}`);
  return found;
}

const customer = relationNamed('customer');

function whereOf(text: string, chain: readonly AttributePattern[]): string {
  const filter = forChain(bindPredicate(text, customer), chain);
  const rights: RelationAccess = {
    grants: [{ id: 'g', columns: new Set(['id']), unmask: new Set(), filter }],
    masks: new Map(),
    denied: new Set(),
  };
  const { sql } = emit(compile('select id from customer', CATALOG, accessWith([['customer', rights]])));
  return / where (.*)\) as r1$/.exec(sql)?.[1] ?? '';
}

function accessWith(relations: readonly [string, RelationAccess][]): Access {
  return { signature: 's', policyVersion: 'p', chainLength: 1, relations: new Map(relations) };
}

t.test('a missing attribute makes the whole filter false, also under NOT', async (t) => {
  t.equal(whereOf("region = attribute('region')", [new Map()]), 'false');
  t.equal(whereOf("not (region = attribute('region'))", [new Map()]), 'false');
  t.equal(whereOf("vip or region = attribute('region')", [new Map()]), 'false');
  t.equal(whereOf("region = attribute('region')", []), 'false', 'as does a chain of nobody');
  t.equal(whereOf('vip', []), 't.vip', 'but not where no attribute is asked for');
});

t.test('`any` matches everything, and a chain only narrows', async (t) => {
  t.equal(whereOf("region = attribute('region')", [new Map([['region', 'any']])]), 'true');
  const chain = [new Map([['region', 'any' as const]]), new Map([['region', 'many' as const]])];
  t.equal(whereOf("region = attribute('region')", chain), '(true and (t.region_code = any ($1::text[])))');
});

t.test('one value is compared by `=`, several as a list, and none is never equal', async (t) => {
  const chainOf = (...values: readonly string[]): readonly AttributePattern[] => [
    attributePattern(new Map([['region', values]])),
  ];
  const rows = "region = attribute('region')";
  t.equal(whereOf(rows, chainOf('eu')), '(t.region_code = $1::text)');
  t.equal(whereOf(rows, chainOf('eu', 'us')), '(t.region_code = any ($1::text[]))');
  t.equal(whereOf(rows, chainOf()), 'false');
  t.equal(
    whereOf(rows, [...chainOf('eu'), ...chainOf('eu', 'us')]),
    '((t.region_code = $1::text) and (t.region_code = any ($2::text[])))',
    'each subject of a chain by its own number of values',
  );
});

t.test('two relations that share one access object keep their own columns and keys', async (t) => {
  const shared: RelationAccess = {
    grants: [
      { id: 'g', columns: new Set(['id', 'tax_no', 'label']), unmask: new Set(['tax']), filter: null },
    ],
    masks: new Map(),
    denied: new Set(),
  };
  const access = accessWith([
    ['customer', shared],
    ['tag', shared],
  ]);
  t.equal(emit(compile('select * from tag', CATALOG, access)).sql.match(/r1\.\w+ as/g)?.length, 2);
  t.match(emit(compile('select tax_no from customer', CATALOG, access)).sql, 't.tax_no');
  t.throws(() => compile('select tax_no from tag', CATALOG, access), { code: 'E0512' });
});

t.test('a relation without grants is a fault of ours, not open', async (t) => {
  const none: RelationAccess = { grants: [], masks: new Map(), denied: new Set() };
  t.throws(() => compile('select count(*) from customer', CATALOG, accessWith([['customer', none]])), {
    name: 'InternalError',
  });
});

t.test('what a tenant switches off is refused by name', async (t) => {
  const { access } = callerNamed('owner');
  const features = NO_FEATURES;
  t.throws(() => compile('select (select 1)', CATALOG, access, { features }), { code: 'E0511' });
  t.throws(() => compile('select 1 union select 2', CATALOG, access, { features }), { code: 'E0511' });
  const among = 'select id from customer where id in (select customer_id from "order")';
  t.throws(() => compile(among, CATALOG, access, { features }), { code: 'E0511' });
  t.ok(compile('select id from customer where id in (1, 2)', CATALOG, access, { features }));
});

t.test('client types that were declared decide', async (t) => {
  const { access } = callerNamed('owner');
  const plan = compile('select $1, $2 + 1', CATALOG, access, { parameterOids: [23, 0] });
  t.same(plan.clientOids, [23, 23]);
});

t.test('the same question compiles to the same bytes', async (t) => {
  for (const [name, query] of [
    ['overlap', 'select * from customer limit 3'],
    ['chain', 'select c.name, count(*) from customer c join "order" o on o.customer_id = c.id group by 1'],
  ]) {
    const { access } = callerNamed(name ?? '');
    const [one, two] = [compile(query ?? '', CATALOG, access), compile(query ?? '', CATALOG, access)];
    t.equal(emit(one).sql, emit(two).sql);
    t.same(emit(one).slots, emit(two).slots);
  }
});

t.test('nothing that a caller writes stands in the SQL', async (t) => {
  const { access } = callerNamed('masked');
  const hostile = `x'; drop table customers; -- "$1"`;
  const text = `select '${hostile.replaceAll("'", "''")}' as "${hostile.replaceAll('"', '""')}", name as "a b"
    from customer as "${hostile.replaceAll('"', '""')}" where name like '%${hostile.replaceAll("'", "''")}%'
    order by "a b" limit 5`;
  const { sql, slots } = emit(compile(text, CATALOG, access));
  t.notMatch(sql, /drop|a b|--/);
  t.ok(slots.some((s) => s.kind === 'literal' && s.value === hostile));
});

t.test('a catalog of hostile physical names is quoted', async (t) => {
  const odd: Relation = {
    ...relationNamed('tag'),
    schema: 'a"b',
    table: 'select',
    columns: [{ ...(relationNamed('tag').columns[0] ?? fail()), physical: 'x"; drop' }],
  };
  const catalog: Catalog = { ...CATALOG, relations: new Map([['tag', odd]]) };
  const rights: RelationAccess = {
    grants: [{ id: 'g', columns: new Set(['id']), unmask: new Set(), filter: null }],
    masks: new Map(),
    denied: new Set(),
  };
  const { sql } = emit(compile('select id from tag', catalog, accessWith([['tag', rights]])));
  t.equal(sql, 'select r1.id as c1 from (select t."x""; drop" as id from "a""b"."select" as t) as r1');
});

function fail(): never {
  throw new Error('the tag relation has no columns');
}

t.test('constants of the syntax tree are looked at in two places only', async (t) => {
  // Whoever else looked would make a plan depend on a literal that its template thinks free.
  const bind = new URL('../../../../compiler/src/bind/', import.meta.url);
  const files = readdirSync(bind, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
  const looking = files.filter((file) =>
    /\b(?:ival|fval)\b|A_Const\.sval|\bsval\.sval/.test(readFileSync(new URL(file, bind), 'utf8')),
  );
  t.same(looking.sort(), ['ast.ts', 'expressions/expression.ts']);
});
