import { attacks, from, SOURCE } from './attack.js';

/** Bulk formats, which often take another way than queries. */
export const COPY = attacks('copy', [
  ...from(SOURCE.copyRules, [
    'copy customer to stdout',
    'copy customer (id, region) to stdout',
    'copy customer (id, ssn) to stdout',
    'copy customer (email) to stdout',
    'copy customer to stdout with (format csv, header)',
    'copy purchase to stdout with (format csv)',
    'copy purchase to stdout with (format binary)',
    'copy staff to stdout',
    'copy (select * from customer order by id) to stdout',
    'copy (select id from customer order by id desc limit 3) to stdout',
    'copy (select count(*) from customer) to stdout',
    'copy (select id from customer where code::int > 0 order by id) to stdout',
    'copy (select 1 / credit from customer order by id) to stdout',
    'copy (select to_jsonb(c) from customer c order by id limit 2) to stdout',
    'copy (table purchase) to stdout with (format text)',
    "copy (select * from customer where region = 'south') to stdout",
    'copy (select ssn from customer order by id) to stdout',
    'copy (with x as (select * from customer) select count(*) from x) to stdout',
  ]),
  ...from(SOURCE.programs, ["copy customer to '/dev/null'", "copy customer to program 'cat > /dev/null'"]),
  ...from(SOURCE.copyRules, [
    "copy (select id from customer where email like 'alpha%' order by id) to stdout",
    'copy public.customer to stdout',
    'copy (values ((select count(*) from customer))) to stdout',
    'copy (select id from customer order by email limit 3) to stdout',
  ]),
  ...from(SOURCE.cells, [
    'copy (select email from customer order by id limit 3) to stdout',
    'copy (select c from customer c order by id limit 2) to stdout with (format csv)',
  ]),
  ...from(SOURCE.subqueries, [
    'copy (select r.code, (select count(*) from customer c where c.region = r.code) from region r order by 1) to stdout',
  ]),
]);
