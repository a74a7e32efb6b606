import type { Caller, Cell } from '../../support/frontends.js';
import { AUDITOR, BUYER, GREEDY, HELPED, LOST, MIXED, STATS } from './shop.js';

export type Expected =
  | { readonly rows: readonly (readonly Cell[])[] }
  | { readonly code: string; readonly sqlstate: string };

/**
 * What an attacker tries, and what must come of it. `⟨right|wrong⟩` in a text is a guess: the text is tried with
 * both, and nothing in the two answers may differ.
 */
export type Try = readonly [text: string, expected: Expected, caller?: Caller];

export interface Attack {
  /** As in the list of attacks; from 101 on, our own. */
  readonly n: number;
  readonly name: string;
  readonly tries: readonly Try[];
  /** Questions that look like the attack and must be answered. */
  readonly benign: readonly Try[];
}

const rows = (...list: readonly (readonly Cell[])[]): Expected => ({ rows: list });
const refused = (code: string, sqlstate: string): Expected => ({ code, sqlstate });

const UNSUPPORTED = refused('E0511', '0A000');
const SYNTAX = refused('E0511', '42601');
const READ_ONLY = refused('E0511', '25006');
const NO_FUNCTION = refused('E0511', '42883');
const NO_OPERATOR = refused('E0511', '42883');
const NO_TYPE = refused('E0511', '42704');
const MISMATCH = refused('E0511', '42804');
const GROUPING = refused('E0511', '42803');
const NO_COLUMN = refused('E0512', '42703');
const NO_RELATION = refused('E0512', '42P01');
const UNRESOLVABLE = refused('E1001', '0A000');
const NO_METRIC = refused('E0512', '42704');
const UNSEALED = refused('E0514', '42P10');
const KEY_NOT_CLEAR = refused('E0515', '42501');
const DENIED = refused('E2101', '42501');
const NO_ACCESS = refused('E2102', '42501');
const GROUPS_ONLY = refused('E2103', '42501');
const TOO_FEW = rows([null]);
const fails = (sqlstate: string): Expected => refused('E0529', sqlstate);

const R = '[redacted]';
/** What the runner makes of any keyed hash. */
const HASH = '<hash>';
/** Customers as texts of whole rows, a hidden column left out and masked ones masked. */
const WHOLE = rows(
  [`(1,Ada,${R},${R},,${HASH},1977-01-01,eu,10,1.5,"2024-02-01 12:00:00+00")`],
  [`(2,Bob,${R},${R},,${HASH},1977-01-01,eu,20,2.5,"2024-03-01 12:00:00+00")`],
  [`(3,Cleo,${R},${R},,${HASH},1977-01-01,eu,30,,"2024-01-01 12:00:00+00")`],
);
const EVERYONE = rows(['1'], ['2'], ['3']);
const NOBODY = rows();

/** Attacks that are texts; each runs on every surface. Those of the protocol are in `protocol.test.ts`. */
export const ATTACKS: readonly Attack[] = [
  {
    n: 1,
    name: 'functional notation',
    tries: [
      ['select ssn(c) from customer c', NO_FUNCTION],
      ['select ssn(customer) from customer', NO_FUNCTION],
      ['select upper(c) from customer c', UNSUPPORTED],
      ["select ssn('c') from customer c", NO_FUNCTION],
      ['select c.ssn from customer c where c.id = 1', rows([R])],
    ],
    benign: [['select upper(c.name) from customer c where c.id = 1', rows(['ADA'])]],
  },
  {
    n: 2,
    name: 'whole row',
    tries: [
      ['select c from customer c', WHOLE],
      ["select c::text like '%SECRET%', c::text ~ '⟨' from customer c where id = 1", rows(['f', 'f'])],
      [
        'select (c).* from customer c where c.id = 1',
        rows(['1', 'Ada', R, R, null, HASH, '1977-01-01', 'eu', '10', '1.5', '2024-02-01 12:00:00+00']),
      ],
      ['select (c).ssn from customer c', rows([R], [R], [R])],
      ['select (c).card from customer c', DENIED],
      ['select count(*) from customer c group by c', UNSUPPORTED],
      ['select count(*) from (select c as r from customer c) d group by r', UNSUPPORTED],
      ['select c from customer c union select c from customer c', UNSUPPORTED],
      ['select row(c.*) from customer c', WHOLE],
      ['select row(c.id, c.ssn) from customer c where c.id = 1', rows([`(1,${R})`])],
      ['select row(c.id, c.card) from customer c', DENIED],
      ['select count(c) from customer c', rows(['3'])],
      ['select id from customer c where c is not null', NOBODY],
      ['select id from customer c order by c', UNSUPPORTED],
      ['select concat(c.*) from customer c', UNSUPPORTED],
      [
        'select c.* from customer c where c.id = 1',
        rows(['1', 'Ada', R, R, null, HASH, '1977-01-01', 'eu', '10', '1.5', '2024-02-01 12:00:00+00']),
      ],
    ],
    benign: [
      ['select count(*) from customer c group by c.region', rows(['3'])],
      ['select c.id, c.name from customer c where c.id = 2', rows(['2', 'Bob'])],
    ],
  },
  {
    n: 3,
    name: 'whole row as json',
    tries: [
      ["select to_jsonb(c)->>'ssn' from customer c", rows([R], [R], [R])],
      ["select row_to_json(c)->>'ssn' from customer c", rows([R], [R], [R])],
      ["select json_agg(c)->0->>'ssn' from customer c", rows([R])],
      [
        "select e.value from customer c, jsonb_each_text(to_jsonb(c)) e where c.id = 1 and e.key = 'ssn'",
        rows([R]),
      ],
      ['select u from customer c, unnest(array[c.ssn]) u', rows([R], [R], [R])],
      ['select to_jsonb(c.ssn)::text from customer c where id = 1', rows([`"${R}"`])],
      ["select jsonb_agg(c)->1->>'ssn' from customer c", rows([R])],
      ["select jsonb_build_object('s', ssn, 'p', salary)->>'s' from customer where id = 1", rows([R])],
      ["select jsonb_object_agg(id, ssn)->>'1' from customer", rows([R])],
      ["select jsonb_populate_record(null::customer, '{}')", NO_FUNCTION],
    ],
    benign: [['select to_jsonb(c.name)::text from customer c where id = 1', rows(['"Ada"'])]],
  },
  {
    n: 4,
    name: 'functions that run SQL',
    tries: [
      ["select query_to_xml('select ssn from shop.customer', true, true, '')", NO_FUNCTION],
      ["select table_to_xml('shop.customer', true, true, '')", NO_FUNCTION],
      ["select * from ts_stat('select to_tsvector(ssn) from shop.customer')", UNSUPPORTED],
      ["select 'a'::tsquery", rows(["'a'"])],
      ["select ts_rewrite('a', 'select ssn from shop.customer')", NO_FUNCTION],
      ["select database_to_xml(true, true, '')", NO_FUNCTION],
      ["select cursor_to_xml('c', 1, true, true, '')", NO_FUNCTION],
      ["select dblink('', 'select 1')", NO_FUNCTION],
    ],
    benign: [['select to_hex(255)', rows(['ff'])]],
  },
  {
    n: 5,
    name: 'statistics and catalogs',
    tries: [
      ["select most_common_vals from pg_stats where attname = 'ssn'", NO_RELATION],
      ['select * from pg_catalog.pg_stats', NO_RELATION],
      ['select * from pg_stats_ext', NO_RELATION],
      ['select * from pg_statistic', NO_RELATION],
      ['select * from pg_stat_activity', NO_RELATION],
      ['select * from information_schema.columns', NO_RELATION],
      ["select pg_relation_size('shop.customer')", NO_FUNCTION],
      ['select reltuples from pg_class', NO_RELATION],
    ],
    benign: [['select min(amt), max(amt) from customer', rows(['10', '30'])]],
  },
  {
    n: 6,
    name: 'EXPLAIN estimates',
    tries: [
      // EXPLAIN itself, which the wire answers with the governed plan: `test/surfaces/pg/introspection.test.ts`.
      ['select * from customer where id in (explain select ssn from customer)', refused('E0511', '42601')],
    ],
    benign: [['select id from customer where amt = 10', rows(['1'])]],
  },
  {
    n: 7,
    name: 'subquery in ORDER BY or LIMIT',
    tries: [
      [
        'select id from customer c order by (select min(x.ssn) from customer x where x.id = c.id) desc',
        EVERYONE,
      ],
      [
        "select id from customer order by case when (select count(*) from customer where ssn like '⟨SECRET|TERCES⟩%') > 0 then id else -id end",
        rows(['3'], ['2'], ['1']),
      ],
      [
        "select id from customer limit (select count(*) from customer where ssn like '⟨SECRET-SSN-1|SECRET-SSN-9⟩')",
        NOBODY,
      ],
      [
        'select id from customer order by id limit (select amt from customer where id = ⟨880088055|880088077⟩)',
        EVERYONE,
      ],
      [
        'select id from customer order by id offset (select count(*) from customer where amt > 100)',
        EVERYONE,
      ],
      ['select id from customer order by ssn desc, salary desc, id limit 1', rows(['1'])],
    ],
    benign: [
      ['select id from customer order by amt desc limit 1', rows(['3'])],
      [
        'select id from customer order by (select max(total) from purchase), id desc',
        rows(['3'], ['2'], ['1']),
      ],
      [
        'select id from customer order by id limit (select count(*) from customer where amt < 25)',
        rows(['1'], ['2']),
      ],
    ],
  },
  {
    n: 8,
    name: 'natural join with a guess',
    tries: [
      ["select id from customer natural join (values ('⟨SECRET-SSN-1|SECRET-SSN-9⟩')) v(ssn)", UNSEALED],
      [
        "select id from customer join (values ('⟨SECRET-SSN-1|SECRET-SSN-9⟩')) v(ssn) using (ssn)",
        KEY_NOT_CLEAR,
      ],
      [
        "select id from customer c join (values ('⟨SECRET-SSN-1|SECRET-SSN-9⟩')) v(s) on c.ssn = v.s",
        KEY_NOT_CLEAR,
      ],
      ["select id from customer, (values ('⟨SECRET-SSN-1|SECRET-SSN-9⟩')) v(s) where ssn = s", KEY_NOT_CLEAR],
      ["select id from customer cross join (values ('SECRET-SSN-1')) v(s) order by id", EVERYONE],
      ["select id from customer join (values ('⟨SECRET|NOTHING⟩')) v(s) on ssn like s || '%'", NOBODY],
    ],
    benign: [
      [
        'select c.id, p.id from customer c join purchase p on c.id = p.customer_id where p.total > 60',
        rows(['1', '101']),
      ],
    ],
  },
  {
    n: 9,
    name: 'an error that depends on a masked value',
    tries: [
      [
        "select case when ssn like '⟨SECRET|TERCES⟩%' then 1/(id-id) else 1 end from customer",
        rows(['1'], ['1'], ['1']),
      ],
      [
        "select id from customer where case when ssn like '⟨SECRET|TERCES⟩%' then 1/(id-id) = 1 else true end",
        EVERYONE,
      ],
      [
        'select case when salary = ⟨770077010|770077011⟩ then 1/(id-id) else 1 end from customer',
        rows(['1'], ['1'], ['1']),
      ],
      ["select case when ssn like '[red%' then 1/(id-id) else 1 end from customer", fails('22012')],
      ['select id from customer where salary is not null and 1/(id-id) = 1', NOBODY],
    ],
    benign: [
      [
        "select case when name like 'A%' then 10/id else 0 end from customer order by id",
        rows(['10'], ['0'], ['0']),
      ],
    ],
  },
  {
    n: 10,
    name: 'a value in the text of an error',
    tries: [
      ['select ssn::int from customer', fails('22P02')],
      ['select cast(ssn as int4) from customer where id = 1', fails('22P02')],
      ['select id from customer where ssn::date > current_date', fails('22007')],
      ['select email::numeric from customer', fails('22P02')],
      ['select sum(ssn::int) from customer', fails('22P02')],
      ['select ssn::uuid from customer', fails('22P02')],
      ['select ssn::jsonb from customer', fails('22P02')],
      ['select salary::text from customer', rows([null], [null], [null])],
      ['select (salary + 2000000000)::int2 from customer', rows([null], [null], [null])],
      [
        'select (array[id])[1] / (salary - ⟨770077010|770077011⟩) from customer',
        rows([null], [null], [null]),
      ],
    ],
    benign: [
      ["select '5'::int4 + id from customer where id = 1", rows(['6'])],
      ['select amt::text from customer where id = 1', rows(['10'])],
    ],
  },
  {
    n: 11,
    name: 'an error that depends on a filtered row',
    tries: [
      ['select id from customer where 1/(amt-⟨770077007|770077008⟩) < 5', EVERYONE],
      ['select id from customer where 1/(amt-⟨770077007|770077008⟩) < 5 and region = region', EVERYONE],
      ["select id from customer where region = 'us' and 1/(amt-⟨770077007|770077008⟩) < 5", NOBODY],
      [
        'select id from (select id, 1/(amt-⟨770077007|770077008⟩) as x from customer) t where x < 5',
        EVERYONE,
      ],
      [
        'with t as (select id, amt from customer) select id from t where 1/(amt-⟨770077007|770077008⟩) < 5',
        EVERYONE,
      ],
      [
        'with t as materialized (select id, amt from customer) select id from t where 1/(amt-⟨770077007|770077008⟩) < 5',
        EVERYONE,
      ],
      [
        'select id from customer c where exists (select 1 from purchase p where p.customer_id = c.id and 1/(p.total-⟨990099009.99|990099008.99⟩) < 5)',
        rows(['1'], ['2']),
      ],
      [
        'select c.id from customer c join purchase p on c.id = p.customer_id where 1/(p.total-⟨990099009.99|990099008.99⟩) < 5 group by c.id',
        rows(['1'], ['2']),
      ],
      ['select count(*) filter (where 1/(amt-⟨770077007|770077008⟩) < 5) from customer', rows(['3'])],
      [
        'select region from customer group by region having sum(1/(amt-⟨770077007|770077008⟩)) < 5',
        rows(['eu']),
      ],
      [
        'select region from customer group by region, amt having 1/(amt-⟨770077007|770077008⟩) < 5',
        rows(['eu'], ['eu'], ['eu']),
      ],
      ['select distinct 1/(amt-⟨770077007|770077008⟩) from customer', rows(['0'])],
      ['select id from customer order by 1/(amt-⟨770077007|770077008⟩), id', EVERYONE],
      ['select id from customer where sqrt(score) < 100', rows(['1'], ['2'])],
      ['select id from customer where ln(score + 1) > 0', rows(['1'], ['2'])],
      ['select id from customer where amt * 1000000000 > 0', fails('22003')],
      ['select id from customer where amt > 100 and amt * 1000000000 > 0', NOBODY],
      ['select id from customer where amt + 1500000000 > 0', EVERYONE],
      ['select id from customer where (score * 2)::int4 > 0', rows(['1'], ['2'])],
      ['select id from customer where name ~ name', EVERYONE],
      ['select id from customer where name similar to name', EVERYONE],
      ["select id from customer where amt > 100 and name like name || '\\'", NOBODY],
      ["select id from customer where 'x' like name || '\\'", NOBODY],
      [
        'select c.id from customer c where c.amt > (select 1/(min(x.amt)-⟨770077007|10000000⟩) from customer x)',
        EVERYONE,
      ],
      [
        'select id from customer where (select 1/(max(amt)-⟨770077007|30000000⟩) from customer) < 5',
        EVERYONE,
      ],
      [
        'select id from customer where id in (select id from customer where 1/(amt-⟨770077007|770077008⟩) < 5)',
        EVERYONE,
      ],
      ['select id from customer where 1/(amt-⟨770077007|770077008⟩) < 5 limit 1', rows(['1'])],
      [
        'select id from customer where 1/(amt-⟨770077007|770077008⟩) < 5 union all select id from purchase where id < 0',
        EVERYONE,
      ],
    ],
    benign: [
      ['select id from customer where 1/(amt-11) < 5 order by id', EVERYONE],
      ['select id from customer where 1/(amt-10) < 5', fails('22012')],
      [
        'select id from (select id, 100/amt as x from customer) t where x > 4 order by id',
        rows(['1'], ['2']),
      ],
    ],
  },
  {
    n: 12,
    name: 'sequences',
    tries: [
      ['select last_value from customer_seq', NO_RELATION],
      ['select last_value from shop.customer_seq', NO_RELATION],
      ["select nextval('shop.customer_seq')", NO_FUNCTION],
      ["select currval('shop.customer_seq')", NO_FUNCTION],
      ["select setval('shop.customer_seq', 1)", NO_FUNCTION],
      ['select lastval()', NO_FUNCTION],
      ["select pg_sequence_last_value('shop.customer_seq')", NO_FUNCTION],
    ],
    benign: [
      [
        'select last_value(id) over (order by id rows between unbounded preceding and unbounded following) from customer limit 1',
        rows(['3']),
      ],
    ],
  },
  {
    n: 13,
    name: 'rename by position',
    tries: [
      ['select t.c from customer as t(a, b, c)', rows([R], [R], [R])],
      ['select t.c from customer t(a, b, c) where a = 1', rows([R])],
      ['select x.c from (select * from customer) as x(a, b, c) where a = 1', rows([R])],
      ['with x(a, b, c) as (select * from customer) select c from x where a = 1', rows([R])],
      ['select x.m from (select * from customer) as x(a,b,c,d,e,f,g,h,i,j,k,l,m)', MISMATCH],
    ],
    benign: [['select t.b from (select id, name from customer) as t(a, b) where t.a = 1', rows(['Ada'])]],
  },
  {
    n: 14,
    name: 'unicode-escaped identifiers',
    tries: [
      ['select U&"\\0073sn" from customer where id = 1', rows([R])],
      ['select U&"!0073sn" UESCAPE \'!\' from customer where id = 1', rows([R])],
      ['select U&"n\\006fte" from customer', NO_COLUMN],
      ['select U&"c\\0061rd" from customer', DENIED],
      ['select * from U&"v\\0061ult"', NO_RELATION],
      ["select id from customer where ssn = U&'⟨SECRET-SSN-1|SECRET-SSN-9⟩'", NOBODY],
    ],
    benign: [['select U&"n\\0061me" from customer where id = 1', rows(['Ada'])]],
  },
  {
    n: 15,
    name: 'row comparison',
    tries: [
      ["select id from customer where (ssn, 0) > ('⟨SECRET-SSN-1|SECRET-SSN-9⟩', 0)", EVERYONE],
      ["select id from customer where (ssn, id) = ('⟨SECRET-SSN-1|SECRET-SSN-9⟩', 1)", NOBODY],
      ["select id from customer where (ssn, id) in (('⟨SECRET-SSN-1|SECRET-SSN-9⟩', 1))", NOBODY],
      ['select id from customer where row(ssn) is distinct from row(null)', EVERYONE],
      ["select id from customer where ssn > '⟨SECRET-SSN-0|SECRET-SSN-9⟩'", EVERYONE],
    ],
    benign: [["select id from customer where name > 'B' and id > 0 order by id", rows(['2'], ['3'])]],
  },
  {
    n: 16,
    name: 'windows ordered by a masked column',
    tries: [
      ['select rank() over (order by ssn) from customer', rows(['1'], ['1'], ['1'])],
      ['select dense_rank() over (order by salary desc) from customer', rows(['1'], ['1'], ['1'])],
      ['select cume_dist() over (order by ssn) from customer', rows(['1'], ['1'], ['1'])],
      [
        'select percent_rank() over (partition by region order by email) from customer',
        rows(['0'], ['0'], ['0']),
      ],
      ['select count(*) over (partition by ssn) from customer', rows(['3'], ['3'], ['3'])],
      ['select lag(ssn) over (order by id) from customer', rows([null], [R], [R])],
      ['select first_value(salary) over (order by ssn) from customer', rows([null], [null], [null])],
      [
        'select sum(amt) over (order by ssn range unbounded preceding) from customer',
        rows(['60'], ['60'], ['60']),
      ],
      ['select count(*) over () from customer', rows(['3'], ['3'], ['3'])],
      [
        'select max(amt) over (order by id rows between 1 following and 5 following) from customer',
        rows(['30'], ['30'], [null]),
      ],
    ],
    benign: [['select rank() over (order by amt desc) from customer order by 1', EVERYONE]],
  },
  {
    n: 17,
    name: 'system columns',
    tries: [
      ["select id from customer where ctid < '(0,5)'", NO_COLUMN],
      ['select xmin from customer', NO_COLUMN],
      ['select c.tableoid from customer c', NO_COLUMN],
      ['select cmax, xmax, cmin from customer', NO_COLUMN],
      ['select count(*) from customer group by tableoid', NO_COLUMN],
      ['select tableoid::regclass from customer', NO_COLUMN],
    ],
    benign: [['select id from customer where id < 2', rows(['1'])]],
  },
  {
    n: 18,
    name: 'settings by function',
    tries: [
      ["select set_config('search_path', 'shop', false)", NO_FUNCTION],
      ["select current_setting('osl.token')", NO_FUNCTION],
      ["select set_config('role', 'postgres', false), ssn from customer", NO_FUNCTION],
    ],
    benign: [['select lower(name) from customer where id = 1', rows(['ada'])]],
  },
  {
    n: 19,
    name: 'time as a channel',
    tries: [
      ["select id from customer where ssn like '⟨S|T⟩%' and pg_sleep(1) is null", NO_FUNCTION],
      ["select pg_sleep_for('1 s')", NO_FUNCTION],
      ['select clock_timestamp()', NO_FUNCTION],
      ['select count(*) from customer, generate_series(1, 1000000000000)', fails('54000')],
      [
        "select count(*) from customer, generate_series(now(), now() + interval '9 years', interval '1 second')",
        fails('54000'),
      ],
      [
        'with recursive r(n) as (select 1 union all select n from r) select count(*) from r, customer',
        fails('54000'),
      ],
      ["select repeat('x', 2147483647) from customer where amt > 100", fails('54000')],
      ["select id from customer where amt > 100 and name ~ '((a+)+)+$'", NOBODY],
      ["select id from customer where repeat(name, 200) ~ '((a|aa|aaa)+)+$' and amt > 1000", NOBODY],
    ],
    benign: [["select id from customer where joined < now() and name ~ '^A'", rows(['1'])]],
  },
  {
    n: 20, // what only the wire has is in protocol.test.ts
    name: 'COPY and cursors',
    tries: [['select count(*) from (table customer) t', rows(['3'])]],
    benign: [['select id from customer order by id', EVERYONE]],
  },
  {
    n: 21,
    name: 'LATERAL',
    tries: [
      ['select x.s from customer c, lateral (select c.ssn as s) x', rows([R], [R], [R])],
      ['select x.s from customer c join lateral (select c.ssn as s) x on true', rows([R], [R], [R])],
      [
        'select x.s from customer c left join lateral (select c.ssn as s) x on c.id = c.id',
        rows([R], [R], [R]),
      ],
      ['select (select c.ssn) from customer c', rows([R], [R], [R])],
      ["select c.name from customer c where (select c.ssn) like '1%'", NOBODY],
      [
        'select x.n from customer c, lateral (select count(*) as n from purchase p where length(c.ssn) > 3) x',
        rows(['4'], ['4'], ['4']),
      ],
      ["select s from (select ssn as s from customer) t where s <> '[redacted]'", NOBODY],
    ],
    benign: [['select x.n from (select id, name as n from customer) x where x.id = 1', rows(['Ada'])]],
  },
  {
    n: 22,
    name: 'writing in WITH',
    tries: [
      ['with d as (delete from customer returning *) select * from d', READ_ONLY],
      ["with u as (update customer set region = 'eu' returning ssn) select * from u", READ_ONLY],
      ['with i as (insert into customer(id) values (9) returning id) select * from i', READ_ONLY],
      ['select * into stolen from customer', READ_ONLY],
      ['create table stolen as select * from customer', READ_ONLY],
      ['select id from customer for update', READ_ONLY],
      ['merge into customer c using purchase p on c.id = p.id when matched then delete', READ_ONLY],
      ['with recursive r as (select ssn from customer union select ssn from r) select * from r', rows([R])],
    ],
    benign: [['with d as (select id, name from customer) select name from d where id = 1', rows(['Ada'])]],
  },
  {
    n: 23,
    name: 'ungoverned views',
    tries: [
      ["select 'shop.customer_view'::regclass", NO_TYPE],
      ["select pg_get_viewdef('shop.customer_view')", NO_FUNCTION],
      ['select * from shop.customer_view', NO_RELATION],
      ['select * from customer_view', NO_RELATION],
      ['select pg_get_functiondef(1)', NO_FUNCTION],
    ],
    benign: [['select name from osl.entities.customer where id = 1', rows(['Ada'])]],
  },
  {
    n: 25,
    name: 'two statements in one prepared text',
    tries: [['select 1 as a where false union select 2 where false; ', NOBODY]],
    benign: [['select 1 as a;', rows(['1'])]],
  },
  {
    n: 34,
    name: 'shadowed functions and operators',
    tries: [
      ['select lower(ssn) from customer where id = 1', rows([R])],
      ['select public.lower(name) from customer', NO_FUNCTION],
      ['select id from customer where id operator(public.=) 2', NO_OPERATOR],
      ['select id from customer where id = 2', rows(['2'])],
      ["select pg_catalog.pg_read_file('/etc/passwd')", NO_FUNCTION],
    ],
    benign: [['select lower(name) from customer where id = 1', rows(['ada'])]],
  },
  {
    n: 35,
    name: 'children of a governed parent',
    tries: [
      ['select * from shop.customer_us', NO_RELATION],
      ['select * from customer_us', NO_RELATION],
      ['select * from shop.customer', NO_RELATION],
      ['select * from public.customer', NO_RELATION],
      ['select * from postgres.shop.customer', NO_RELATION],
      ['select * from osl.shop.customer', NO_RELATION],
      ['select ssn from only customer where id = 1', refused('E0511', '0A000')],
      ['select ssn from customer * where id = 1', rows([R])],
      ['select id from customer tablesample system (100)', UNSUPPORTED],
    ],
    benign: [['select count(*) from entities.customer', rows(['3'])]],
  },
  {
    n: 37,
    name: 'differencing',
    tries: [
      ["select count(*) from customer where name <> 'Ada'", TOO_FEW, STATS],
      ["select count(*) from customer where name = '⟨Ada|Zoe⟩'", TOO_FEW, STATS],
      ["select count(*) from customer where name = 'Ada' and amt ⟨=|<>⟩ 10", TOO_FEW, STATS],
      ["select sum(amt) from customer where name <> 'Ada'", TOO_FEW, STATS],
      ["select sum(amt) filter (where name <> 'Ada') from customer", TOO_FEW, STATS],
      ["select count(*) filter (where amt > ⟨5|500⟩ and name = 'Ada') from customer", TOO_FEW, STATS],
      ['select avg(score) from customer', TOO_FEW, STATS],
      ['select count(score) from customer', TOO_FEW, STATS],
      ['select name, sum(amt) from customer group by name', NOBODY, STATS],
      ["select region from customer where name = '⟨Ada|Zoe⟩' group by region", NOBODY, STATS],
      ['select count(*) from customer group by amt having count(*) ⟨>|<⟩ 1', NOBODY, STATS],
      ["select 1 from customer where name = 'Ada' having count(*) ⟨=|<>⟩ 1", NOBODY, STATS],
      ["select sum(case when name = 'Ada' then amt end) from customer", GROUPS_ONLY, STATS],
      ["select sum(amt * (name = 'Ada')::int4) from customer", GROUPS_ONLY, STATS],
      ["select sum(nullif(amt, ⟨10|11⟩)) from customer where name = 'Ada'", GROUPS_ONLY, STATS],
      ['select max(amt) from customer', GROUPS_ONLY, STATS],
      ['select bool_or(amt > ⟨29|30⟩) from customer', GROUPS_ONLY, STATS],
      ['select corr(id, amt) from customer', GROUPS_ONLY, STATS],
      ['select array_agg(amt) from customer', GROUPS_ONLY, STATS],
      ['select percentile_disc(0.5) within group (order by amt) from customer', GROUPS_ONLY, STATS],
      ["select string_agg(name, ',') from customer", GROUPS_ONLY, STATS],
      ['select amt from customer', GROUPS_ONLY, STATS],
      ['select distinct amt from customer', GROUPS_ONLY, STATS],
      ['select distinct on (region) amt from customer', GROUPS_ONLY, STATS],
      ['select sum(amt) over (partition by name) from customer', GROUPS_ONLY, STATS],
      ['select count(*) from customer where 1 / (amt - ⟨10|11⟩) > 0', GROUPS_ONLY, STATS],
      ['select count(*) from customer group by 1 / (amt - ⟨10|11⟩)', GROUPS_ONLY, STATS],
      [
        'select region, count(*) from customer group by region having 1 / length(region) > 0',
        GROUPS_ONLY,
        STATS,
      ],
      ['select sum(d.amt) from (select amt from customer limit 1) d', GROUPS_ONLY, STATS],
      ['with d as (select amt from customer) select sum(amt) from d', GROUPS_ONLY, STATS],
      ['select amt from customer union all select amt from customer', GROUPS_ONLY, STATS],
      [
        'select sum(amt) from customer where id in (select c.id from customer c where amt = 10)',
        GROUPS_ONLY,
        STATS,
      ],
      [
        'select count(*) from customer where id in (select c.id from customer c group by c.id)',
        TOO_FEW,
        STATS,
      ],
      ['select (select sum(amt) from customer where id = 1)', TOO_FEW, STATS],
      ['select (select amt from customer where id = 1)', GROUPS_ONLY, STATS],
      ['select count(*) from customer c left join customer d on d.id = c.id', GROUPS_ONLY, STATS],
      ['select measure(revenue) from purchase where customer_id = ⟨1|9⟩', TOO_FEW, STATS],
      ['select memo, measure(revenue) from purchase group by memo', NOBODY, STATS],
      ['select sum(total) from purchase', NO_COLUMN, STATS],
      ['select count(*) from purchase', GROUPS_ONLY, STATS],
      ['select measure(revenue), count(*) from purchase', GROUPS_ONLY, STATS],
      ['select memo from purchase', GROUPS_ONLY, STATS],
      ['select measure(customers) from customer where id = ⟨1|9⟩', TOO_FEW, STATS],
      ['select measure(hoard) from vault', NO_RELATION, STATS],
      [
        'select measure(customers) from customer c join purchase p on p.customer_id = c.id where c.id = ⟨1|9⟩',
        UNRESOLVABLE,
        STATS,
      ],
    ],
    benign: [
      ['select count(*), sum(amt), avg(amt) from customer', rows(['3', '60', '20.0000000000000000']), STATS],
      ['select region, count(*) from customer group by region', rows(['eu', '3']), STATS],
      ['select measure(revenue) from purchase', rows(['162.75']), STATS],
      ['select region, measure(revenue) from purchase group by region', rows(['eu', '162.75']), STATS],
    ],
  },
  {
    n: 38,
    name: 'case and homoglyphs in identifiers',
    tries: [
      ['select SSN from CUSTOMER where id = 1', rows([R])],
      ['select "SSN" from customer', NO_COLUMN],
      ['select \u0455sn from customer', NO_COLUMN],
      ['select \u017fsn from customer', NO_COLUMN],
      ['select "ssn" from "Customer"', NO_RELATION],
      ['select "s\u200bsn" from customer', NO_COLUMN],
      ['select NOTE from customer', NO_COLUMN],
      ['select cARD from customer', DENIED],
      ['select __proto__, constructor from customer', NO_COLUMN],
      ['select toString from customer', NO_COLUMN],
      ['select * from __proto__', NO_RELATION],
      ['select constructor() from customer', NO_FUNCTION],
      ['select measure(__proto__) from customer', NO_METRIC],
    ],
    benign: [['select NAME, "name" as n2 from Customer where ID = 1', rows(['Ada', 'Ada'])]],
  },
  {
    n: 41,
    name: 'comments and minus signs',
    tries: [
      ['select amt--1\n from customer where id = 1', rows(['10'])],
      ['select ssn /* /* nested */ where false */ from customer where id = 1', rows([R])],
      ["select ssn -- '\n from customer where id = 1", rows([R])],
      ['select $$a$$ || ssn from customer where id = 1', rows([`a${R}`])],
      ["select E'\\'' || ssn || $x$'$x$ from customer where id = 1", rows([`'${R}'`])],
      ["select id from customer where name = '''; drop table shop.customer; --'", NOBODY],
      ["select id from customer where name = $q$'; drop table shop.customer; --$q$", NOBODY],
      ['select id as "x""; drop table shop.customer; --" from customer where id = 1', rows(['1'])],
      ['select -(-id) from customer where id = 1', rows(['1'])],
      ['select id- -1 from customer where id = 1', rows(['2'])],
    ],
    benign: [["select 'it''s ' || name from customer where id = 1 -- done", rows(["it's Ada"])]],
  },
  {
    n: 43,
    name: 'LEFT JOIN and a hidden inner side',
    tries: [
      [
        'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id where p.id = 104',
        rows(['104', null]),
      ],
      [
        'select p.id from purchase p left join customer c on c.id = p.customer_id where c.id is null',
        rows(['104']),
      ],
      [
        'select count(*), count(c.id) from purchase p left join customer c on c.id = p.customer_id',
        rows(['4', '3']),
      ],
      [
        'select p.id, c.name from customer c right join purchase p on c.id = p.customer_id where p.id = 104',
        rows(['104', null]),
      ],
      [
        'select c.id, count(p.id) from customer c left join purchase p on p.customer_id = c.id group by c.id order by c.id',
        rows(['1', '2'], ['2', '1'], ['3', '0']),
      ],
      [
        'select p.id from purchase p full join customer c on c.id = p.customer_id order by 1',
        rows(['101'], ['102'], ['104'], ['105'], [null]),
      ],
      ['select c.id from customer c join likes l on l.customer_id = c.id where l.stars = 1', NOBODY],
      ['select l.stars from likes l', UNSUPPORTED],
    ],
    benign: [
      [
        'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id where p.total > 40 order by p.id',
        rows(['101', 'Ada'], ['102', 'Bob']),
      ],
      [
        'select c.name, l.stars from customer c join likes l on l.customer_id = c.id order by c.name',
        rows(['Ada', '5'], ['Bob', '4'], ['Cleo', '3']),
      ],
    ],
  },
  {
    n: 44,
    name: 'aggregates over masked columns, several grants',
    tries: [
      ['select min(ssn), max(ssn), min(salary), sum(salary) from customer', rows([R, R, null, null])],
      ['select count(distinct ssn), count(ssn), count(salary) from customer', rows(['1', '3', '0'])],
      ['select avg(salary), stddev(salary), max(email) from customer', rows([null, null, R])],
      ["select string_agg(ssn, ',' order by ssn) from customer", rows([`${R},${R},${R}`])],
      ['select array_agg(salary order by salary) from customer', rows(['{NULL,NULL,NULL}'])],
      ['select mode() within group (order by ssn) from customer', rows([R])],
      ['select percentile_disc(0.5) within group (order by salary) from customer', rows([null])],
      ["select count(*) filter (where ssn like '⟨SECRET|TERCES⟩%') from customer", rows(['0'])],
      ['select max(amt), min(amt), count(*) from customer', rows(['30', '10', '3'])],
      ['select bool_or(salary > 0), every(salary is null) from customer', rows([null, 't'])],
      ['select measure(customers) from customer', rows(['3'])],
      ['select measure(revenue) from purchase', rows(['162.75'])],
      [
        'select measure(customers), measure(revenue), count(*) from customer c join purchase p on p.customer_id = c.id',
        rows(['2', '157.75', '3']),
      ],
      ['select measure(customers) from customer c join likes l on l.customer_id = c.id', rows(['3'])],
      [
        'select measure(customers) from customer c join purchase p on p.customer_id = c.id where 1 / (p.total - 990099009.99) < 1',
        rows(['2']),
      ],
      ['select measure(hoard) from customer', NO_METRIC],
      ['select corr(salary, amt) from customer', rows([null])],
      // Per cell: row 2 in the clear by the friend's grant, the others masked.
      [
        'select id, ssn, salary from customer order by id',
        rows(['1', R, null], ['2', 'SECRET-SSN-2', '770077020'], ['3', R, null]),
        MIXED,
      ],
      ['select max(salary), count(salary) from customer', rows(['770077020', '1']), MIXED],
      ["select id from customer where ssn like '%-SSN-%'", rows(['2']), MIXED],
      ["select id, email from customer where region = 'mars' or id = 2", rows(['2', R]), MIXED],
      ['select count(*) from customer', rows(['0']), LOST],
      ['select id, ssn from customer', NOBODY, LOST],
      ['select id, ssn from customer order by id', rows(['1', R], ['2', R], ['3', R]), GREEDY],
      ['select id, ssn from customer order by id', rows(['1', R], ['2', R], ['3', R]), HELPED],
      ['select content from vault', NO_RELATION, GREEDY],
      ['select content from vault', NO_RELATION, HELPED],
    ],
    benign: [
      ['select min(amt), sum(amt), count(distinct region) from customer', rows(['10', '60', '1'])],
      ['select id, ssn from customer where id = 2', rows(['2', 'SECRET-SSN-2']), MIXED],
      ['select content from vault', rows(['SECRET-VAULT']), AUDITOR],
    ],
  },
  {
    n: 45,
    name: 'columns and relations out of sight',
    tries: [
      ['select note from customer', NO_COLUMN],
      ["select id from customer where note like 'S%'", NO_COLUMN],
      ['select id from customer order by note', NO_COLUMN],
      ['select count(*) from customer group by note', NO_COLUMN],
      ['select undeclared from customer', NO_COLUMN],
      ['select nothing_like_it from customer', NO_COLUMN],
      ['select card from customer', DENIED],
      ["select id from customer where card = '⟨SECRET-CARD-1|SECRET-CARD-9⟩'", DENIED],
      ['select id from customer order by card', DENIED],
      ['select count(card) from customer', DENIED],
      ['select c.id from customer c join vault v on v.id = c.id', NO_RELATION],
      ['select (select content from vault)', NO_RELATION],
      ['select id from customer where exists (select 1 from vault)', NO_RELATION],
      ['select id from customer', NO_RELATION, BUYER],
      ['select p.id from purchase p join customer c on c.id = p.customer_id', NO_RELATION, BUYER],
      ['select memo from purchase', NO_COLUMN, BUYER],
      ['select customer_id from purchase', NO_COLUMN, BUYER],
      [
        'select * from customer where id = 1',
        rows(['1', 'Ada', R, R, null, HASH, '1977-01-01', 'eu', '10', '1.5', '2024-02-01 12:00:00+00']),
      ],
    ],
    benign: [
      [
        'select * from purchase order by id',
        rows(['101', 'eu', '100.00'], ['102', 'eu', '50.50'], ['104', 'eu', '5.00'], ['105', 'eu', '7.25']),
        BUYER,
      ],
      ['select note from customer where id = 1', rows(['SECRET-NOTE-a']), AUDITOR],
    ],
  },
  {
    n: 46,
    name: 'suggestions that name what is hidden (the hints: see SUGGESTIONS)',
    tries: [
      ['select nota from customer', NO_COLUMN],
      ['select * from vaul', NO_RELATION],
      ['select measure(hoar) from customer', NO_METRIC],
    ],
    benign: [['select name from customer where id = 1', rows(['Ada'])]],
  },

  // ---- our own

  {
    n: 101,
    name: 'functions over masked text',
    tries: [
      [
        'select length(ssn), left(ssn, 3), reverse(ssn) from customer where id = 1',
        rows(['10', '[re', ']detcader[']),
      ],
      ["select md5(ssn) = md5('⟨SECRET-SSN-1|SECRET-SSN-9⟩') from customer where id = 1", rows(['f'])],
      [
        "select encode(convert_to(ssn, 'UTF8'), 'hex') from customer where id = 1",
        rows(['5b72656461637465645d']),
      ],
      ["select encode(ssn::bytea, 'escape') from customer where id = 1", rows([R])],
      [
        "select format('%s', ssn), concat(ssn, salary), concat_ws('-', ssn, id) from customer where id = 1",
        rows([R, R, `${R}-1`]),
      ],
      [
        "select coalesce(salary, -1), nullif(ssn, 'x'), greatest(ssn, ''), least(salary, 5) from customer where id = 1",
        rows(['-1', R, R, '5']),
      ],
      [
        "select position('SECRET' in ssn), strpos(ssn, 'SSN'), split_part(ssn, '-', 2) from customer where id = 1",
        rows(['0', '0', '']),
      ],
      [
        "select regexp_replace(ssn, '\\d', 'x'), regexp_count(ssn, '[0-9]'), ssn ~ 'SSN' from customer where id = 1",
        rows([R, '0', 'f']),
      ],
      ["select id from customer where ssn like like_escape('⟨SECRET|TERCES⟩!%', '!')", NOBODY],
      [
        "select overlay(ssn placing 'x' from 1 for 1), translate(ssn, 'S', 's'), ascii(ssn) from customer where id = 1",
        rows(['xredacted]', R, '91']),
      ],
      ["select string_to_array(ssn, '-') from customer where id = 1", rows([`{${R}}`])],
      [
        'select octet_length(ssn), bit_length(email), salary::text is null from customer where id = 1',
        rows(['10', '80', 't']),
      ],
      [
        "select born, extract(month from born), born = '⟨1977-07-17|1977-07-18⟩' from customer where id = 1",
        rows(['1977-01-01', '1', 'f']),
      ],
      ["select age(born) > interval '1 day' from customer where id = 1", rows(['t'])],
      ['select ssn collate "C" from customer', rows([R], [R], [R])],
      ['select id from customer where ssn collate "C" > \'⟨SECRET-SSN-0|SECRET-SSN-9⟩\'', EVERYONE],
      ['select (array[ssn])[1], array[salary] from customer where id = 1', rows([R, '{NULL}'])],
      ["select phone = '⟨SECRET-PHONE-1|SECRET-PHONE-9⟩' from customer where id = 1", rows(['f'])],
    ],
    benign: [
      [
        "select length(name), left(name, 1), reverse(name), md5('a') from customer where id = 1",
        rows(['3', 'A', 'adA', '0cc175b9c0f1b6a831c399e269772661']),
      ],
    ],
  },
  {
    n: 102,
    name: 'predicates over masked columns',
    tries: [
      ["select id from customer where ssn = '⟨SECRET-SSN-1|SECRET-SSN-9⟩'", NOBODY],
      ["select id from customer where ssn like '⟨SECRET|TERCES⟩%' or ssn ilike '⟨secret|terces⟩%'", NOBODY],
      ["select id from customer where ssn in ('⟨SECRET-SSN-1|SECRET-SSN-9⟩', 'x')", NOBODY],
      ["select id from customer where ssn not in ('⟨SECRET-SSN-1|SECRET-SSN-9⟩')", EVERYONE],
      ["select id from customer where ssn is distinct from '⟨SECRET-SSN-1|SECRET-SSN-9⟩'", EVERYONE],
      ["select id from customer where ssn is not distinct from '⟨SECRET-SSN-1|SECRET-SSN-9⟩'", NOBODY],
      ["select id from customer where ssn between '⟨SECRET-SSN-1|SECRET-SSN-9⟩' and 'T'", NOBODY],
      ["select id from customer where ssn = any (array['⟨SECRET-SSN-1|SECRET-SSN-9⟩'])", NOBODY],
      ['select id from customer where salary = ⟨770077010|770077011⟩', NOBODY],
      ['select id from customer where salary > 0 or salary <= 0', NOBODY],
      ['select id from customer where salary is null', EVERYONE],
      ['select id from customer where not (salary > ⟨770077009|880077009⟩)', NOBODY],
      ["select id from customer where (ssn = '⟨SECRET-SSN-1|SECRET-SSN-9⟩') is unknown", NOBODY],
      ["select region from customer group by region having max(ssn) = '⟨SECRET-SSN-3|SECRET-SSN-9⟩'", NOBODY],
      ['select region from customer group by region having count(*) > 3', NOBODY],
      [
        "select id from customer where case ssn when '⟨SECRET-SSN-1|SECRET-SSN-9⟩' then true else false end",
        NOBODY,
      ],
      ['select distinct ssn, email from customer', rows([R, R])],
      ['select ssn from customer group by 1', rows([R])],
      ['select ssn, count(*) from customer group by 1', rows([R, '3'])],
      ['select distinct on (ssn) id from customer order by ssn, id', rows(['1'])],
      ["select id from customer where name > '' and region <> 'eu'", NOBODY],
      ['select count(*) from customer where amt between 770000000 and 780000000', rows(['0'])],
      ['select id from customer where id = ⟨880088055|880088077⟩', NOBODY],
      ['select amt from customer order by amt desc nulls first limit 1', rows(['30'])],
      ['select amt from customer offset 3', NOBODY],
    ],
    benign: [
      ["select id from customer where name in ('Ada', 'Bob') and amt between 5 and 15", rows(['1'])],
      ["select id from customer where ssn = 'SECRET-SSN-1'", rows(['1']), AUDITOR],
    ],
  },
  {
    n: 103,
    name: 'joins on masked keys',
    tries: [
      ['select c.id, p.id from customer c join purchase p on c.ssn = p.customer_ssn', KEY_NOT_CLEAR],
      ['select c.id from customer c left join purchase p on p.customer_ssn = c.ssn', KEY_NOT_CLEAR],
      ['select id from customer where ssn in (select customer_ssn from purchase)', KEY_NOT_CLEAR],
      [
        'select id from customer c where exists (select 1 from purchase p where p.customer_ssn = c.ssn)',
        KEY_NOT_CLEAR,
      ],
      ['select a.id from customer a join (select ssn from customer) b on a.ssn = b.ssn', KEY_NOT_CLEAR],
      [
        'with b as (select ssn from customer) select a.id from customer a join b on a.ssn = b.ssn',
        KEY_NOT_CLEAR,
      ],
      ['select c.id from customer c join purchase p on c.email = p.memo', KEY_NOT_CLEAR],
      [
        "select c.id from customer c join purchase p on c.id = p.customer_id and c.ssn = '⟨SECRET-SSN-1|SECRET-SSN-9⟩'",
        NOBODY,
      ],
      ['select a.id from customer a join customer b on a.ssn is not distinct from b.ssn', KEY_NOT_CLEAR],
      [
        'select a.id from customer a join customer b on (a.ssn = b.ssn or (a.ssn is null and b.ssn is null))',
        KEY_NOT_CLEAR,
      ],
      [
        'select a.id from customer a join (select ssn as s from customer group by ssn) b on a.ssn = b.s',
        KEY_NOT_CLEAR,
      ],
      [
        'select count(*) from customer c join purchase p on c.id = p.customer_id or true',
        rows([String(3 * 4)]),
      ],
      [
        'select c.id from customer c join purchase p on c.id > p.customer_id',
        rows(['2'], ['2'], ['3'], ['3'], ['3']),
      ],
      ['select id from customer where ssn in (select memo from purchase)', KEY_NOT_CLEAR],
      [
        'select id from customer c where exists (select 1 from purchase p where p.memo = c.ssn)',
        KEY_NOT_CLEAR,
      ],
      [
        'select id from customer c where amt > (select sum(p.total) from purchase p where p.customer_id < c.id)',
        NOBODY,
      ],
      ['select id from customer where ssn = any (select customer_ssn from purchase)', KEY_NOT_CLEAR],
      ['select id from customer where ssn > all (select customer_ssn from purchase)', NOBODY],
      // One mask is like another.
      ['select id from customer where ssn = any (array(select customer_ssn from purchase))', EVERYONE],
      // A hash equals itself and may be joined; a friend's cleartext makes nothing else joinable.
      ['select a.id from customer a join customer b on a.phone = b.phone', EVERYONE],
      ['select count(distinct phone) from customer', rows(['3'])],
      // Keys of different domains are hashed with different keys.
      ['select c.id, p.id from customer c join purchase p on c.phone = p.customer_phone', NOBODY],
      ['select c.id from customer c join purchase p on c.ssn = p.customer_ssn', KEY_NOT_CLEAR, MIXED],
    ],
    benign: [
      [
        'select c.id, p.id from customer c join purchase p on c.ssn = p.customer_ssn where p.total > 60 and p.total < 1000',
        rows(['1', '101']),
        AUDITOR,
      ],
      [
        'select id from customer where id in (select customer_id from purchase) order by id',
        rows(['1'], ['2']),
      ],
      [
        'select id from customer c where not exists (select 1 from purchase p where p.customer_id = c.id)',
        rows(['3']),
      ],
    ],
  },
  {
    n: 104,
    name: 'set operations and type tricks',
    tries: [
      ['select ssn from customer union select 1::text', rows([R], ['1'])],
      ['select ssn from customer union select 1', MISMATCH],
      ['select id from customer union select ssn from customer', MISMATCH],
      ["select ssn from customer intersect select '⟨SECRET-SSN-1|SECRET-SSN-9⟩'", NOBODY],
      [
        "select '⟨SECRET-SSN-1|SECRET-SSN-9⟩' except select ssn from customer",
        rows(['⟨SECRET-SSN-1|SECRET-SSN-9⟩']),
      ],
      ['select id from customer except select customer_id from purchase', rows(['3'])],
      ['select customer_id from purchase except select id from customer', rows(['880088044'])],
      [
        'select salary from customer union all select amt from customer where id = 1',
        rows([null], [null], [null], ['10']),
      ],
      ['values ((select ssn from customer where id = 1))', rows([R])],
      ['select id + ssn from customer', NO_OPERATOR],
      ["select 'a' < 1", refused('E0511', '22P02')],
      ['select null::customer', NO_TYPE],
      ["select 'customer'::regclass::oid", NO_TYPE],
      ["select '1'::money", rows(['$1.00'])],
      ['select xmlelement(name a, ssn) from customer', UNSUPPORTED],
    ],
    benign: [
      ['select id from customer union select customer_id from purchase where id = 102 order by 1', EVERYONE],
      [
        'select name from customer where id = 1 union all select memo from purchase where id = 101',
        rows(['Ada'], ['tea']),
      ],
    ],
  },
  {
    n: 105,
    name: 'functions of the system',
    tries: [
      ['select version()', NO_FUNCTION],
      ['select current_user', UNSUPPORTED],
      ['select session_user', UNSUPPORTED],
      ['select current_database()', NO_FUNCTION],
      ['select current_catalog', UNSUPPORTED],
      ['select current_schema', UNSUPPORTED],
      ['select current_query()', NO_FUNCTION],
      ['select txid_current()', NO_FUNCTION],
      ['select inet_server_addr()', NO_FUNCTION],
      ["select has_table_privilege('shop.vault', 'select')", NO_FUNCTION],
      ["select to_regclass('shop.vault')", NO_FUNCTION],
      ["select lo_import('/etc/passwd')", NO_FUNCTION],
      ['select pg_backend_pid()', NO_FUNCTION],
      ['select pg_typeof(ssn) from customer where id = 1', rows(['text'])],
      ['select pg_typeof(card) from customer', DENIED],
      ['select setseed(0.5)', NO_FUNCTION],
      ['select count(*) from customer where random() < 2', rows(['3'])],
      ['do $$ begin perform 1; end $$', UNSUPPORTED],
      ['call shop.x()', UNSUPPORTED],
      ['lock table shop.customer', READ_ONLY],
      ['listen x', READ_ONLY],
      ["notify x, 'SECRET'", READ_ONLY],
      ['vacuum', READ_ONLY],
      ['drop table shop.customer', READ_ONLY],
      ['grant all on shop.customer to public', READ_ONLY],
      ["alter role postgres password 'x'", READ_ONLY],
      ["load 'x'", READ_ONLY],
      ["create function f() returns int language sql as 'select 1'", READ_ONLY],
      ['truncate shop.customer', READ_ONLY],
    ],
    benign: [["select now() > timestamptz '2020-01-01 00:00:00Z'", rows(['t'])]],
  },
  {
    n: 106,
    name: 'size and depth',
    tries: [
      [`select id from customer where ssn in (${many(20_000, (i) => `'SSN-${i}'`)})`, NOBODY],
      [`select id from customer where id in (${many(20_000, (i) => String(i))})`, EVERYONE],
      [`select ${'('.repeat(900)}1${')'.repeat(900)} as n`, rows(['1'])],
      [`select ${'('.repeat(5_000)}1${')'.repeat(5_000)} as n`, refused('E0511', '54001')],
      [`select id from customer where ${many(3_000, () => 'id = 1', ' or ')}`, rows(['1'])],
      [`select ${many(500, () => '1 +', ' ')} 1 as n`, refused('E0511', '54001')],
      [`${'select id from ('.repeat(500)}customer${') x'.repeat(500)}`, SYNTAX],
      [
        `${'select id from ('.repeat(500)}select id from customer${') x'.repeat(500)}`,
        refused('E0511', '54001'),
      ],
      [`select ${'not '.repeat(20_000)}true as n`, refused('E0511', '54001')],
      [`select ${'x'.repeat(5_000)} from customer`, NO_COLUMN],
      ["select lpad('', 1000000000, 'x')", fails('54000')],
    ],
    benign: [
      [`select ${many(100, () => '1 +', ' ')} 1 as n`, rows(['101'])],
      [
        `select id from customer where id in (${many(1_000, (i) => String(i + 2))}) order by id`,
        rows(['2'], ['3']),
      ],
    ],
  },
  {
    n: 107,
    name: 'grouping and ordering by position or alias',
    tries: [
      ['select id from customer order by 2', SYNTAX],
      ['select count(*) from customer group by 2', SYNTAX],
      ['select id, ssn as id2 from customer order by id2 desc, 1', rows(['1', R], ['2', R], ['3', R])],
      ['select ssn as name, count(*) from customer group by name', GROUPING],
      ['select id from customer group by rollup (id) order by id', rows(['1'], ['2'], ['3'], [null])],
      ['select id from customer order by ssn using > limit 1', rows(['1'])],
      ['select id from customer order by id fetch first 1 row with ties', rows(['1'])],
      [
        'select count(*) from (select id from customer order by ssn fetch first 1 row with ties) c',
        rows(['3']),
      ],
      ['select ssn from customer tablesample system (100)', UNSUPPORTED],
      ['select id from customer order by ssn fetch first 1 row only', rows(['1'])],
      ['select id from customer where rank() over (order by ssn) = 1', refused('E0511', '42P20')],
      ['select id from customer limit -1', refused('E0511', '2201W')],
      ['select id from customer limit true', MISMATCH],
    ],
    benign: [['select region, count(*) as n from customer group by 1 order by n desc', rows(['eu', '3'])]],
  },
  {
    n: 108,
    name: 'callers without any access',
    tries: [
      ['select id from customer', NO_ACCESS, { subject: 'user:nobody', aclRoles: ['clerk'] }],
      ['select id from customer', NO_ACCESS, { subject: 'user:unheard', aclRoles: ['clerk', 'auditor'] }],
      ['select id from customer', NO_ACCESS, { subject: 'user:clerk', aclRoles: [] }],
      ['select id from customer', NO_ACCESS, { subject: 'user:clerk', aclRoles: ['auditor'] }],
      [
        'select id from customer',
        NO_ACCESS,
        { subject: 'user:clerk', aclRoles: [], roles: ['TENANT_ADMIN', 'auditor', 'clerk'] },
      ],
      [
        'select id from vault',
        NO_RELATION,
        { subject: 'user:admin', aclRoles: ['clerk'], roles: ['TENANT_ADMIN'] },
      ],
      [
        'select id from customer',
        NO_ACCESS,
        { subject: 'user:auditor', chain: ['user:nobody', 'user:auditor'], aclRoles: ['auditor'] },
      ],
      [
        'select id from customer',
        NO_ACCESS,
        { subject: 'agent:helper', chain: ['user:unheard', 'agent:helper'], aclRoles: ['auditor', 'clerk'] },
      ],
    ],
    benign: [['select count(*) from customer', rows(['3']), { subject: 'user:clerk', aclRoles: ['clerk'] }]],
  },
  {
    n: 109,
    name: 'joins on what fails on hidden rows',
    tries: [
      [
        'select count(*) from customer c join purchase p on p.customer_id = c.id and 1 / (c.amt - ⟨770077007|770077006⟩) = 0',
        rows(['3']),
      ],
      [
        'select count(*) from purchase p left join customer c on p.customer_id = c.id and 1 / (c.amt - ⟨770077007|770077006⟩ + p.id - p.id) = 0',
        rows(['4']),
      ],
      [
        "select count(*) from purchase p full join customer c on p.customer_id = c.id where 1 / (case when c.region = '⟨us|xx⟩' then 0 else 1 end) = 1",
        rows(['5']),
      ],
      [
        'select count(*) from customer c join (values (1), (2)) v (n) on v.n > 1 / (c.amt - ⟨770077007|770077006⟩)',
        rows(['6']),
      ],
      [
        'select count(*) from customer c join (values (1), (2)) v (n) on v.n = 1 / (c.amt - ⟨770077007|770077006⟩)',
        rows(['0']),
      ],
      [
        'select count(*) from (select region as r from purchase group by 1) g left join customer c on 1 / (c.id - ⟨880088044|880088043⟩) = 0',
        rows(['3']),
      ],
      [
        'select count(*) from customer c cross join (select max(total) as most from purchase) m where 1 / (c.amt - ⟨770077007|770077006⟩) = 0',
        rows(['3']),
      ],
      [
        'with few as (select c.id, 1 / (c.amt - ⟨770077007|770077006⟩) as x from customer c) select count(*) from few join purchase p on few.x = 0 and p.id > few.id',
        rows(['12']),
      ],
    ],
    benign: [
      [
        'select p.id from purchase p join (select customer_id as c, max(total) as most from purchase group by 1) m on m.c is not distinct from p.customer_id and p.total = m.most order by 1 limit 1',
        rows(['101']),
      ],
    ],
  },
  {
    n: 110,
    name: 'addresses, ranges, money, searched text, bits and enums of hidden rows',
    tries: [
      [
        "select id from device where host + case when host = '⟨77.0.0.77|77.0.0.78⟩' then 9223372036854775807 else 0 end = host or id < 9",
        EVERYONE,
      ],
      ["select id from device where host <<= '⟨77.0.0.0/8|78.0.0.0/8⟩'", NOBODY],
      ["select id from device where home = '⟨77.0.0.77|77.0.0.78⟩' or home <<= '0.0.0.0/0'", NOBODY],
      ['select max(host), count(host) from device', rows(['10.0.0.2', '2'])],
      [
        "select id from device where case when span @> ⟨770077002|880077002⟩ then span + '[1,2)' else span end is not null",
        EVERYONE,
      ],
      ["select id from device where span && '⟨[770077001,770077003)|[880077001,880077003)⟩'", NOBODY],
      ['select upper(span) from device order by span desc limit 1', rows(['9'])],
      [
        "select id from device where price * case when price > '$⟨770000|990000⟩' then 1e30::float8 else 1 end < '$0' or id < 9",
        EVERYONE,
      ],
      ['select max(price)::numeric from device', rows(['2.50'])],
      ["select id from device where words @@ plainto_tsquery('⟨SECRET|NOTHING⟩')", NOBODY],
      [
        "select id from device where words @@ to_tsquery(case when words @@ '⟨SECRET|NOTHING⟩'::tsquery then '(' else 'x' end)",
        NOBODY,
      ],
      [
        "select id from device where to_tsvector('english', region) @@ to_tsquery('english', case when host = '⟨77.0.0.77|77.0.0.78⟩' then '(' else 'eu' end)",
        EVERYONE,
      ],
      [
        "select id from device where ts_headline('english', region, plainto_tsquery('eu'), case when host = '⟨77.0.0.77|77.0.0.78⟩' then 'Nope=1' else 'MaxWords=40' end) <> ''",
        EVERYONE,
      ],
      [
        "select id from device where ts_rank(words, plainto_tsquery('english', '⟨SECRET|NOTHING⟩')) > 0",
        NOBODY,
      ],
      ["select id from device where flags = B'⟨1111|1110⟩' or flags > B'⟨1000|1111⟩'", NOBODY],
      [
        "select id from device where (case when flags = B'⟨1111|1110⟩' then 'x' else '1' end)::int4 = 1",
        EVERYONE,
      ],
      ["select id from device where state = '⟨gone|draft⟩' and id > 9", NOBODY],
      ["select id from device where state > '⟨live|gone⟩'", NOBODY],
      ['select state from device where state is not null order by state desc limit 1', rows(['live'])],
      ['select max(state), min(state) from device', rows(['live', 'draft'])],
      [
        "select id from device where 1 / (case when state = '⟨gone|live⟩' and id > 9 then 0 else 1 end) = 1",
        EVERYONE,
      ],
      ["select id from device where state = 'lost'", refused('E0511', '22P02')],
      // Of a masked column nobody is told which words are labels.
      ["select id from device where past = '⟨gone|lost⟩'", NOBODY],
      ["select id from device where past >= '⟨gone|lost⟩'", NOBODY],
      ['select max(past), min(past) from device', rows([R, R])],
      ['select id from device order by past, id limit 1', rows(['1'])],
    ],
    benign: [
      ["select id from device where host << '10.0.0.0/8' order by host desc", rows(['2'], ['1'])],
      ["select id from device where words @@ plainto_tsquery('milk') order by state", rows(['2'], ['1'])],
      ["select id from device where flags >= B'0010' or state = 'live' order by 1", rows(['1'], ['2'])],
    ],
  },
];

function many(count: number, item: (i: number) => string, by = ', '): string {
  return Array.from({ length: count }, (_, i) => item(i)).join(by);
}

/** Near misses, and the name that a hint may (`shows`) or must not (`hides`) give away. */
export const SUGGESTIONS: readonly (readonly [
  text: string,
  verb: 'hides' | 'shows',
  name: string,
  caller?: Caller,
])[] = [
  ['select nam from customer', 'shows', 'name'],
  ['select id from custome', 'shows', 'customer'],
  ['select measure(revenu) from purchase', 'shows', 'revenue'],
  ['select nota from customer', 'hides', 'note'],
  ['select notee from customer', 'hides', 'note'],
  ['select c.nte from customer c', 'hides', 'note'],
  ['select undeclare from customer', 'hides', 'undeclared'],
  ['select * from vaul', 'hides', 'vault'],
  ['select * from vaults', 'hides', 'vault'],
  ['select * from customer_vie', 'hides', 'view'],
  ['select measure(hoar) from customer', 'hides', 'hoard'],
  ['select measure(customer) from purchase', 'hides', 'customers', BUYER],
  ['select * from custome', 'hides', 'customer', BUYER],
  ['select mem from purchase', 'hides', 'memo', BUYER],
  ['select customer_i from purchase', 'hides', 'customer_id', BUYER],
  ['select note from customer', 'hides', 'perhaps'],
  ['select id from vault', 'hides', 'perhaps'],
];
