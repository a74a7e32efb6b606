import knexFactory from 'knex';
import objection from 'objection';

const { Model } = objection;
const k = knexFactory({
  client: 'pg',
  connection: {
    host: '127.0.0.1',
    port: +process.env.PGPORT,
    user: process.env.PGUSER,
    password: process.env.PGPASSWORD,
    database: process.env.PGDATABASE,
  },
  searchPath: ['entities'],
  pool: { min: 1, max: 1 },
});
Model.knex(k);
class Order extends Model {
  static tableName = 'order';
  static get relationMappings() {
    return {
      customer: {
        relation: Model.BelongsToOneRelation,
        modelClass: Customer,
        join: { from: 'order.customer_id', to: 'customer.id' },
      },
    };
  }
}
class Product extends Model {
  static tableName = 'product';
}
class Customer extends Model {
  static tableName = 'customer';
  static get relationMappings() {
    return {
      orders: {
        relation: Model.HasManyRelation,
        modelClass: Order,
        join: { from: 'customer.id', to: 'order.customer_id' },
      },
    };
  }
}
const go = async (q) => {
  try {
    await q;
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
await go(Customer.query().withGraphFetched('orders').orderBy('id'));
await go(Customer.query().withGraphJoined('orders').where('orders.status', 'paid').orderBy('customer.id'));
await go(
  Order.query()
    .joinRelated('customer')
    .where('customer.region', 'eu')
    .select('order.id', 'customer.name')
    .orderBy('order.id'),
);
await go(
  Customer.query().select('customer.id', Customer.relatedQuery('orders').count().as('n')).orderBy('id'),
);
await go(
  Customer.query()
    .whereExists(Customer.relatedQuery('orders').where('quantity', '>', 30))
    .orderBy('id'),
);
await go(Order.query().page(1, 5).orderBy('id'));
await go(Product.query().where(objection.ref('specs:origin').castText(), 'in').orderBy('id'));
await go(Order.query().resultSize());
await k.destroy();
