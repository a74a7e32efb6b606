import type { Family } from './texts.js';

/**
 * Texts of `n` levels, each of which refers to the level before it twice, in one way each: what follows references
 * without knowing where it has been takes twice as long for each level. Entities as in `texts.ts`, in both worlds.
 */
export interface Doubling extends Family {
  /** The same over tables; null where raw SQL has no such thing. */
  readonly raw: Family['at'] | null;
  /** The caller of the golden cases who sees it, where it is of that shop alone; else null. */
  readonly asker: string | null;
  /** True if it is expanded, so that the plan grows faster than the text, up to its limit. */
  readonly expands: boolean;
  /** True if joins on anything must be allowed for it. */
  readonly free: boolean;
  /** True if each level has a table more, of which each may come through every level above: 250 of both at most. */
  readonly pairs: boolean;
}

interface Options {
  /** The first level; its columns are `z` and `y`. */
  readonly first?: string;
  /** What asks of the last one, `K`. */
  readonly last?: string;
  readonly expands?: boolean;
  readonly free?: boolean;
  readonly pairs?: boolean;
  readonly raw?: false;
  readonly asker?: string;
}

const times = (n: number, what: (i: number) => string): string =>
  Array.from({ length: n }, (_, i) => what(i)).join('');

const FIRST = 'select id as z, length(name) as y from customer';
/** A condition that can fail on a row: it must ask whether the rows are shown that reach it, through every level. */
const ASKS = 'select count(*) from K where z / 1 > 0';

/** OSL-SQL over the shop's entities as raw SQL over its tables. */
const overTables = (text: string): string =>
  text.replaceAll(/\b(from|join) (customer|ticket)\b/g, '$1 shop.$2s');

const doubling = (name: string, at: Family['at'], options: Options): Doubling => ({
  name,
  at,
  raw: options.raw === false ? null : (n) => overTables(at(n)),
  asker: options.asker ?? null,
  expands: options.expands === true,
  free: options.free === true,
  pairs: options.pairs === true,
});

/** Common tables of which each is made by `step` of the one before, `K`. */
const chain = (name: string, step: string, options: Options = {}, how = ''): Doubling => {
  const { first = FIRST, last = ASKS } = options;
  const table = (i: number): string => `, k${i + 1} as ${how}(${step.replaceAll(/\bK\b/g, `k${i}`)})`;
  const at = (n: number): string =>
    `with k0 as ${how}(${first})${times(n, table)} ${last.replaceAll(/\bK\b/g, `k${n}`)}`;
  return doubling(name, at, options);
};

/** `step` in itself; `K` is the query of the level before. */
const nest = (name: string, step: string, core: string, options: Options = {}): Doubling => {
  const [before = '', after = ''] = step.split('K');
  return doubling(name, (n) => `${before.repeat(n)}${core}${after.repeat(n)}`, options);
};

const LABELS = { first: 'select id as z, state as y from ticket', asker: 'desk', expands: true };
const FREE = { free: true };
const EXPANDS = { expands: true };

export const DOUBLINGS: readonly Doubling[] = [
  chain('common tables joined with themselves', 'select a.z, a.y from K a join K b on a.z = b.z'),
  chain('by commas', 'select a.z, a.y from K a, K b where a.z = b.z'),
  chain('by USING', 'select z, a.y from K a join K b using (z)'),
  chain(
    'a condition at each level',
    'select a.z, a.y from K a join K b on a.z = b.z where a.y / 1 > b.y',
    FREE,
  ),
  chain(
    'LEFT JOIN with a condition in ON',
    'select a.z, a.y from K a left join K b on a.z = b.z and b.y / 1 > 0',
    FREE,
  ),
  chain(
    'LEFT JOIN, its right side',
    'select a.z, b.y from K a left join K b on a.z = b.z and b.y / 1 > 0',
    FREE,
  ),
  chain('FULL JOIN', 'select a.z, b.y from K a full join K b on a.z = b.z'),
  chain('FULL JOIN by USING', 'select z, 1 as y from K a full join K b using (z)', EXPANDS),
  chain('UNION', 'select z, y from K union select z, y from K', EXPANDS),
  chain('UNION ALL', 'select z, y from K union all select z, y from K', EXPANDS),
  chain('INTERSECT', 'select z, y from K intersect select z, y from K', EXPANDS),
  chain('EXCEPT', 'select z, y from K except select z + 1, y from K', EXPANDS),
  chain('derived tables', 'select a.z, a.y from (select * from K) a join (select * from K) b on a.z = b.z'),
  chain('IN', 'select z, y from K where z in (select z from K)'),
  chain('NOT IN beside a condition', 'select z, y from K where z / 1 > 0 and z not in (select z from K)'),
  chain('IN of what can fail', 'select z, y from K where z / 1 in (select z / 1 from K)', FREE),
  chain('EXISTS', 'select z, y from K a where exists (select 1 from K b where b.z = a.z)'),
  chain(
    'EXISTS of what can fail',
    'select z, y from K a where exists (select 1 from K b where b.z = a.z and b.y / 1 > 0)',
  ),
  chain('a scalar subquery', 'select z, (select max(y) from K) as y from K'),
  chain('a scalar subquery in WHERE', 'select z, y from K where (select max(y) from K) / 1 > 0'),
  chain('a scalar subquery of one row', 'select z, (select y from K limit 1) as y from K'),
  chain('ARRAY', 'select z, cardinality(array(select y from K)) as y from K'),
  chain('ANY', 'select z, y from K where y <= any (select y from K)', FREE),
  chain('LATERAL', 'select a.z, c.y from K a, lateral (select b.y from K b where b.z = a.z) c'),
  chain(
    'LATERAL that can fail',
    'select a.z, c.y from K a, lateral (select b.y from K b where b.z / 1 = a.z) c',
    FREE,
  ),
  chain('groups', 'select a.z, max(b.y) as y from K a join K b on a.z = b.z group by a.z having a.z / 1 > 0'),
  chain(
    'grouping sets',
    'select a.z, max(a.y) as y from K a join K b on a.z = b.z group by grouping sets ((a.z), (a.z, b.z))',
  ),
  chain('DISTINCT', 'select distinct a.z, a.y from K a join K b on a.z = b.z where a.y / 1 > 0'),
  chain('LIMIT', 'select a.z, a.y from K a join K b on a.z = b.z order by a.y limit 5'),
  chain(
    'window calls',
    'select a.z, row_number() over (order by a.y)::int4 as y from K a join K b on a.z = b.z',
  ),
  chain('values', 'select z, y + y as y from K', EXPANDS),
  chain('stars', 'select a.*, b.* from K a join K b on a.z = b.z', {
    first: 'select id as z from customer',
    last: 'select count(*) from K',
    expands: true,
  }),
  chain('NOT MATERIALIZED', 'select a.z, a.y from K a join K b on a.z = b.z', EXPANDS, 'not materialized '),
  chain('MATERIALIZED', 'select a.z, a.y from K a join K b on a.z = b.z', {}, 'materialized '),
  chain(
    'each level with a table more',
    'select a.z, a.y from K a join K b on a.z = b.z join customer c on c.id = a.z',
    { pairs: true },
  ),
  chain(
    'each level united with a table more',
    'select z, y from K union all select id, length(name) from customer',
    { pairs: true },
  ),
  chain(
    'each level with what an enum is of',
    'select a.z, least(a.y, b.y) as y from K a join K b on a.z = b.z',
    {
      last: 'select max(y) from K where z / 1 > 0',
      expands: true,
    },
  ),
  doubling(
    'recursive common tables',
    (n) =>
      `with recursive k0 as (${FIRST})${times(n, (i) => `, k${i + 1}(z, y) as (select z, y from k${i} union select a.z, b.y from k${i + 1} a join k${i} b on a.z = b.z)`)} select count(*) from k${n} where z / 1 > 0`,
    EXPANDS,
  ),
  nest(
    'a scalar subquery beside an aggregate',
    'select (K) + max(id) from customer',
    'select max(id) from customer',
  ),
  nest('GROUP BY 1', 'select (K) as y from customer group by 1', 'select max(id) from customer', EXPANDS),
  nest(
    'GROUP BY a name',
    'select (K) as y from customer group by y',
    'select max(id) from customer',
    EXPANDS,
  ),
  nest(
    'DISTINCT ON 1',
    'select distinct on (1) (K) as y from customer',
    'select max(id) from customer',
    EXPANDS,
  ),
  nest(
    'ROLLUP of 1',
    'select (K) as y from customer group by rollup (1)',
    'select max(id) from customer',
    EXPANDS,
  ),
  nest('GROUP BY 1 of nothing', 'select (K) as y group by 1', 'select 1', EXPANDS),
  nest(
    'BETWEEN of a query',
    'select case when (K) between 1 and 2 then 1 end',
    'select max(id) from customer',
    EXPANDS,
  ),
  nest(
    'CASE of a query',
    'select case (K) when 1 then 1 when 2 then 2 end',
    'select max(id) from customer',
    EXPANDS,
  ),
  nest(
    'a condition around a condition',
    'select id from customer where id / 1 > 0 and id in (K)',
    'select id from customer',
  ),
  nest(
    'EXISTS around a condition',
    'select id from customer a where id / 1 > 0 and exists (select 1 from customer b where b.id = a.id and b.id in (K))',
    'select id from customer',
  ),
  nest(
    'groups around groups',
    'select max(id) as id from (K) a where id / 1 > 0 group by id',
    'select id from customer',
  ),
  nest(
    'a level that reads its rows and what is around it',
    'select id from customer where id in (select max(a.id) from customer a where a.id in (K) group by a.id having a.id / 1 > 0)',
    'select id from customer',
    FREE,
  ),
  chain('the lesser of two labels', 'select a.z, least(a.y, b.y) as y from K a join K b on a.z = b.z', {
    ...LABELS,
    last: "select count(*) from K where y > 'open'",
  }),
  chain(
    'either of two labels',
    'select a.z, case when a.z > 1 then a.y else b.y end as y from K a join K b on a.z = b.z',
    {
      ...LABELS,
      last: "select count(*) from K where y > 'open'",
    },
  ),
  chain('labels united', 'select z, y from K union all select z, y from K', {
    ...LABELS,
    last: "select count(*) from K where y > 'open'",
  }),
  nest(
    'a label compared with the greatest',
    'select id as z, state as y from ticket where state > (select max(y) from (K) k)',
    'select id as z, state as y from ticket',
    LABELS,
  ),
  doubling(
    'queries beside an operator over rows',
    (n) =>
      `select similarity(name, 'x') + (${'select id from customer where id in ('.repeat(n)}select id from customer${')'.repeat(n)} limit 1) as s from customer`,
    { raw: false, asker: 'regional' },
  ),
];

const TWICE = 'select a.z, a.y from K a join K b on a.z = b.z';

/** The same over what the shop of the tests alone has: a bridge, a metric, passages, a walk. */
export const OF_THE_SHOP: readonly Doubling[] = [
  chain('over a bridge', TWICE, {
    first: 'select o.id as z, l.pieces as y from "order" o join line l on l.order_id = o.id',
    raw: false,
  }),
  chain('over a metric', TWICE, {
    first: 'select customer_id as z, measure(revenue)::int4 as y from "order" group by customer_id',
    raw: false,
  }),
  chain('over passages', 'select a.z, a.y from K a join K b on a.z = b.z', {
    first: "select id as z, length(text) as y from retrieve(facet => 'labels', query => 'tea', top_k => 2)",
    raw: false,
  }),
  chain('over a walk', TWICE, {
    first:
      "select id as z, quantity as y from traverse(anchor => 'customer', keys => (1), target => 'order')",
    raw: false,
  }),
];
