/** A shop whose tables are cut by customer, so that what belongs together stands together. */
const CUSTOMERS = 600;
const ORDERS = 6_000;

export const CUSTOMER_COLUMNS = 'id int4, region text, name text, email text';
export const ORDER_COLUMNS =
  'id int8, customer_id int4, region text, status text, quantity int4, amount numeric, placed date, note text';

export interface Size {
  readonly customers: number;
  readonly orders: number;
}

export const SMALL: Size = { customers: CUSTOMERS, orders: ORDERS };

/** SQL that fills the tables in one piece; every third customer is of the region `eu`. */
export function fill({ customers, orders }: Size): string {
  return `
  insert into one.customer select i, (array['eu', 'us', 'ap'])[1 + i % 3], 'name ' || i, 'mail' || i || '@example.org'
    from generate_series(1, ${customers}) i;
  insert into one.orders select i, 1 + i % ${customers}, (array['eu', 'us', 'ap'])[1 + (1 + i % ${customers}) % 3],
      (array['open', 'paid', 'sent', 'back'])[1 + i % 4], i % 10, (i % 1000) / 10.0, date '2026-01-01' + i % 300, 'note ' || i
    from generate_series(1, ${orders}) i`;
}

const CUT = Object.fromEntries(
  ['parts', 'one'].flatMap((schema) => [
    [
      `${schema}.customer`,
      {
        columns: {
          id: { type: 'int4' },
          region: { type: 'text' },
          name: { type: 'text' },
          email: { type: 'text', sensitivity: 'mail' },
        },
      },
    ],
    [
      `${schema}.orders`,
      {
        columns: {
          id: { type: 'int8' },
          customer_id: { type: 'int4' },
          region: { type: 'text' },
          status: { type: 'text' },
          quantity: { type: 'int4' },
          amount: { type: 'numeric' },
          placed: { type: 'date' },
          note: { type: 'text' },
        },
      },
    ],
  ]),
);

export const DECLARED = {
  ...CUT,
  'parts.drip': { columns: { id: { type: 'int4' }, note: { type: 'text' } } },
};

const customer = (source: string): object => ({
  source,
  primary_key: ['id'],
  columns: ['id', 'region', 'name', 'email'],
});
const orders = (source: string): object => ({
  source,
  primary_key: ['id'],
  entity_key_columns: ['id', 'customer_id'],
  columns: ['id', 'customer_id', 'region', 'status', 'quantity', 'amount', 'placed', 'note'],
});

const PAIRS = {
  customer: customer('db.parts.customer'),
  customer_one: customer('db.one.customer'),
  orders: orders('db.parts.orders'),
  orders_one: orders('db.one.orders'),
};

export const ENTITIES = {
  ...PAIRS,
  drip: { source: 'db.parts.drip', primary_key: ['id'], columns: ['id', 'note'] },
};

const REGIONAL = "region = attribute('region')";
/** Rows of the first server come at once, those of the third never. */
export const DRIP = {
  coordinator: `create table parts.drip (id int4, note text) partition by range (id);
    create foreign table parts.drip_1 partition of parts.drip for values from (0) to (10000)
      server node_1 options (schema_name 'part', table_name 'drip');
    create foreign table parts.drip_3 partition of parts.drip for values from (10000) to (20000)
      server node_3 options (schema_name 'part', table_name 'drip')`,
  first: `create table part.drip as select i as id, repeat('x', 100) as note from generate_series(1, 2000) i`,
  third: `create view part.drip as select 10000 + i as id, 'x' || pg_sleep(600)::text as note from generate_series(1, 3) i`,
};

const grants = (rows: string | null, unmask: readonly string[]): readonly object[] =>
  Object.keys(PAIRS).map((on) => ({ on, columns: '*', unmask, ...(rows === null ? {} : { rows }) }));

export const ROLES = {
  analyst: { grants: [...grants(null, []), { on: 'drip', columns: '*' }] },
  regional: { grants: grants(REGIONAL, []) },
  // Sees addresses of its own region in the clear, and all other rows masked.
  mixed: { grants: [...grants(null, []), ...grants(REGIONAL, ['mail'])] },
};

export const SUBJECTS = {
  'user:analyst': { ceiling: ['analyst'] },
  'user:regional': { ceiling: ['regional'], attributes: { region: 'eu' } },
  'user:mixed': { ceiling: ['mixed'], attributes: { region: 'eu' } },
  'user:admin': {
    ceiling: ['analyst', 'regional', 'mixed'],
    admin: ['TENANT_ADMIN'],
    attributes: { region: 'eu' },
  },
};

/** What people ask of such a shop; `{}` stands for nothing, or for the suffix of the tables in one piece. */
export const QUESTIONS: ReadonlyMap<string, string> = new Map([
  [
    'rows',
    "select id, amount from orders{} where placed >= date '2026-06-01' and quantity > 7 order by id limit 50",
  ],
  ['a row', 'select id, note from orders{} where id = 4712'],
  ['rows of a customer', 'select id, amount from orders{} where customer_id = 18 order by id'],
  ['a guarded condition', "select id from orders{} where lower(note) = 'note 4712'"],
  ['a condition that can fail', 'select count(*) from orders{} where 1000 / quantity > 200 and quantity > 0'],
  ['masked cells', 'select id, name, email from customer{} order by id limit 40'],
  ['a condition on masked cells', "select count(*) from customer{} where email = '[redacted]'"],
  ['like', "select count(*) from customer{} where name like 'name 1%'"],
  [
    'by the key',
    'select customer_id, sum(amount), count(*) from orders{} group by customer_id order by 2 desc, 1 limit 10',
  ],
  ['by something else', 'select status, sum(amount), count(*) from orders{} group by status order by status'],
  ['in all', 'select count(*), sum(amount), min(placed), max(quantity) from orders{}'],
  [
    'a join',
    'select c.id, o.amount from customer{} c join orders{} o on o.customer_id = c.id where o.quantity = 9 order by o.id limit 30',
  ],
  [
    'a join, by the key',
    'select c.id, sum(o.amount) from customer{} c join orders{} o on o.customer_id = c.id group by c.id order by 1 limit 20',
  ],
  [
    'a left join',
    'select c.id, o.id from customer{} c left join orders{} o on o.customer_id = c.id and o.quantity > 8 order by 1, 2 limit 30',
  ],
  [
    'a semi-join',
    'select count(*) from customer{} c where c.id in (select o.customer_id from orders{} o where o.amount > 99)',
  ],
  ['distinct', 'select distinct region from customer{} order by 1'],
  [
    'a window',
    'select id, rank() over (partition by customer_id order by amount desc, id) from orders{} order by id limit 30',
  ],
  [
    'a filter of an aggregate',
    "select customer_id, count(*) filter (where status = 'paid') from orders{} group by 1 order by 1 limit 10",
  ],
]);
