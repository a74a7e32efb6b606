import { col, DataTypes, fn, literal, Op, QueryTypes, Sequelize } from 'sequelize';

const s = new Sequelize(process.env.PGDATABASE, process.env.PGUSER, process.env.PGPASSWORD, {
  host: '127.0.0.1',
  port: +process.env.PGPORT,
  dialect: 'postgres',
  logging: false,
  pool: { max: 1 },
  define: { timestamps: false, freezeTableName: true, schema: 'entities' },
});
const Customer = s.define('customer', {
  id: { type: DataTypes.INTEGER, primaryKey: true },
  name: DataTypes.TEXT,
  email: DataTypes.TEXT,
  born: DataTypes.DATEONLY,
  region: DataTypes.TEXT,
});
const Order = s.define('order', {
  id: { type: DataTypes.BIGINT, primaryKey: true },
  customer_id: DataTypes.INTEGER,
  region: DataTypes.TEXT,
  status: DataTypes.TEXT,
  quantity: DataTypes.INTEGER,
  amount: DataTypes.DECIMAL,
  placed_at: DataTypes.DATE,
  note: DataTypes.TEXT,
});
const Payment = s.define('payment', {
  id: { type: DataTypes.INTEGER, primaryKey: true },
  order_id: DataTypes.BIGINT,
  method: DataTypes.TEXT,
  paid: DataTypes.DECIMAL,
});
const Product = s.define('product', {
  id: { type: DataTypes.INTEGER, primaryKey: true },
  label: DataTypes.TEXT,
  price: DataTypes.DECIMAL,
  specs: DataTypes.JSONB,
  tags: DataTypes.ARRAY(DataTypes.TEXT),
});
Customer.hasMany(Order, { foreignKey: 'customer_id' });
Order.belongsTo(Customer, { foreignKey: 'customer_id' });
Order.hasMany(Payment, { foreignKey: 'order_id' });
Payment.belongsTo(Order, { foreignKey: 'order_id' });
const go = async (f) => {
  try {
    await f();
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
await go(() => s.authenticate());
await go(() => Customer.findAll({ order: ['id'] }));
await go(() => Customer.findByPk(1));
await go(() => Customer.findOne({ where: { region: 'eu' }, order: [['id', 'DESC']] }));
await go(() =>
  Order.findAll({
    where: {
      status: { [Op.in]: ['new', 'paid'] },
      quantity: { [Op.between]: [3, 20] },
      [Op.or]: [{ note: null }, { amount: { [Op.gt]: 10 } }],
    },
    order: [['id', 'ASC']],
    limit: 10,
    offset: 2,
  }),
);
await go(() => Customer.findAll({ include: Order, order: ['id', [Order, 'id']] }));
await go(() =>
  Customer.findAll({
    include: { model: Order, required: true, where: { status: 'paid' } },
    order: ['id', [Order, 'id']],
    limit: 3,
  }),
);
await go(() => Customer.findAll({ include: { model: Order, separate: true, order: ['id'] }, order: ['id'] }));
await go(() =>
  Customer.findAll({ include: { model: Order, include: [Payment] }, order: ['id', [Order, 'id']] }),
);
await go(() => Order.findAndCountAll({ include: [Customer], order: ['id'], limit: 5 }));
await go(() => Order.count({ where: { region: 'eu' } }));
await go(() => Order.count({ distinct: true, col: 'customer_id' }));
await go(() => Order.sum('amount', { where: { region: { [Op.ne]: 'us' } } }));
await go(() => Order.max('placed_at'));
await go(() =>
  Order.findAll({
    attributes: ['region', [fn('COUNT', col('id')), 'n'], [fn('SUM', col('amount')), 'total']],
    group: ['region'],
    having: literal('COUNT("id") > 1'),
    order: [[literal('total'), 'DESC']],
    raw: true,
  }),
);
await go(() =>
  Order.findAll({
    attributes: [
      [fn('date_trunc', 'month', col('placed_at')), 'month'],
      [fn('count', '*'), 'n'],
    ],
    group: [fn('date_trunc', 'month', col('placed_at'))],
    order: [[literal('month'), 'ASC']],
    raw: true,
  }),
);
await go(() =>
  Customer.findAll({
    where: { name: { [Op.iLike]: '%a%' } },
    attributes: { exclude: ['email'] },
    order: ['id'],
  }),
);
await go(() => Product.findAll({ where: { specs: { origin: 'in' } }, order: ['id'] }));
await go(() => Product.findAll({ where: { tags: { [Op.contains]: ['sale'] } }, order: ['id'] }));
await go(() =>
  Customer.findAll({
    attributes: {
      include: [
        [
          literal('(SELECT COUNT(*) FROM entities."order" AS o WHERE o.customer_id = "customer"."id")'),
          'orders',
        ],
      ],
    },
    order: ['id'],
  }),
);
await go(() => Order.aggregate('status', 'DISTINCT', { plain: false, order: ['status'] }));
await go(() =>
  s.query('SELECT id FROM entities."order" WHERE region = :r AND quantity > :q ORDER BY id', {
    replacements: { r: 'eu', q: 20 },
    type: QueryTypes.SELECT,
  }),
);
await go(() =>
  s.query('SELECT id FROM entities."order" WHERE region = $1 ORDER BY id', {
    bind: ['eu'],
    type: QueryTypes.SELECT,
  }),
);
const qi = s.getQueryInterface();
await go(() => qi.showAllTables());
await go(() => qi.showAllSchemas());
await go(() => qi.describeTable({ tableName: 'customer', schema: 'entities' }));
await go(() => qi.showIndex({ tableName: 'customer', schema: 'entities' }));
await go(() => qi.getForeignKeyReferencesForTable({ tableName: 'order', schema: 'entities' }));
await go(() => qi.tableExists({ tableName: 'customer', schema: 'entities' }));
await go(() =>
  s.transaction({ isolationLevel: 'READ COMMITTED', readOnly: true }, async (t) => {
    await Customer.count({ transaction: t });
  }),
);
await s.close();
