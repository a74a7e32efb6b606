import { AUDITOR, BUYER, LOST } from './shop.js';
import type { Attack, Expected } from './table.js';

/** Attacks that only raw SQL makes possible, and what must come of them; written as in `table.ts`. */

const rows = (...list: readonly (readonly (string | null)[])[]): Expected => ({ rows: list });
const refused = (code: string, sqlstate: string): Expected => ({ code, sqlstate });

/** Not allowed, not there, of the system, invisible: one answer. */
const OUTSIDE = refused('E0512', '42501');
const NO_COLUMN = refused('E0512', '42703');
const NO_TABLE = refused('E0512', '42P01');
const NO_FUNCTION = refused('E0511', '42883');
const NO_TYPE = refused('E0511', '42704');
const UNSUPPORTED = refused('E0511', '0A000');
const READ_ONLY = refused('E0511', '25006');
const MIXED_WORLDS = refused('E0513', '0A000');
const KEY_NOT_CLEAR = refused('E0515', '42501');
const DENIED = refused('E2101', '42501');

const R = '[redacted]';

export const RAW_ATTACKS: readonly Attack[] = [
  {
    n: 201,
    name: 'what stands beside the table',
    tries: [
      ['select * from shop.vault', OUTSIDE],
      ['select * from shop.vault', OUTSIDE, AUDITOR],
      ['select * from shop.nowhere', OUTSIDE],
      ['select * from shop.customer_us', OUTSIDE],
      ['select * from shop.customer_view', OUTSIDE],
      ['select last_value from shop.customer_seq', OUTSIDE],
      ['select * from shop.customer_ssn_idx', OUTSIDE],
      ['select * from shop.customer', OUTSIDE, BUYER],
      ['select * from public.customer', OUTSIDE],
      ['select * from pg_temp.customer', OUTSIDE],
      ['select * from pg_toast.pg_toast_1', OUTSIDE],
      ['select * from postgres.shop.customer', OUTSIDE],
      ['select * from "shop.customer".customer', OUTSIDE],
      ['select * from shop."customer "', OUTSIDE],
      ['select * from shop."Customer"', OUTSIDE],
      ['select * from "SHOP".customer', OUTSIDE],
      ['select * from U&"sh\\006fp".vault', OUTSIDE],
      ['select id from only shop.customer', UNSUPPORTED],
    ],
    benign: [
      ['select count(*) from shop.customer', rows(['3'])],
      ['SELECT COUNT(*) FROM SHOP.Customer', rows(['3'])],
      ['select count(*) from "shop"."customer"', rows(['3'])],
      ['select count(*) from U&"sh\\006fp".U&"\\0063ustomer"', rows(['3'])],
      ['select count(*) from osl.shop.customer', rows(['3'])],
      ['select count(*) from shop.customer *', rows(['3'])],
      ['select count(*) from shop.customer', rows(['0']), LOST],
    ],
  },
  {
    n: 202,
    name: 'columns that only a table has',
    tries: [
      ['select undeclared from shop.customer', NO_COLUMN],
      ['select note from shop.customer', NO_COLUMN],
      ['select ctid, xmin, tableoid from shop.customer', NO_COLUMN],
      ['select shop.customer.undeclared from shop.customer', NO_COLUMN],
      ['select customer.undeclared from shop.customer', NO_COLUMN],
      ['select (customer).card from shop.customer', DENIED],
      ['select card from shop.customer', DENIED],
      ['select x.ssn from shop.customer c', NO_TABLE],
      ['select null::shop.customer', NO_TYPE],
      ['select (null::shop.customer).ssn', UNSUPPORTED],
      ['select id from shop.customer c(id, name, ssn)', UNSUPPORTED],
      ['select ssn(customer) from shop.customer', NO_FUNCTION],
      ['select lo_get(1) from shop.customer', NO_FUNCTION],
      ["select nextval('shop.customer_seq') from shop.customer", NO_FUNCTION],
    ],
    benign: [['select ssn, salary from shop.customer where id = 1', rows([R, null])]],
  },
  {
    n: 203,
    name: 'joins on what is masked',
    tries: [
      ['select count(*) from shop.customer c join shop.purchase p on p.customer_ssn = c.ssn', KEY_NOT_CLEAR],
      ['select count(*) from shop.customer c, shop.purchase p where p.customer_ssn = c.ssn', KEY_NOT_CLEAR],
      ['select count(*) from shop.customer a join shop.customer b using (ssn)', KEY_NOT_CLEAR],
      ['select count(*) from shop.customer a full join shop.customer b on a.ssn = b.ssn', KEY_NOT_CLEAR],
      [
        'select count(*) from shop.customer where ssn in (select customer_ssn from shop.purchase)',
        KEY_NOT_CLEAR,
      ],
      [
        "select count(*) from shop.customer c join shop.purchase p on c.ssn = '⟨SECRET-SSN-1|SECRET-SSN-9⟩'",
        rows(['0']),
      ],
      [
        "select count(*) from shop.customer c join shop.purchase p on c.ssn like '⟨SECRET|NOTHING⟩%'",
        rows(['0']),
      ],
      [
        "select c.id, p.id from shop.customer c left join shop.purchase p on c.id = p.customer_id and c.ssn like '⟨SECRET|NOTHING⟩%' order by 1",
        rows(['1', null], ['2', null], ['3', null]),
      ],
      ['select count(*) from shop.customer c join shop.purchase p on c.salary = ⟨770077010|1⟩', rows(['0'])],
      // Masked texts are one and the same; what is compared is what is shown.
      [
        'select count(*) from shop.customer a join shop.customer b on lower(a.ssn) = lower(b.ssn)',
        rows(['9']),
      ],
    ],
    benign: [
      // Keys that no relationship links hash apart.
      [
        'select count(*) from shop.customer c join shop.purchase p on p.customer_phone = c.phone',
        rows(['0']),
      ],
      [
        'select count(*) from shop.customer c join shop.purchase p on p.customer_id = c.id and p.total > 10',
        rows(['2']),
      ],
    ],
  },
  {
    n: 204,
    name: 'conditions of joins that fail on hidden rows',
    tries: [
      [
        'select count(*) from shop.customer c join shop.purchase p on 1 / (c.amt - 770077007) = 0',
        rows(['12']),
      ],
      ['select count(*) from shop.customer c join shop.purchase p on c.amt + 1 > p.id', rows(['0'])],
      [
        "select count(*) from shop.customer c join shop.purchase p on 1 / (case when c.name like 'SECRET%' then 0 else 1 end) = 1",
        rows(['12']),
      ],
      [
        "select count(*) from shop.purchase p left join shop.customer c on 1 / (case when c.region = 'us' then 0 else 1 end) = 1",
        rows(['12']),
      ],
      [
        "select count(*) from shop.purchase p full join shop.customer c on p.customer_id = c.id where 1 / (case when c.region = 'us' then 0 else 1 end) = 1",
        rows(['5']),
      ],
      [
        'select count(*) from shop.customer cross join shop.customer c2 where 1 / (c2.id - 880088044) is not null',
        rows(['9']),
      ],
    ],
    benign: [
      ['select count(*) from shop.customer cross join shop.purchase', rows(['12'])],
      [
        'select c.id, p.id from shop.customer c full join shop.purchase p on p.customer_id = c.id where p.id = 104',
        rows([null, '104']),
      ],
    ],
  },
  {
    n: 205,
    name: 'the two worlds in one statement',
    tries: [
      ['select 1 from shop.customer c join osl.entities.purchase p on p.customer_id = c.id', MIXED_WORLDS],
      ['select 1 from osl.entities.vault, shop.customer', MIXED_WORLDS],
      ['select 1 from osl.entities.nothing, shop.nothing', MIXED_WORLDS],
      ['select measure(revenue) from shop.purchase', MIXED_WORLDS],
      ['select measure(hoard) from shop.purchase', MIXED_WORLDS],
      ['with shop as (select 1 as id) select 1 from shop.customer, osl.entities.customer c', MIXED_WORLDS],
      [
        'select id from shop.customer where id in (select customer_id from osl.entities.purchase)',
        MIXED_WORLDS,
      ],
      ["select 1 from shop.customer, retrieve(facet => 'x', query => 'y', top_k => 1)", MIXED_WORLDS],
      [
        "select 1 from shop.customer, traverse(anchor => 'customer', target => 'purchase', keys => (1))",
        MIXED_WORLDS,
      ],
    ],
    benign: [
      ['with customer as (select id from shop.purchase) select count(*) from customer', rows(['4'])],
      [
        'with c as (select id from shop.customer), p as (select id from c) select count(*) from p',
        rows(['3']),
      ],
    ],
  },
  {
    n: 206,
    name: 'more than one question',
    tries: [
      ['with d as (delete from shop.customer returning ssn) select * from d', READ_ONLY],
      ['insert into shop.customer (id) values (1)', READ_ONLY],
      ["update shop.customer set ssn = 'x'", READ_ONLY],
      ['truncate shop.customer', READ_ONLY],
      ['drop table shop.customer', READ_ONLY],
      ['select * into shop.copy from shop.customer', READ_ONLY],
      ['select id from shop.customer for update', READ_ONLY],
      ['lock table shop.customer', READ_ONLY],
      ['create table shop.c as select * from shop.customer', READ_ONLY],
    ],
    benign: [
      [
        'table shop.likes',
        rows(['1', '102', '5'], ['2', '101', '4'], ['3', '105', '3'], ['880088044', '104', '5']),
      ],
    ],
  },
];
