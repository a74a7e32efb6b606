import {
  and,
  asc,
  avg,
  between,
  count,
  countDistinct,
  desc,
  eq,
  exists,
  gt,
  ilike,
  inArray,
  isNull,
  like,
  max,
  not,
  or,
  relations,
  sql,
  sum,
} from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, date, integer, jsonb, numeric, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import pg from 'pg';

const e = pgSchema('entities');
const customer = e.table('customer', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  email: text('email'),
  born: date('born'),
  region: text('region').notNull(),
  signedUp: timestamp('signed_up', { withTimezone: true }),
});
const order = e.table('order', {
  id: bigint('id', { mode: 'number' }).primaryKey(),
  customerId: integer('customer_id').notNull(),
  region: text('region'),
  status: text('status'),
  quantity: integer('quantity'),
  amount: numeric('amount'),
  placedAt: timestamp('placed_at', { withTimezone: true }),
  note: text('note'),
});
const payment = e.table('payment', {
  id: integer('id').primaryKey(),
  orderId: bigint('order_id', { mode: 'number' }),
  method: text('method'),
  paid: numeric('paid'),
});
const category = e.table('category', {
  id: integer('id').primaryKey(),
  parentId: integer('parent_id'),
  name: text('name'),
});
const product = e.table('product', {
  id: integer('id').primaryKey(),
  categoryId: integer('category_id'),
  label: text('label'),
  price: numeric('price'),
  specs: jsonb('specs'),
});
const cr = relations(customer, ({ many }) => ({ orders: many(order) }));
const or_ = relations(order, ({ one, many }) => ({
  customer: one(customer, { fields: [order.customerId], references: [customer.id] }),
  payments: many(payment),
}));
const pr = relations(payment, ({ one }) => ({
  order: one(order, { fields: [payment.orderId], references: [order.id] }),
}));
const catr = relations(category, ({ many }) => ({ products: many(product) }));
const prr = relations(product, ({ one }) => ({
  category: one(category, { fields: [product.categoryId], references: [category.id] }),
}));
const pool = new pg.Pool({ max: 1 });
const db = drizzle(pool, { schema: { customer, order, payment, category, product, cr, or_, pr, catr, prr } });
const go = async (q) => {
  try {
    await q;
  } catch (x) {
    console.error(String(x).slice(0, 300), String(x.cause ?? ''));
  }
};
await go(db.query.customer.findMany());
await go(db.query.customer.findMany({ with: { orders: true }, orderBy: asc(customer.id) }));
await go(
  db.query.customer.findMany({
    columns: { id: true, name: true },
    with: {
      orders: {
        columns: { id: true, amount: true },
        where: gt(order.quantity, 10),
        orderBy: desc(order.id),
        limit: 2,
      },
    },
    orderBy: asc(customer.id),
  }),
);
await go(db.query.order.findFirst({ with: { customer: true, payments: true }, orderBy: asc(order.id) }));
await go(
  db.query.order.findMany({
    limit: 5,
    offset: 5,
    with: { customer: { columns: { name: true } } },
    orderBy: asc(order.id),
  }),
);
await go(
  db.query.category.findMany({
    with: { products: { extras: { upper: sql`upper(label)`.as('upper') } } },
    orderBy: asc(category.id),
  }),
);
await go(
  db.query.customer.findMany({
    columns: { id: true },
    with: { orders: { columns: { id: true }, with: { payments: { columns: { paid: true } } } } },
    where: eq(customer.region, 'eu'),
    orderBy: asc(customer.id),
  }),
);
await go(
  db
    .select()
    .from(order)
    .where(and(eq(order.status, 'paid'), gt(order.quantity, 5)))
    .orderBy(desc(order.placedAt))
    .limit(10),
);
await go(
  db
    .select({ id: order.id, name: customer.name })
    .from(order)
    .leftJoin(customer, eq(order.customerId, customer.id))
    .orderBy(order.id)
    .limit(10),
);
await go(
  db
    .select({
      region: order.region,
      n: count(),
      total: sum(order.amount),
      mean: avg(order.quantity),
      who: countDistinct(order.customerId),
    })
    .from(order)
    .groupBy(order.region)
    .having(({ n }) => gt(n, 1))
    .orderBy(order.region),
);
await go(
  db
    .select()
    .from(customer)
    .where(or(ilike(customer.name, 'a%'), like(customer.region, 'u%'), isNull(customer.born)))
    .orderBy(customer.id),
);
await go(
  db
    .select()
    .from(order)
    .where(inArray(order.status, ['new', 'paid']))
    .orderBy(order.id),
);
await go(
  db
    .select()
    .from(order)
    .where(between(order.quantity, 3, 9))
    .orderBy(order.id),
);
await go(db.selectDistinct({ region: customer.region }).from(customer).orderBy(customer.region));
await go(
  db
    .selectDistinctOn([order.customerId], { customerId: order.customerId, id: order.id })
    .from(order)
    .orderBy(order.customerId, desc(order.placedAt)),
);
const sq = db
  .select({ customerId: order.customerId, last: max(order.placedAt).as('last') })
  .from(order)
  .groupBy(order.customerId)
  .as('sq');
await go(
  db
    .select({ name: customer.name, last: sq.last })
    .from(customer)
    .innerJoin(sq, eq(customer.id, sq.customerId))
    .orderBy(customer.id),
);
const w = db.$with('w').as(db.select().from(order).where(eq(order.region, 'eu')));
await go(db.with(w).select({ n: count() }).from(w));
await go(
  db
    .select()
    .from(customer)
    .where(not(exists(db.select({ x: sql`1` }).from(order).where(eq(order.customerId, customer.id)))))
    .orderBy(customer.id),
);
await go(db.$count(order, eq(order.status, 'new')));
await go(
  db
    .select({ id: order.id })
    .from(order)
    .where(eq(order.region, 'eu'))
    .union(db.select({ id: payment.id }).from(payment))
    .orderBy(asc(sql`1`))
    .limit(5),
);
await go(
  db.transaction(
    async (tx) => {
      await tx.select().from(product).orderBy(product.id);
    },
    { accessMode: 'read only', isolationLevel: 'read committed' },
  ),
);
await go(
  db
    .select({ id: product.id, w: sql`${product.specs}->>'weight'` })
    .from(product)
    .orderBy(product.id),
);
await pool.end();
