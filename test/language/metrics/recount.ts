import type { Customer, LineItem, Order, Product, Refund, Shop } from './shop.js';

/** The shop's figures counted without any SQL: rows in arrays, sums in cents. */

type Grain = 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';
export type Value = number | string | null;

export interface Asked {
  readonly metrics: readonly string[];
  readonly groupBy: readonly string[];
  /** On rows; each takes what a row leads to. */
  readonly where?: (row: Row) => boolean;
  readonly start?: number;
  /** Rows before this moment. */
  readonly before?: number;
}

/** A row of any entity, with what it leads to. */
interface Row {
  readonly order: Order | null;
  readonly customer: Customer | null;
  readonly product: Product | null;
  readonly time: number | null;
  readonly of: Order | LineItem | Refund;
}

type Entity = 'order' | 'line_item' | 'refund';
type Sum = (rows: readonly Row[]) => number | null;

const DAY = 86_400_000;

function rowsOf(shop: Shop): Readonly<Record<Entity, readonly Row[]>> {
  const customers = new Map(shop.customers.map((c) => [c.id, c]));
  const products = new Map(shop.products.map((p) => [p.id, p]));
  const ofOrder = (o: Order): Row => ({
    of: o,
    order: o,
    customer: o.customer_id === null ? null : (customers.get(o.customer_id) ?? null),
    product: null,
    time: o.placed_at,
  });
  const orders = new Map(shop.orders.map((o) => [o.id, ofOrder(o)]));
  return {
    order: [...orders.values()],
    line_item: shop.lineItems.map((of) => {
      const order = orders.get(of.order_id) ?? null;
      const product = of.product_id === null ? null : (products.get(of.product_id) ?? null);
      return { of, order: order?.order ?? null, customer: order?.customer ?? null, product, time: null };
    }),
    refund: shop.refunds.map((of) => {
      const order = orders.get(of.order_id) ?? null;
      return {
        of,
        order: order?.order ?? null,
        customer: order?.customer ?? null,
        product: null,
        time: of.day,
      };
    }),
  };
}

function total(values: readonly (number | null)[]): number | null {
  const present = values.filter((v) => v !== null);
  return present.length === 0 ? null : present.reduce((a, b) => a + b, 0);
}

const amounts = (rows: readonly Row[]): readonly (number | null)[] =>
  rows.map((r) => ('amount' in r.of ? r.of.amount : null));

const SUMS: Readonly<Record<string, { readonly of: Entity; readonly sum: Sum }>> = {
  orders: { of: 'order', sum: (rows) => rows.length },
  revenue: { of: 'order', sum: (rows) => total(amounts(rows.filter((r) => r.order?.status !== 'void'))) },
  average: {
    of: 'order',
    sum: (rows) => quotient(total(amounts(rows)), amounts(rows).filter((a) => a !== null).length),
  },
  buyers: {
    of: 'order',
    sum: (rows) => new Set(rows.flatMap((r) => r.order?.customer_id ?? [])).size,
  },
  opened: { of: 'order', sum: (rows) => rows.filter((r) => r.order?.status === 'open').length },
  paid: { of: 'order', sum: (rows) => rows.filter((r) => r.order?.status === 'paid').length },
  paid_share_of: {
    of: 'order',
    sum: (rows) => quotient(rows.filter((r) => r.order?.status === 'paid').length, rows.length),
  },
  pieces: {
    of: 'line_item',
    sum: (rows) => total(rows.map((r) => ('quantity' in r.of ? r.of.quantity : 0))),
  },
  lines: { of: 'line_item', sum: (rows) => rows.length },
  refunded: { of: 'refund', sum: (rows) => total(amounts(rows)) },
  refunds: { of: 'refund', sum: (rows) => rows.length },
};

function quotient(a: number | null, b: number | null): number | null {
  return a === null || b === null || b === 0 ? null : a / b;
}

/** When a span that ends with a period begins; null: with the beginning of time. */
type Begin = (end: number) => number | null;

const RUNNING: Readonly<Record<string, { readonly of: string; readonly begin: Begin }>> = {
  revenue_so_far: { of: 'revenue', begin: () => null },
  refunded_so_far: { of: 'refunded', begin: () => null },
  revenue_7_days: { of: 'revenue', begin: (end) => end - 7 * DAY },
  revenue_1_month: { of: 'revenue', begin: (end) => monthBefore(end) },
  revenue_of_month: { of: 'revenue', begin: (end) => beginOf(end - 1, 'month') },
  orders_of_week: { of: 'orders', begin: (end) => beginOf(end - 1, 'week') },
  buyers_30_days: { of: 'buyers', begin: (end) => end - 30 * DAY },
  average_so_far: { of: 'average', begin: () => null },
  paid_share_so_far: { of: 'paid_share_of', begin: () => null },
};

/** The same day of the month before, or its last. */
function monthBefore(time: number): number {
  const at = new Date(time);
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 0)).getUTCDate();
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - 1, Math.min(at.getUTCDate(), last)) + (time % DAY);
}

/** Counts rows that follow rows of `base`: those of `later` equal in `by`, no later than `within`, each counted once. */
const FOLLOWED: Readonly<
  Record<
    string,
    {
      readonly base: (r: Row) => boolean;
      readonly of: Entity;
      readonly later: (r: Row) => boolean;
      readonly by: (r: Row) => Value;
      readonly within: number;
      readonly sum: Sum;
    }
  >
> = {
  settled_after: {
    base: (r) => r.order?.status === 'open',
    of: 'order',
    later: (r) => r.order?.status === 'paid',
    by: (r) => r.order?.customer_id ?? null,
    within: 30 * DAY,
    sum: (rows) => rows.length,
  },
  settled_there: {
    base: (r) => r.order?.status === 'open',
    of: 'order',
    later: (r) => r.order?.status === 'paid' && r.customer !== null,
    by: (r) =>
      ((id) => (id === undefined || id === null ? null : `${id} ${r.order?.region}`))(r.order?.customer_id),
    within: Number.POSITIVE_INFINITY,
    sum: (rows) => total(amounts(rows)),
  },
  refunds_after: {
    base: () => true,
    of: 'refund',
    later: () => true,
    by: (r) => ('order_id' in r.of ? r.of.order_id : r.of.id),
    within: Number.POSITIVE_INFINITY,
    sum: (rows) => rows.length,
  },
};

type Figures = ReadonlyMap<string, number | null>;
type Figure = (leaf: (name: string) => number | null) => number | null;

/** Parts of metrics, by the sums above. */
const MADE: Readonly<Record<string, { readonly of: readonly string[]; readonly value: Figure }>> = {
  paid_share: { of: ['paid', 'orders'], value: (f) => quotient(f('paid'), f('orders')) },
  piece_price: { of: ['revenue', 'pieces'], value: (f) => quotient(f('revenue'), f('pieces')) },
  refund_rate: { of: ['refunded', 'revenue'], value: (f) => quotient(f('refunded'), f('revenue')) },
  net: { of: ['revenue', 'refunded'], value: (f) => (f('revenue') ?? 0) - (f('refunded') ?? 0) },
  settling: { of: ['settled_after', 'opened'], value: (f) => quotient(f('settled_after'), f('opened')) },
  per_order: { of: ['revenue', 'orders'], value: (f) => quotient(f('revenue'), f('orders')) },
  net_so_far: {
    of: ['revenue_so_far', 'refunded_so_far'],
    value: (f) => (f('revenue_so_far') ?? 0) - (f('refunded_so_far') ?? 0),
  },
};

/** Metrics whose unit is money: the shop counts cents, the database whole ones. */
const MONEY = new Set(
  'settled_there revenue average refunded net per_order piece_price revenue_so_far refunded_so_far net_so_far revenue_7_days revenue_1_month revenue_of_month average_so_far'.split(
    ' ',
  ),
);

function beginOf(time: number, grain: Grain): number {
  const at = new Date(time);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  switch (grain) {
    case 'hour':
      return time - (time % 3_600_000);
    case 'day':
      return time - (time % DAY);
    case 'week':
      return beginOf(time, 'day') - ((at.getUTCDay() + 6) % 7) * DAY;
    case 'month':
      return Date.UTC(year, month);
    case 'quarter':
      return Date.UTC(year, month - (month % 3));
    case 'year':
      return Date.UTC(year);
    default: {
      const unknown: never = grain;
      return unknown;
    }
  }
}

function endOf(begin: number, grain: Grain): number {
  const at = new Date(begin);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  if (grain === 'hour') return begin + 3_600_000;
  if (grain === 'day') return begin + DAY;
  if (grain === 'week') return begin + 7 * DAY;
  const months = grain === 'month' ? 1 : grain === 'quarter' ? 3 : 12;
  return Date.UTC(year, month + months);
}

const KEYS: Readonly<Record<string, (row: Row) => Value>> = {
  order__region: (r) => r.order?.region ?? null,
  order__status: (r) => r.order?.status ?? null,
  customer__region: (r) => r.customer?.region ?? null,
  customer__email: (r) => r.customer?.email ?? null,
  customer: (r) => r.customer?.id ?? null,
  product__label: (r) => r.product?.label ?? null,
};

function keyOf(name: string): (row: Row) => Value {
  const grain = grainIn(name);
  const plain = KEYS[name];
  if (plain !== undefined) return plain;
  if (grain === null) throw new Error(`the recount has no key ${name}`);
  const time = name.startsWith('metric_time') ? (r: Row) => r.time : (r: Row) => r.order?.placed_at ?? null;
  return (r) => {
    const at = time(r);
    return at === null ? null : shown(beginOf(at, grain), grain);
  };
}

function grainIn(name: string): Grain | null {
  const last = name.split('__').at(-1) ?? '';
  return (['hour', 'day', 'week', 'month', 'quarter', 'year'] as const).find((g) => g === last) ?? null;
}

function shown(time: number, grain: Grain): string {
  const text = new Date(time).toISOString();
  return grain === 'hour' ? text.slice(0, 19) : text.slice(0, 10);
}

/** Rows of the answer: keys, then figures, in the order asked. */
export function recount(shop: Shop, asked: Asked): readonly (readonly Value[])[] {
  const rows = rowsOf(shop);
  const leaves = [...new Set(asked.metrics.flatMap((m) => MADE[m]?.of ?? [m]))];
  const groups = new Map<string, { keys: readonly Value[]; figures: Map<string, number | null> }>();
  const put = (keys: readonly Value[], leaf: string, value: number | null): void => {
    const id = JSON.stringify(keys);
    const group = groups.get(id) ?? { keys, figures: new Map<string, number | null>() };
    group.figures.set(leaf, value);
    groups.set(id, group);
  };
  for (const leaf of leaves) {
    const figures = FOLLOWED[leaf] !== undefined ? followed : RUNNING[leaf] === undefined ? plain : running;
    for (const { keys, value } of figures(leaf, rows, asked)) put(keys, leaf, value);
  }
  return [...groups.values()].map(({ keys, figures }) => [
    ...keys,
    ...asked.metrics.map((m) => figureOf(m, figures)),
  ]);
}

function figureOf(metric: string, figures: Figures): number | null {
  const of = (name: string): number | null => figures.get(name) ?? null;
  const value = MADE[metric]?.value(of) ?? (MADE[metric] === undefined ? of(metric) : null);
  return value === null || !MONEY.has(metric) ? value : value / 100;
}

interface Keyed {
  readonly keys: readonly Value[];
  readonly value: number | null;
}

function plain(leaf: string, all: ReturnType<typeof rowsOf>, asked: Asked): readonly Keyed[] {
  const found = SUMS[leaf];
  if (found === undefined) throw new Error(`the recount has no metric ${leaf}`);
  const rows = all[found.of].filter(
    (r) => (asked.where?.(r) ?? true) && within(r.time, asked.start, asked.before),
  );
  const groups = grouped(rows, asked.groupBy.map(keyOf));
  if (asked.groupBy.length === 0) return [{ keys: [], value: found.sum(rows) }];
  return groups.map(({ keys, members }) => ({ keys, value: found.sum(members) }));
}

function followed(leaf: string, all: ReturnType<typeof rowsOf>, asked: Asked): readonly Keyed[] {
  const found = FOLLOWED[leaf];
  if (found === undefined) throw new Error(`the recount has no conversion ${leaf}`);
  const chosen = all.order.filter(
    (r) => found.base(r) && (asked.where?.(r) ?? true) && within(r.time, asked.start, asked.before),
  );
  const after = new Map<Row, Row[]>(chosen.map((r) => [r, []]));
  for (const later of all[found.of].filter(found.later)) {
    const at = later.time;
    if (at === null || found.by(later) === null) continue;
    const before = chosen.filter(
      (r) => r.time !== null && r.time <= at && at - r.time < found.within && found.by(r) === found.by(later),
    );
    const last = before.reduce<Row | null>((a, b) => ((a?.time ?? 0) > (b.time ?? 0) ? a : b), null);
    if (last !== null) after.get(last)?.push(later);
  }
  const ofRows = (rows: readonly Row[]): number | null => found.sum(rows.flatMap((r) => after.get(r) ?? []));
  if (asked.groupBy.length === 0) return [{ keys: [], value: ofRows(chosen) }];
  return grouped(chosen, asked.groupBy.map(keyOf)).map(({ keys, members }) => ({
    keys,
    value: ofRows(members),
  }));
}

function within(time: number | null, start: number | undefined, before: number | undefined): boolean {
  if (start === undefined && before === undefined) return true;
  return time !== null && (start === undefined || time >= start) && (before === undefined || time < before);
}

function grouped(rows: readonly Row[], keyFunctions: readonly ((r: Row) => Value)[]) {
  const groups = new Map<string, { keys: readonly Value[]; members: Row[] }>();
  for (const row of rows) {
    const keys = keyFunctions.map((k) => k(row));
    const id = JSON.stringify(keys);
    const known = groups.get(id);
    if (known === undefined) groups.set(id, { keys, members: [row] });
    else known.members.push(row);
  }
  return [...groups.values()];
}

function running(leaf: string, all: ReturnType<typeof rowsOf>, asked: Asked): readonly Keyed[] {
  const { of, begin } = RUNNING[leaf] ?? { of: '', begin: () => null };
  const base = SUMS[of];
  const at = asked.groupBy.findIndex((g) => g.startsWith('metric_time'));
  const grain = grainIn(asked.groupBy[at] ?? '');
  if (base === undefined || grain === null) throw new Error(`the recount cannot run ${leaf}`);
  const rows = all[base.of].filter(
    (r) => r.time !== null && (asked.where?.(r) ?? true) && within(r.time, undefined, asked.before),
  );
  const others = asked.groupBy.filter((_, i) => i !== at).map(keyOf);
  const times = rows.map((r) => r.time ?? 0);
  const first = asked.start ?? Math.min(...times);
  const last = asked.before === undefined ? Math.max(...times) : asked.before - 1;
  const answer: Keyed[] = [];
  if (rows.length === 0 && others.length > 0) return answer;
  if (!Number.isFinite(first) || !Number.isFinite(last)) return answer;
  const combinations = others.length === 0 ? [{ keys: [], members: [...rows] }] : grouped(rows, others);
  for (let from = beginOf(first, grain); from <= last; from = endOf(from, grain)) {
    const end = endOf(from, grain);
    const since = begin(end);
    for (const { keys, members } of combinations) {
      const taken = members.filter((r) => (r.time ?? 0) < end && (since === null || (r.time ?? 0) >= since));
      const whole = [...keys.slice(0, at), shown(from, grain), ...keys.slice(at)];
      answer.push({ keys: whole, value: base.sum(taken) });
    }
  }
  return answer;
}
