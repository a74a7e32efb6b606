/**
 * Tables, row counts and value ranges of TPC-H, generated in the database. Text columns are shorter than specified, and
 * three columns are added: the tenant of customers, orders and line items; a pattern used by a row filter; and a column
 * with one value in almost all rows, one in a thousandth, and one in a hundred thousandth of them.
 */
export const SCHEMA = 'tpch';

/** The same tables under row security. */
export const GUARDED = 'tpch_guarded';

const TENANTS = 10;

export type TableName =
  | 'region'
  | 'nation'
  | 'supplier'
  | 'customer'
  | 'part'
  | 'partsupp'
  | 'orders'
  | 'lineitem';

/**
 * Columns of each table with their types, key first. The types are those of the TPC-H specification, with `varchar(n)` for
 * its `char(n)`, except for the columns that policies use.
 */
export const COLUMNS: Readonly<Record<TableName, Readonly<Record<string, string>>>> = {
  region: { r_regionkey: 'int4', r_name: 'varchar(25)', r_comment: 'varchar(152)' },
  nation: { n_nationkey: 'int4', n_name: 'varchar(25)', n_regionkey: 'int4', n_comment: 'varchar(152)' },
  supplier: {
    s_suppkey: 'int4',
    s_name: 'varchar(25)',
    s_address: 'varchar(40)',
    s_nationkey: 'int4',
    s_phone: 'varchar(15)',
    s_acctbal: 'numeric(15,2)',
    s_comment: 'varchar(101)',
  },
  customer: {
    c_custkey: 'int4',
    c_name: 'varchar(25)',
    c_address: 'varchar(40)',
    c_nationkey: 'int4',
    c_phone: 'varchar(15)',
    c_acctbal: 'numeric(15,2)',
    c_mktsegment: 'varchar(10)',
    c_comment: 'varchar(117)',
    c_tenant: 'text',
  },
  part: {
    p_partkey: 'int4',
    p_name: 'varchar(55)',
    p_mfgr: 'varchar(25)',
    p_brand: 'varchar(10)',
    p_type: 'varchar(25)',
    p_size: 'int4',
    p_container: 'varchar(10)',
    p_retailprice: 'numeric(15,2)',
    p_comment: 'varchar(23)',
  },
  partsupp: {
    ps_partkey: 'int4',
    ps_suppkey: 'int4',
    ps_availqty: 'int4',
    ps_supplycost: 'numeric(15,2)',
    ps_comment: 'varchar(199)',
  },
  orders: {
    o_orderkey: 'int4',
    o_custkey: 'int4',
    o_orderstatus: 'varchar(1)',
    o_totalprice: 'numeric(15,2)',
    o_orderdate: 'date',
    o_orderpriority: 'varchar(15)',
    o_clerk: 'varchar(15)',
    o_shippriority: 'int4',
    o_comment: 'varchar(79)',
    o_tenant: 'text',
    o_pattern: 'text',
  },
  lineitem: {
    l_orderkey: 'int4',
    l_linenumber: 'int4',
    l_partkey: 'int4',
    l_suppkey: 'int4',
    l_quantity: 'numeric(15,2)',
    l_extendedprice: 'numeric(15,2)',
    l_discount: 'numeric(15,2)',
    l_tax: 'numeric(15,2)',
    l_returnflag: 'varchar(1)',
    l_linestatus: 'varchar(1)',
    l_shipdate: 'date',
    l_commitdate: 'date',
    l_receiptdate: 'date',
    l_shipinstruct: 'varchar(25)',
    l_shipmode: 'varchar(10)',
    l_comment: 'varchar(44)',
    l_tenant: 'text',
    l_lane: 'text',
  },
};

export const KEYS: Readonly<Record<TableName, readonly string[]>> = {
  region: ['r_regionkey'],
  nation: ['n_nationkey'],
  supplier: ['s_suppkey'],
  customer: ['c_custkey'],
  part: ['p_partkey'],
  partsupp: ['ps_partkey', 'ps_suppkey'],
  orders: ['o_orderkey'],
  lineitem: ['l_orderkey', 'l_linenumber'],
};

export const TABLES = Object.keys(COLUMNS) as readonly TableName[]; // Object.keys loses the key type

const words = (list: string): string => `array['${list.split(' ').join("','")}']`;

const COLORS = words(
  'almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood chartreuse chiffon ' +
    'chocolate coral cornflower cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost ' +
    'goldenrod green grey honeydew hot indian ivory khaki lace lavender',
);
const NATIONS =
  "('ALGERIA',0),('ARGENTINA',1),('BRAZIL',1),('CANADA',1),('EGYPT',4),('ETHIOPIA',0),('FRANCE',3),('GERMANY',3)," +
  "('INDIA',2),('INDONESIA',2),('IRAN',4),('IRAQ',4),('JAPAN',2),('JORDAN',4),('KENYA',0),('MOROCCO',0)," +
  "('MOZAMBIQUE',0),('PERU',1),('CHINA',2),('ROMANIA',3),('SAUDI ARABIA',4),('VIETNAM',2),('RUSSIA',3)," +
  "('UNITED KINGDOM',3),('UNITED STATES',1)";

/** Statements that create and fill the tables in `schema`. @param scale 1 for 6,000,000 line items */
export function dataScript(schema: string, scale: number): readonly string[] {
  const count = (n: number): number => Math.max(1, Math.round(n * scale));
  const suppliers = count(10_000);
  const customers = count(150_000);
  const parts = count(200_000);
  const orders = count(1_500_000);
  const fill = `
    insert into region select i, (array['AFRICA','AMERICA','ASIA','EUROPE','MIDDLE EAST'])[i + 1], 'region ' || i
      from generate_series(0, 4) i;
    insert into nation select row_number() over () - 1, name, region, 'nation ' || name from (values ${NATIONS}) v(name, region);
    insert into supplier select i, 'Supplier#' || lpad(i::text, 9, '0'), 'address ' || pick(i, 1, 100000), pick(i, 2, 25),
        phone(i, pick(i, 2, 25)), pick(i, 3, 1100000) / 100.0 - 1000,
        case when i % 2000 = 7 then 'quick Customer ironic Complaints' else 'deposits sleep ' || i end
      from generate_series(1, ${suppliers}) i;
    insert into customer select i, 'Customer#' || lpad(i::text, 9, '0'), 'address ' || pick(i, 4, 100000), pick(i, 5, 25),
        phone(i, pick(i, 5, 25)), pick(i, 6, 1100000) / 100.0 - 1000,
        (array['AUTOMOBILE','BUILDING','FURNITURE','MACHINERY','HOUSEHOLD'])[1 + pick(i, 7, 5)], 'accounts nag ' || i,
        't' || pick(i, 8, ${TENANTS})
      from generate_series(1, ${customers}) i;
    insert into part select i, concat_ws(' ', (${COLORS})[1 + pick(i, 9, 40)], (${COLORS})[1 + pick(i, 10, 40)],
          (${COLORS})[1 + pick(i, 11, 40)], (${COLORS})[1 + pick(i, 12, 40)], (${COLORS})[1 + pick(i, 13, 40)]),
        'Manufacturer#' || 1 + pick(i, 14, 5), 'Brand#' || 1 + pick(i, 14, 5) || 1 + pick(i, 15, 5),
        concat_ws(' ', (${words('STANDARD SMALL MEDIUM LARGE ECONOMY PROMO')})[1 + pick(i, 16, 6)],
          (${words('ANODIZED BURNISHED PLATED POLISHED BRUSHED')})[1 + pick(i, 17, 5)],
          (${words('TIN NICKEL BRASS STEEL COPPER')})[1 + pick(i, 18, 5)]),
        1 + pick(i, 19, 50),
        (${words('SM LG MED JUMBO WRAP')})[1 + pick(i, 20, 5)] || ' ' || (${words('CASE BOX BAG JAR PKG PACK CAN DRUM')})[1 + pick(i, 21, 8)],
        (90000 + (i / 10) % 20001 + 100 * (i % 1000)) / 100.0, 'part ' || i
      from generate_series(1, ${parts}) i;
    insert into partsupp select p, ${supplierOf('p', 'j', suppliers)}, 1 + pick(p * 4 + j, 22, 9999),
        (100 + pick(p * 4 + j, 23, 99900)) / 100.0, 'stock ' || p
      from generate_series(1, ${parts}) p, generate_series(0, 3) j on conflict do nothing;
    insert into orders select i, customer, case when day < '1995-03-01' then 'F' when day > '1995-06-17' then 'O' else 'P' end,
        (100000 + pick(i, 25, 40000000)) / 100.0, day,
        (array['1-URGENT','2-HIGH','3-MEDIUM','4-NOT SPECIFIED','5-LOW'])[1 + pick(i, 26, 5)],
        'Clerk#' || lpad((1 + pick(i, 27, ${Math.max(10, count(1000))}))::text, 9, '0'), 0,
        case when pick(i, 28, 100) = 0 then 'special packages requests ' else 'regular ' end || i,
        't' || pick(customer, 8, ${TENANTS}), case when pick(i, 29, 10) = 0 then 'none' else 'Clerk%' end
      from (select i, 1 + pick(i, 24, ${Math.max(1, Math.floor(customers / 3))}) * 3 - 1 as customer,
              date '1992-01-01' + pick(i, 30, 2406)::int as day from generate_series(1, ${orders}) i) o;
    insert into lineitem select o_orderkey, n, part, ${supplierOf('part', 'pick(k, 32, 4)', suppliers)}, quantity,
        quantity * (90000 + (part / 10) % 20001 + 100 * (part % 1000)) / 100.0, pick(k, 34, 11) / 100.0, pick(k, 35, 9) / 100.0,
        case when receipt > '1995-06-17' then 'N' when pick(k, 36, 2) = 0 then 'R' else 'A' end,
        case when ship > '1995-06-17' then 'O' else 'F' end, ship, o_orderdate + 30 + pick(k, 37, 61)::int, receipt,
        (array['DELIVER IN PERSON','COLLECT COD','NONE','TAKE BACK RETURN'])[1 + pick(k, 38, 4)],
        (${words('REG AIR RAIL SHIP TRUCK MAIL FOB')})[1 + pick(k, 39, 7)], 'line ' || k, o_tenant,
        case when k % 100000 = 5 then 'sole' when k % 1000 = 7 then 'rare' else 'bulk' end
      from orders, lateral (select n, o_orderkey * 8 + n as k from generate_series(1, 1 + pick(o_orderkey, 31, 7)::int) n) l,
        lateral (select 1 + pick(k, 33, ${parts}) as part, 1 + pick(k, 40, 50) as quantity,
          o_orderdate + 1 + pick(k, 41, 121)::int as ship) v,
        lateral (select ship + 1 + pick(k, 42, 30)::int as receipt) w;`;
  return [
    `create schema ${schema}; set search_path = ${schema}; ${FUNCTIONS} ${TABLES.map(tableText).join(' ')} ${fill}`,
    `set search_path = ${schema}; ${INDEXES}; grant usage on schema ${schema} to osl_reader;
     grant select on all tables in schema ${schema} to osl_reader; reset search_path`,
    'vacuum analyze',
  ];
}

/** The supplier of a part according to the specification's distribution (four suppliers per part). */
function supplierOf(part: string, nth: string, suppliers: number): string {
  return `(${part} + ${nth} * (${suppliers} / 4 + (${part} - 1) / ${suppliers})) % ${suppliers} + 1`;
}

/** `pick`: a number below `n` that depends only on `key` and `seed`. */
const FUNCTIONS = `
  create function pick(key bigint, seed bigint, n bigint) returns bigint immutable parallel safe language sql
    as $$ select (hashint8extended(key, seed) & 9223372036854775807) % n $$;
  create function phone(key bigint, nation bigint) returns text immutable parallel safe language sql
    as $$ select 10 + nation || '-' || 100 + pick(key, 50, 900) || '-' || 100 + pick(key, 51, 900) || '-' || 1000 + pick(key, 52, 9000) $$;`;

function tableText(table: TableName): string {
  const columns = Object.entries(COLUMNS[table]).map(([name, type]) => `${name} ${type} not null`);
  return `create table ${table} (${columns.join(', ')}, primary key (${KEYS[table].join(', ')}));`;
}

/** Foreign keys, dates and tenants, as a team would index them, and the indexes for our three additional queries. */
const INDEXES = [
  'nation (n_regionkey)',
  'supplier (s_nationkey)',
  'customer (c_nationkey)',
  'customer (c_tenant)',
  'customer (lower(c_name))',
  'partsupp (ps_suppkey)',
  'orders (o_custkey)',
  'orders (o_orderdate)',
  'orders (o_tenant)',
  'orders (o_clerk text_pattern_ops)',
  'orders (o_totalprice)',
  'lineitem (l_partkey, l_suppkey)',
  'lineitem (l_suppkey)',
  'lineitem (l_shipdate)',
  'lineitem (l_tenant)',
  'lineitem (l_lane)',
]
  .map((index) => `create index on ${index}`)
  .join('; ');
