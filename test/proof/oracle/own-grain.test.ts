import { compile, emit, QueryError } from 'osl-compiler';
import t from 'tap';
import { CATALOG } from '../golden/catalog.js';
import { openEngine } from '../golden/engine.js';
import { callerNamed, valuesFor } from '../golden/outcome.js';
import { type Dice, diceFrom } from './dice.js';

/**
 * `MEASURE` over joins that repeat rows, against SQL by hand over the rows that the caller may see: for each metric the
 * distinct rows of its entity that the join and WHERE leave, aggregated by the same keys.
 */
const WORLDS = 12;
const PER_WORLD = 30;

const engine = await openEngine(['shop']);
t.teardown(() => engine.close());

/** Aliases by the side that has several: a customer has orders, an order has line items, of which each is of a product. */
const DEPTH: Readonly<Record<string, number>> = { c: 0, o: 1, l: 2, p: 3 };

interface Measured {
  readonly name: string;
  readonly of: 'c' | 'o' | 'l';
  /** Over the columns of `x`, one row of the entity each, for which `f` holds. */
  readonly sql: (filter: string) => string;
  readonly counts?: boolean;
}

const REVENUE = "sum(y.amount) filter (where y.status <> 'void')";

const METRICS: readonly Measured[] = [
  { name: 'revenue', of: 'o', sql: (f) => `sum(x.amount) filter (where x.status <> 'void' and ${f})` },
  { name: 'orders', of: 'o', sql: (f) => `count(*) filter (where ${f})`, counts: true },
  { name: 'buyers', of: 'o', sql: (f) => `count(distinct x.customer_id) filter (where ${f})`, counts: true },
  {
    name: 'vip_revenue',
    of: 'o',
    sql: (f) =>
      `sum(x.amount) filter (where x.customer_id in (select v.id from customer v where v.vip) and x.status <> 'void' and ${f})`,
  },
  { name: 'average_score', of: 'c', sql: (f) => `avg(x.score) filter (where ${f})` },
  {
    name: 'median_order',
    of: 'o',
    sql: (f) => `percentile_cont(0.5) within group (order by x.amount) filter (where ${f})`,
  },
  { name: 'pieces', of: 'l', sql: (f) => `sum(x.quantity) filter (where ${f})` },
];

const FROMS: readonly { readonly sql: string; readonly has: string }[] = [
  { sql: '"order" o join line_item l on l.order_id = o.id', has: 'ol' },
  { sql: '"order" o left join line_item l on l.order_id = o.id', has: 'ol' },
  {
    sql: 'customer c join "order" o on o.customer_id = c.id join line_item l on l.order_id = o.id',
    has: 'col',
  },
  {
    sql: 'customer c left join "order" o on o.customer_id = c.id left join line_item l on l.order_id = o.id',
    has: 'col',
  },
  { sql: 'customer c left join "order" o on o.customer_id = c.id', has: 'co' },
  {
    sql: 'customer c left join ("order" o join line_item l on l.order_id = o.id) on c.id = o.customer_id',
    has: 'col',
  },
  {
    sql: 'line_item l join product p on p.id = l.product_id right join "order" o on l.order_id = o.id',
    has: 'olp',
  },
];

const CONDITIONS: readonly string[] = [
  'l.quantity > 1',
  'l.id is null',
  'o.amount > l.price',
  'o.amount > 20 or l.quantity = 1',
  "o.status = 'open'",
  'o.id is not null',
  'c.vip',
  'c.score > 3 or o.amount < 30',
  'p.weight > 2',
];

const KEYS: readonly string[] = ['c.name', 'c.region', 'o.region', 'o.status', 'l.quantity', 'p.title'];

/** True if FROM has all that `sql` names. */
const fits = (sql: string, has: string): boolean =>
  [...sql.matchAll(/\b([colp])\./g)].every(([, alias]) => has.includes(alias ?? ''));

const COLUMNS: Readonly<Record<Measured['of'], readonly string[]>> = {
  c: ['id', 'name', 'score', 'vip', 'region'],
  o: ['id', 'customer_id', 'amount', 'status', 'region', 'placed'],
  l: ['id', 'order_id', 'product_id', 'quantity', 'price'],
};

interface Question {
  readonly from: (typeof FROMS)[number];
  readonly keys: readonly string[];
  readonly where: string | null;
  readonly figures: readonly { readonly metric: Measured; readonly filter: string | null }[];
}

function randomQuestion(dice: Dice): Question {
  const from = dice.of(FROMS);
  const conditions = CONDITIONS.filter((c) => fits(c, from.has));
  const keys = dice.some(
    KEYS.filter((k) => fits(k, from.has)),
    0.3,
  );
  const metrics = METRICS.filter((m) => from.has.includes(m.of));
  const figures = dice.times(1, 3, () => ({
    metric: dice.of(metrics),
    filter: dice.chance(0.3) ? dice.of(conditions) : null,
  }));
  return { from, keys, where: dice.chance(0.6) ? dice.of(conditions) : null, figures };
}

function asAsked({ from, keys, where, figures }: Question): string {
  const outputs = figures.map(
    ({ metric, filter }) => `measure(${metric.name})${filter === null ? '' : ` filter (where ${filter})`}`,
  );
  const tail = keys.length === 0 ? '' : ` group by ${keys.join(', ')}`;
  const head = [...keys, ...outputs, 'count(*)'].join(', ');
  return `select ${head} from ${from.sql}${where === null ? '' : ` where ${where}`}${tail}`;
}

const shopOf = (region: string | null): string =>
  [
    `customer as (select id, name, score, vip, region_code as region from shop.customers${region === null ? '' : ` where region_code = '${region}'`})`,
    `"order" as (select * from shop.orders${region === null ? '' : ` where region = '${region}'`})`,
    'line_item as (select * from shop.line_items)',
    'product as (select * from shop.products)',
  ].join(', ');

/** Each metric's rows by themselves; what is joined on is told apart by NULL as by any value. */
function byHand({ from, keys, where, figures }: Question, region: string | null): string {
  const rows = `${from.sql}${where === null ? '' : ` where ${where}`}`;
  const named = keys.map((k, i) => `${k} as k${i}`).join(', ');
  const parts = figures.map(({ metric, filter }, n) => {
    const { of, sql } = metric;
    const list = [...(named === '' ? [] : [named]), `${of}.*`, `bool_or(${filter ?? 'true'}) as f`];
    const by = [...keys, ...COLUMNS[of].map((c) => `${of}.${c}`)].join(', ');
    const once = `select ${list.join(', ')} from ${rows}${where === null ? ' where' : ' and'} ${of}.id is not null group by ${by}`;
    const grouped = `select ${[...keys.map((_, i) => `k${i}`), `${sql('f').replaceAll('x.', 'y.')} as v`].join(', ')} from (${once}) as y${keys.length === 0 ? '' : ` group by ${keys.map((_, i) => `k${i}`).join(', ')}`}`;
    const on = keys.map((_, i) => `g.k${i} is not distinct from m${n}.k${i}`).join(' and ');
    return `left join (${grouped}) as m${n} on ${on === '' ? 'true' : on}`;
  });
  const shown = figures.map(({ metric }, n) => (metric.counts === true ? `coalesce(m${n}.v, 0)` : `m${n}.v`));
  const all = `select ${[...(named === '' ? [] : [named]), 'count(*) as n'].join(', ')} from ${rows}${keys.length === 0 ? '' : ` group by ${keys.join(', ')}`}`;
  const head = [...keys.map((_, i) => `g.k${i}`), ...shown, 'g.n'].join(', ');
  return `with ${shopOf(region)} select ${head} from (${all}) as g ${parts.join(' ')}`.replace(
    / where ([^()]*? or [^()]*?) and ([col])\.id is not null/g,
    ' where ($1) and $2.id is not null',
  );
}

/** True if a row of some metric has several of what the question is grouped by. */
function isUnanswerable({ keys, figures }: Question): boolean {
  const depth = (alias: string): number => DEPTH[alias] ?? 0;
  return figures.some(({ metric }) =>
    keys.some((k) => depth(k.charAt(0)) > (metric.of === 'l' ? 3 : depth(metric.of))),
  );
}

function randomRows(dice: Dice): string {
  const text = (v: string | number | null): string => (v === null ? 'null' : `'${v}'`);
  const maybe = <T>(value: T): T | null => (dice.chance(0.15) ? null : value);
  const insert = (table: string, rows: readonly (readonly (string | number | null)[])[]): string =>
    rows.length === 0
      ? ''
      : `insert into shop.${table} values ${rows.map((r) => `(${r.map(text).join(', ')})`).join(', ')};`;
  const uuid = (n: number): string => `00000000-0000-0000-0000-00000000000${n}`;
  const region = (): string => dice.of(['eu', 'us']);
  const customers = dice.times(2, 5, (i) => [
    i + 1,
    dice.of(['Ada', 'Bo']),
    maybe(dice.upTo(9)),
    dice.of(['t', 'f']),
    region(),
  ]);
  const orders = dice.times(3, 9, (i) => [
    i + 1,
    dice.upTo(6),
    maybe(dice.upTo(60)),
    maybe(dice.of(['open', 'paid', 'void'])),
    region(),
    maybe(
      dice.chance(0.05)
        ? 'infinity'
        : `2024-0${1 + dice.upTo(3)}-${1 + dice.upTo(28)} ${dice.upTo(23)}:30:00+00`,
    ),
  ]);
  const items = dice.times(3, 16, (i) => [
    i + 1,
    maybe(dice.upTo(10)),
    uuid(1 + dice.upTo(2)),
    maybe(dice.upTo(3)),
    maybe(dice.upTo(50)),
  ]);
  const products = [1, 2].map((n) => [uuid(n), dice.of(['Lamp', 'Rug']), dice.upTo(5), dice.upTo(80)]);
  return `drop table if exists shop.customers, shop.orders, shop.line_items, shop.products;
    create table shop.customers (id int4, name text, score numeric, vip bool, region_code text);
    create table shop.orders (id int4, customer_id int4, amount numeric, status text, region text, placed timestamptz);
    create table shop.line_items (id int8, order_id int4, product_id uuid, quantity int4, price numeric);
    create table shop.products (id uuid, title text, weight float8, price numeric);
    ${insert('customers', customers)} ${insert('orders', orders)} ${insert('line_items', items)} ${insert('products', products)}`;
}

t.test('each metric counts each row of its entity once, whatever joins it', async (t) => {
  const count = { answered: 0, refused: 0, filled: 0 };
  for (let seed = 0; seed < WORLDS; seed++) {
    const dice = diceFrom(seed);
    await engine.setUp(randomRows(dice));
    for (let i = 0; i < PER_WORLD; i++) {
      const question = randomQuestion(dice);
      const [caller, region] = dice.of([
        ['owner', null],
        ['regional', 'eu'],
      ] as const);
      const told = `${seed}.${i} as ${caller}: ${asAsked(question)}`;
      const answer = await answerOf(asAsked(question), caller);
      if (isUnanswerable(question)) {
        t.equal(answer, 'E1001', told);
        count.refused++;
        continue;
      }
      const wanted = await engine.ask(byHand(question, region), []);
      if (wanted.sqlstate !== null) throw new Error(`${wanted.sqlstate}: ${byHand(question, region)}`);
      const rows = wanted.rows.map((r) => JSON.stringify(r)).sort();
      t.same(answer, rows, told);
      count.answered++;
      if (rows.length > 1) count.filled++;
    }
  }
  t.ok(count.answered > 150 && count.refused > 40 && count.filled > 40, JSON.stringify(count));
});

/** Metrics of other periods: which rows they take, between `begin` and `next`, where the period after it begins. */
const SPANNED: readonly {
  readonly name: string;
  readonly agg: string;
  readonly takes: (g: string) => string;
}[] = [
  { name: 'revenue_so_far', agg: REVENUE, takes: (g) => `y.placed < g.m + interval '1 ${g}'` },
  {
    name: 'buyers_30_days',
    agg: 'count(distinct y.customer_id)',
    takes: (g) =>
      `y.placed < g.m + interval '1 ${g}' and y.placed >= g.m + interval '1 ${g}' - interval '30 days'`,
  },
  {
    name: 'revenue_of_month',
    agg: REVENUE,
    takes: (g) =>
      `y.placed < g.m + interval '1 ${g}' and y.placed >= date_trunc('month', g.m + interval '1 ${g}' - interval '1 microsecond')`,
  },
  {
    name: 'revenue_last_month',
    agg: REVENUE,
    takes: (g) =>
      `y.placed < g.m - interval '1 month' + interval '1 ${g}' and y.placed >= g.m - interval '1 month'`,
  },
  {
    name: 'orders_at_first',
    agg: 'count(*)',
    takes: (g) =>
      `y.placed < date_trunc('year', g.m) + interval '1 ${g}' and y.placed >= date_trunc('year', g.m)`,
  },
];

t.test('a metric of other periods takes their rows, in the groups of the statement', async (t) => {
  const count = { rows: 0 };
  for (let seed = 0; seed < 8; seed++) {
    const dice = diceFrom(seed + 1000);
    await engine.setUp(randomRows(dice));
    for (let i = 0; i < 12; i++) {
      const from = dice.of(FROMS.filter((f) => f.has.includes('o')));
      const where = dice.chance(0.4) ? dice.of(CONDITIONS.filter((c) => fits(c, from.has))) : null;
      const keys = dice.some(
        KEYS.filter((k) => /^[co]/.test(k) && fits(k, from.has)),
        0.3,
      );
      const grain = dice.of(['day', 'week', 'month']);
      const { name, agg, takes } = dice.of(SPANNED);
      const [caller, region] = dice.of([
        ['owner', null],
        ['regional', 'eu'],
      ] as const);
      const period = `date_trunc('${grain}', o.placed)`;
      const tail = `from ${from.sql}${where === null ? '' : ` where ${where}`}`;
      const group = [period, ...keys].join(', ');
      const asked = `select ${group}, measure(${name}), count(*) ${tail} group by ${group}`;
      const named = keys.map((k, n) => `${k} as k${n}`);
      const same = keys.map((_, n) => ` and y.k${n} is not distinct from g.k${n}`).join('');
      const once = `select distinct ${[...COLUMNS.o.map((c) => `o.${c}`), ...named].join(', ')} ${tail}`;
      const value = `select ${agg} from (${once}) y where y.id is not null and isfinite(y.placed) and isfinite(g.m) and ${takes(grain)}${same}`;
      const groups = `select ${[`${period} as m`, ...named, 'count(*) as n'].join(', ')} ${tail} group by ${group}`;
      const shown = ['g.m', ...keys.map((_, n) => `g.k${n}`), `(${value})`, 'g.n'].join(', ');
      const wanted = await engine.ask(`with ${shopOf(region)} select ${shown} from (${groups}) g`, []);
      if (wanted.sqlstate !== null) throw new Error(`${wanted.sqlstate}: ${shown} from ${groups}`);
      const rows = wanted.rows.map((r) => JSON.stringify(r)).sort();
      t.same(await answerOf(asked, caller), rows, `${seed}.${i} as ${caller}: ${asked}`);
      count.rows += rows.length;
    }
  }
  t.ok(count.rows > 100, JSON.stringify(count));
});

/** Conversions: the later event is attributed to the last base event that is equal in `same`, if there is one. */
const CONVERTED: readonly {
  readonly name: string;
  readonly agg: string;
  readonly same: readonly string[];
  readonly after: string;
}[] = [
  {
    name: 'settled_after',
    agg: 'sum(a.amount) filter (where (select c.vip from customer c where c.id = a.customer_id) is not null)',
    same: ['customer_id'],
    after: "z.placed - interval '30 days'",
  },
  {
    name: 'settling',
    agg: "count(*)::numeric / nullif((select count(*) from once y where y.status = 'open' and SAME), 0)",
    same: ['customer_id', 'region'],
    after: "'-infinity'",
  },
];

t.test('a conversion counts what followed, once and in the group of what it followed', async (t) => {
  const count = { rows: 0, converted: 0 };
  for (let seed = 0; seed < 12; seed++) {
    const dice = diceFrom(seed + 2000);
    await engine.setUp(`${randomRows(dice)}
      update shop.orders set status = case when id % 2 = 0 then 'paid' else 'open' end where id % 5 <> 0;
      update shop.orders set customer_id = 1 + customer_id % 2;`);
    for (let i = 0; i < 12; i++) {
      const from = dice.of(FROMS.filter((f) => f.has.includes('o')));
      const where = dice.chance(0.3) ? dice.of(CONDITIONS.filter((c) => fits(c, from.has))) : null;
      const keys = dice.some(
        KEYS.filter((k) => /^[co]/.test(k) && fits(k, from.has)),
        0.3,
      );
      const filter = dice.chance(0.3) ? dice.of(CONDITIONS.filter((c) => fits(c, from.has))) : null;
      const { name, agg, same, after } = dice.of(CONVERTED);
      const [caller, region] = dice.of([
        ['owner', null],
        ['regional', 'eu'],
      ] as const);
      const tail = `from ${from.sql}${where === null ? '' : ` where (${where})`}`;
      const group = keys.length === 0 ? '' : ` group by ${keys.join(', ')}`;
      const measured = `measure(${name})${filter === null ? '' : ` filter (where ${filter})`}`;
      const asked = `select ${[...keys, measured, 'count(*)'].join(', ')} ${tail}${group}`;
      const named = keys.map((k, n) => `${k} as k${n}`);
      const chosen = filter === null ? '' : `${where === null ? ' where' : ' and'} (${filter})`;
      const once = `select distinct ${[...COLUMNS.o.map((c) => `o.${c}`), ...named].join(', ')} ${tail}${chosen}`;
      const equal = [...same.map((c) => `b.${c} = z.${c}`), 'b.placed <= z.placed', `b.placed > ${after}`];
      const last = ['b.placed desc', ...keys.map((_, n) => `b.k${n}`)].join(', ');
      const attributed = `select z.*${keys.map((_, n) => `, b.k${n}`).join('')} from "order" z cross join lateral (select * from once b where b.status = 'open' and isfinite(b.placed) and ${equal.join(' and ')} order by ${last} limit 1) b where z.status = 'paid' and isfinite(z.placed)`;
      const alike = (row: string): string =>
        ['true', ...keys.map((_, n) => `${row}.k${n} is not distinct from g.k${n}`)].join(' and ');
      const value = `select ${agg.replace('SAME', alike('y'))} from attributed a where ${alike('a')}`;
      const groups = `select ${[...named, 'count(*) as n'].join(', ')} ${tail}${group}`;
      const shown = [...keys.map((_, n) => `g.k${n}`), `(${value})`, 'g.n'].join(', ');
      const whole = `with ${shopOf(region)}, once as (${once}), attributed as (${attributed}) select ${shown} from (${groups}) g`;
      const wanted = await engine.ask(whole, []);
      if (wanted.sqlstate !== null) throw new Error(`${wanted.sqlstate}: ${whole}`);
      const rows = wanted.rows.map((r) => JSON.stringify(r)).sort();
      t.same(await answerOf(asked, caller), rows, `${seed}.${i} as ${caller}: ${asked}`);
      count.rows += rows.length;
      count.converted += wanted.rows.filter((r) => Number(r[keys.length] ?? 0) > 0).length;
    }
  }
  t.ok(count.rows > 200 && count.converted > 30, JSON.stringify(count));
});

async function answerOf(text: string, name: string): Promise<readonly string[] | string> {
  const caller = callerNamed(name);
  try {
    const { sql, slots } = emit(compile(text, CATALOG, caller.access));
    const { rows, sqlstate } = await engine.ask(sql, valuesFor(slots, caller, []));
    return sqlstate ?? rows.map((r) => JSON.stringify(r)).sort();
  } catch (error) {
    if (error instanceof QueryError) return error.code;
    throw error;
  }
}
