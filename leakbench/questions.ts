import type { AttackClass } from './attacks/index.js';

/** A question that the clerk may ask, and the first cell of its answer. An endpoint that refuses everything is of no use. */
export interface Question {
  readonly class: AttackClass;
  readonly steps: readonly string[];
  readonly first: string;
}

const question = (of: AttackClass, first: string, ...steps: readonly string[]): Question => ({
  class: of,
  steps,
  first,
});

export const QUESTIONS: readonly Question[] = [
  question('errors', '1', 'select id from customer where 100 / credit > 0 order by id'),
  question('errors', '101', 'select code::int from customer order by id limit 1'),
  question('errors', '1970', 'select extract(year from born)::int from customer order by id limit 1'),
  question('predicates', '7', "select id from customer where name = 'Customer 7'"),
  question('predicates', '12', 'select count(*) from customer where vip'),
  question('predicates', '60', "select count(*) from customer where tags @> array['all']"),
  question('joins', '200', 'select count(*) from purchase p join customer c on c.id = p.customer_id'),
  question('joins', 'North', 'select r.label from customer c join region r on r.code = c.region limit 1'),
  question(
    'joins',
    '3',
    'select count(*) from region r left join customer c on c.region = r.code and c.id = 1',
  ),
  question('aggregates', '60', 'select count(*) from customer'),
  question('aggregates', '12', 'select count(*) from customer group by vip order by 1 limit 1'),
  question(
    'aggregates',
    '60',
    'select row_number() over (order by id) from customer order by 1 desc limit 1',
  ),
  question('casts', '1', 'select * from customer order by id limit 1'),
  question('casts', 'customer 1', 'select lower(name) from customer order by id limit 1'),
  question('casts', '1', 'select id::text from customer order by id limit 1'),
  question(
    'catalog',
    '8',
    "select count(*) from information_schema.columns where table_name = 'customer' and column_name not in ('email', 'ssn', 'notes')",
  ),
  question('catalog', '1', "select count(*) from information_schema.tables where table_name = 'purchase'"),
  question('catalog', 'customer', "select relname from pg_class where relname = 'customer' limit 1"),
  question(
    'cursors',
    '1',
    'begin',
    'declare c cursor for select id from customer order by id',
    'fetch 1 from c',
  ),
  question('cursors', '1', 'prepare p as select id from customer order by id', 'execute p'),
  question('cursors', '2', 'prepare p(int) as select id from customer where id = $1', 'execute p(2)'),
  question('copy', '1\n', 'copy (select id from customer order by id limit 1) to stdout'),
  question('copy', '60\n', 'copy (select count(*) from customer) to stdout'),
  question('copy', 'North\n', "copy (select label from region where code = 'north') to stdout"),
  question('session', '60', "set application_name = 'report'", 'select count(*) from customer'),
  question('session', '60', 'begin read only', 'select count(*) from customer'),
  question('session', '60', 'set statement_timeout = 5000', 'select count(*) from customer'),
  question('identity', 'true', 'select current_user is not null'),
  question('identity', '60', 'select count(*) from customer'),
  question('identity', '200', 'select count(*) from purchase'),
  question('inference', '1', 'select id from customer order by id limit 1'),
  question('inference', '7', 'select count(distinct credit) from customer'),
  question('inference', '60', 'select max(id) from customer'),
  question('timing', '60', 'select count(*) from customer'),
  question('timing', '9', 'select count(distinct item) from purchase'),
  question('timing', '13', 'select count(distinct amount) from purchase'),
];
