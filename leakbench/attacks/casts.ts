import { attacks, from, SOURCE } from './attack.js';

/** Other ways to name a value: whole rows, JSON, arrays, casts by name, functions that take text of SQL. */
export const CASTS = attacks('casts', [
  ...from(SOURCE.wholeRows, [
    'select customer from customer order by id limit 1',
    'select c from customer c order by c.id limit 1',
    'select c.* from customer c order by id limit 1',
    'select row(c.*) from customer c order by id limit 1',
    'select to_jsonb(c) from customer c order by id limit 1',
    'select row_to_json(c) from customer c order by id limit 1',
    'select json_agg(c) from (select * from customer order by id limit 2) c',
    'select c::text from customer c order by id limit 1',
    'select array_agg(c) from (select * from customer order by id limit 2) c',
    'select jsonb_each_text(to_jsonb(c)) from customer c where id = 1 order by 1',
  ]),
  ...from(SOURCE.columnGrants, [
    'select (c).ssn from customer c order by id limit 1',
    'select ssn from customer order by id limit 1',
    'select email from customer order by id limit 3',
    'select notes from customer order by id limit 1',
    "select notes ->> 'word' from customer order by id limit 1",
  ]),
  ...from(SOURCE.cells, [
    "select id from customer where email like 'alpha%' order by id limit 3",
    "select id from customer where ssn like 'alpha%' order by id limit 3",
    'select id from customer order by email desc limit 3',
    'select id from customer order by ssn limit 3',
    'select count(*) from customer group by email order by 1 limit 3',
    'select min(email), max(ssn) from customer',
    'select length(email), md5(email) from customer order by id limit 3',
    'select count(distinct email) from customer',
  ]),
  ...from(SOURCE.wholeRows, [
    "select * from customer where customer::text like '%alpha%' order by id limit 1",
  ]),
  ...from(SOURCE.textQueries, [
    "select query_to_xml('select * from customer where id > 1000', true, true, '')",
    "select table_to_xml('customer', true, true, '')",
    "select database_to_xml(true, true, '')",
  ]),
  ...from(SOURCE.columnGrants, ['select * from staff order by 1', 'select count(*) from staff']),
  ...from(SOURCE.textQueries, [
    "select ts_stat from ts_stat('select to_tsvector(name) from customer') order by 1 limit 3",
  ]),
  ...from(SOURCE.own, [
    'select pg_typeof(c) , c is null from customer c order by id limit 2',
    'select hash_record(c), hash_record_extended(c, 0) from customer c order by id limit 3',
  ]),
  ...from(SOURCE.cells, [
    'select email, count(*) from customer group by email order by 2 desc, 1 limit 3',
    'select distinct email from customer order by 1 limit 3',
    'select string_agg(email, $$,$$ order by id) from customer where id < 4',
    'select id, rank() over (order by email) from customer order by id limit 3',
    'select id, lag(email) over (order by id) from customer order by id limit 3',
    'select coalesce(email, name), email || name from customer order by id limit 3',
    "select id from customer where to_jsonb(customer) ->> 'email' like 'alpha%' order by id limit 3",
    'select id from customer order by case when email < $$b$$ then id else -id end limit 3',
    'select x.email from (select email from customer where id = 7) x',
    'values ((select email from customer where id = 7))',
  ]),
  ...from(SOURCE.columnGrants, [
    'select risk from customer order by 1 limit 1',
    'select count(risk) from customer',
    'select about from complaint order by 1',
  ]),
  ...from(SOURCE.graphqlIds, [
    { language: 'graphql', ask: '{ allCustomers(first: 3) { nodes { id email ssn } } }' },
    { language: 'graphql', ask: '{ allCustomers(orderBy: [SSN_ASC], first: 3) { nodes { id } } }' },
    { language: 'graphql', ask: '{ allCustomers(orderBy: [EMAIL_DESC], first: 3) { nodes { id } } }' },
    { language: 'graphql', ask: '{ customerById(id: 7) { notes } }' },
  ]),
  ...from(SOURCE.columnGrants, [
    'select count(*) from complain',
    'select rsk from customer',
    'select customer.risk from customer order by 1 limit 1',
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/items/customer?fields=*&limit=1' },
    { language: 'directus', ask: '/items/customer?fields=*.*&limit=1' },
    { language: 'directus', ask: '/items/customer?fields=id,email,ssn&limit=1' },
    { language: 'directus', ask: '/items/customer?alias[x]=email&fields=x&limit=1' },
    { language: 'directus', ask: '/items/customer?fields=id&export=csv&limit=1' },
  ]),
]);
