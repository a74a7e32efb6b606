/** A group and its figures, as text; null is NULL. */
export type Row = readonly (string | null)[];

interface Order {
  readonly id: number;
  readonly customer: number;
  readonly region: string;
  /** Amount in cents. */
  readonly amount: number;
  readonly quantities: readonly number[];
}

const REGIONS = ['eu', 'us', 'asia'] as const;
const CUSTOMERS = Array.from({ length: 60 }, (_, i) => ({ id: i + 1, region: REGIONS[i % 3] ?? '' }));

/** Some customers have no order, some only orders hidden from the caller; orders have zero to four line items. */
const ORDERS: readonly Order[] = Array.from({ length: 200 }, (_, i) => ({
  id: i + 1,
  customer: 1 + ((i * i + 7 * i) % 50),
  region: REGIONS[(i * 5) % 3] ?? '',
  amount: 1_000 + ((i * 7_919) % 90_000),
  quantities: Array.from({ length: i % 5 }, (_, item) => 1 + ((i + 3 * item) % 9)),
}));

/** Tables and rows of the shop. */
export const SHOP = `
  create schema shop;
  create table shop.customers (id int8 primary key, region text not null);
  create table shop.orders (
    id int8 primary key, customer_id int8 not null, status text not null, region text not null, email text,
    amount numeric not null, created_at timestamp not null
  );
  create table shop.line_items (id int8 primary key, order_id int8 not null, quantity int4 not null);
  insert into shop.customers values ${CUSTOMERS.map((c) => `(${c.id}, '${c.region}')`).join(', ')};
  insert into shop.orders values ${ORDERS.map(orderRow).join(', ')};
  insert into shop.line_items values ${ORDERS.flatMap(itemRows).join(', ')};
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;
`;

function orderRow({ id, customer, region, amount }: Order): string {
  return `(${id}, ${customer}, 'paid', '${region}', null, ${amount / 100}, '2026-03-01')`;
}

function itemRows({ id, quantities }: Order): readonly string[] {
  return quantities.map((quantity, item) => `(${10 * id + item}, ${id}, ${quantity})`);
}

/** Correct answers, computed without any SQL. */
export const ORACLE: Readonly<Record<'fan-out' | 'left join', readonly Row[]>> = {
  'fan-out': REGIONS.map((region) => {
    const members = new Set(CUSTOMERS.filter((c) => c.region === region).map((c) => c.id));
    const orders = ORDERS.filter((o) => members.has(o.customer));
    const cents = orders.reduce((sum, o) => sum + o.amount, 0);
    const units = orders.flatMap((o) => o.quantities).reduce((sum, q) => sum + q, 0);
    return [region, String(cents / 100), String(units)];
  }),
  'left join': CUSTOMERS.map(({ id }) => {
    const visible = ORDERS.filter((o) => o.customer === id && o.region === 'eu');
    return [String(id), String(visible.length)];
  }),
};
