import type { TableName } from './data.js';

/**
 * A query of TPC-H, or one of ours. In `text`, `[orders o]` marks where a hand-written policy inserts the condition on
 * `orders o`, in front of other conditions; `{c_name}` is a column that a policy may mask.
 */
export interface Question {
  readonly id: string;
  readonly text: string;
  /** True if it needs an index whose operator is not leakproof, so that Postgres row security cannot use the index. */
  readonly indexed?: true;
}

const question = (id: string, text: string): Question => ({ id, text: text.replace(/\s+/g, ' ').trim() });
const indexed = (id: string, text: string): Question => ({ ...question(id, text), indexed: true });

/** The 22 queries with their validation values; those with a limit have a total order. */
export const QUESTIONS: readonly Question[] = [
  question(
    'q01',
    `select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
     from lineitem where [lineitem] l_shipdate <= date '1998-12-01' - interval '90 days'
     group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus`,
  ),
  question(
    'q02',
    `select s_acctbal, {s_name}, n_name, p_partkey, p_mfgr, {s_address}, s_phone, {s_comment}
     from part, supplier, partsupp, nation, region
     where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
       and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
       and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
         where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
           and n_regionkey = r_regionkey and r_name = 'EUROPE')
     order by s_acctbal desc, n_name, {s_name}, p_partkey, s_suppkey limit 100`,
  ),
  question(
    'q03',
    `select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
     from customer, orders, lineitem
     where [customer] [orders] [lineitem] c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
       and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
     group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate, l_orderkey limit 10`,
  ),
  question(
    'q04',
    `select o_orderpriority, count(*) from orders
     where [orders] o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-07-01' + interval '3 months'
       and exists (select 1 from lineitem where [lineitem] l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
     group by o_orderpriority order by o_orderpriority`,
  ),
  question(
    'q05',
    `select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
     from customer, orders, lineitem, supplier, nation, region
     where [customer] [orders] [lineitem] c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
       and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
       and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1 year'
     group by n_name order by revenue desc`,
  ),
  question(
    'q06',
    `select sum(l_extendedprice * l_discount) from lineitem
     where [lineitem] l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1 year'
       and l_discount between 0.05 and 0.07 and l_quantity < 24`,
  ),
  question(
    'q07',
    `select supp_nation, cust_nation, l_year, sum(volume) from (
       select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
         l_extendedprice * (1 - l_discount) as volume
       from supplier, lineitem, orders, customer, nation n1, nation n2
       where [lineitem] [orders] [customer] s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
         and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
         and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
         and l_shipdate between date '1995-01-01' and date '1996-12-31') shipping
     group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year`,
  ),
  question(
    'q08',
    `select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) from (
       select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
       from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
       where [lineitem] [orders] [customer] p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey
         and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey
         and r_name = 'AMERICA' and s_nationkey = n2.n_nationkey
         and o_orderdate between date '1995-01-01' and date '1996-12-31' and p_type = 'ECONOMY ANODIZED STEEL') all_nations
     group by o_year order by o_year`,
  ),
  question(
    'q09',
    `select nation, o_year, sum(amount) from (
       select n_name as nation, extract(year from o_orderdate) as o_year,
         l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
       from part, supplier, lineitem, partsupp, orders, nation
       where [lineitem] [orders] s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey
         and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') profit
     group by nation, o_year order by nation, o_year desc`,
  ),
  question(
    'q10',
    `select c_custkey, {c_name}, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, {c_address}, c_phone,
       {c_comment}
     from customer, orders, lineitem, nation
     where [customer] [orders] [lineitem] c_custkey = o_custkey and l_orderkey = o_orderkey
       and o_orderdate >= date '1993-10-01' and o_orderdate < date '1993-10-01' + interval '3 months'
       and l_returnflag = 'R' and c_nationkey = n_nationkey
     group by c_custkey, {c_name}, c_acctbal, c_phone, n_name, {c_address}, {c_comment}
     order by revenue desc, c_custkey limit 20`,
  ),
  question(
    'q11',
    `select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
     where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
     group by ps_partkey having sum(ps_supplycost * ps_availqty) > (
       select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier, nation
       where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
     order by value desc`,
  ),
  question(
    'q12',
    `select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end),
       sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end)
     from orders, lineitem
     where [orders] [lineitem] o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
       and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
       and l_receiptdate < date '1994-01-01' + interval '1 year'
     group by l_shipmode order by l_shipmode`,
  ),
  question(
    'q13',
    `select c_count, count(*) as custdist from (
       select c_custkey, count(o_orderkey) as c_count
       from customer left join orders on [orders] c_custkey = o_custkey and o_comment not like '%special%requests%'
       where [customer] c_custkey > 0 group by c_custkey) c_orders
     group by c_count order by custdist desc, c_count desc`,
  ),
  question(
    'q14',
    `select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
       / sum(l_extendedprice * (1 - l_discount))
     from lineitem, part
     where [lineitem] l_partkey = p_partkey and l_shipdate >= date '1995-09-01'
       and l_shipdate < date '1995-09-01' + interval '1 month'`,
  ),
  question(
    'q15',
    `with revenue as (
       select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue from lineitem
       where [lineitem] l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3 months'
       group by l_suppkey)
     select s_suppkey, {s_name}, {s_address}, s_phone, total_revenue from supplier, revenue
     where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue) order by s_suppkey`,
  ),
  question(
    'q16',
    `select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
     where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
       and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
       and ps_suppkey not in (select s_suppkey from supplier where {s_comment} like '%Customer%Complaints%')
     group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size`,
  ),
  question(
    'q17',
    `select sum(l_extendedprice) / 7.0 from lineitem, part
     where [lineitem] p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
       and l_quantity < (select 0.2 * avg(l2.l_quantity) from lineitem l2 where [lineitem l2] l2.l_partkey = p_partkey)`,
  ),
  question(
    'q18',
    `select {c_name}, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem
     where [customer] [orders] [lineitem] o_orderkey in (
         select l2.l_orderkey from lineitem l2 where [lineitem l2] l2.l_orderkey > 0
         group by l2.l_orderkey having sum(l2.l_quantity) > 260)
       and c_custkey = o_custkey and o_orderkey = l_orderkey
     group by {c_name}, c_custkey, o_orderkey, o_orderdate, o_totalprice
     order by o_totalprice desc, o_orderdate, o_orderkey limit 100`,
  ),
  question(
    'q19',
    `select sum(l_extendedprice * (1 - l_discount)) from lineitem, part
     where [lineitem] p_partkey = l_partkey and l_shipmode in ('AIR', 'REG') and l_shipinstruct = 'DELIVER IN PERSON'
       and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
           and l_quantity >= 1 and l_quantity <= 11 and p_size between 1 and 5)
         or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
           and l_quantity >= 10 and l_quantity <= 20 and p_size between 1 and 10)
         or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
           and l_quantity >= 20 and l_quantity <= 30 and p_size between 1 and 15))`,
  ),
  question(
    'q20',
    `select {s_name}, {s_address} from supplier, nation
     where s_suppkey in (select ps_suppkey from partsupp
         where ps_partkey in (select p_partkey from part where p_name like 'forest%')
           and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem
             where [lineitem] l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= date '1994-01-01'
               and l_shipdate < date '1994-01-01' + interval '1 year'))
       and s_nationkey = n_nationkey and n_name = 'CANADA' order by {s_name}, s_suppkey`,
  ),
  question(
    'q21',
    `select s_suppkey, {s_name}, count(*) as numwait from supplier, lineitem l1, orders, nation
     where [lineitem l1] [orders] s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
       and l1.l_receiptdate > l1.l_commitdate
       and exists (select 1 from lineitem l2 where [lineitem l2] l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
       and not exists (select 1 from lineitem l3 where [lineitem l3] l3.l_orderkey = l1.l_orderkey
         and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
       and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
     group by s_suppkey, {s_name} order by numwait desc, s_suppkey limit 100`,
  ),
  question(
    'q22',
    `select cntrycode, count(*), sum(c_acctbal) from (
       select substring(c_phone from 1 for 2) as cntrycode, c_acctbal from customer
       where [customer] substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
         and c_acctbal > (select avg(c2.c_acctbal) from customer c2
           where [customer c2] c2.c_acctbal > 0.00 and substring(c2.c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17'))
         and not exists (select 1 from orders where [orders] o_custkey = c_custkey)) custsale
     group by cntrycode order by cntrycode`,
  ),
  indexed(
    'price',
    `select count(*), max(o_orderdate) from orders where [orders] o_totalprice between 300000.0 and 300050.0`,
  ),
  indexed(
    'clerk',
    `select count(*), sum(o_totalprice) from orders where [orders] o_clerk like 'Clerk#000000017%'`,
  ),
  indexed(
    'name',
    `select c_custkey, count(o_orderkey) from customer left join orders on [orders] o_custkey = c_custkey
     where [customer] lower({c_name}) = 'customer#000000302' group by c_custkey`,
  ),
];

/** Placeholders in the texts. */
const CONDITION = /\[(\w+)(?: (\w+))?\] /g;
const COLUMN = /\{(\w+)\}/g;

/** The query as written without knowledge of any policy. */
export function plainText({ text }: Question): string {
  return text.replace(CONDITION, '').replace(COLUMN, '$1');
}

/** A policy as one would write it into a statement by hand. */
export interface ByHand {
  /** Condition on a row of `table`, whose columns have the prefix `prefix`; null for none. */
  condition(table: TableName, prefix: string): string | null;
  /** Expression to use instead of a column. */
  column(name: string): string;
}

export function textByHand({ text }: Question, by: ByHand): string {
  return text
    .replace(CONDITION, (_, table: TableName, alias?: string) => {
      const condition = by.condition(table, alias === undefined ? '' : `${alias}.`);
      return condition === null ? '' : `${condition} and `;
    })
    .replace(COLUMN, (_, name: string) => by.column(name));
}
