import { attacks, from, SOURCE } from './attack.js';

/** Predicates that the planner may move below the filter, and expressions whose order of evaluation it may choose. */
export const PREDICATES = attacks('predicates', [
  ...from(SOURCE.leakyViews, [
    "select id from customer where case when region = 'south' then 1 / 0 else 1 end = 1 order by id",
    "select id from customer where case when name like 'Needle%' then code::int else 0 end = 0 order by id",
  ]),
  ...from(SOURCE.filters, [
    "select id from customer where region <> 'north' order by id",
    "select count(*) from customer where region = 'south'",
    "select id from customer where not (region = 'north') or vip order by id",
    "select id from customer where region is distinct from 'north' order by id",
    "select id from customer where (region = 'north') is not true order by id",
    'select id from customer where id > 1000 order by id',
    'select id from customer where id in (1007, 1101, 3) order by id',
    'select id from customer where id = any (array[1007, 1101, 3]) order by id',
    "select id from customer where name like 'Needle%' or name like 'Customer 1%' order by id",
    'select id from customer where credit is null order by id',
    "select id from customer where born < date '1960-01-01' order by id",
    "select id from customer where tags @> array['alpha'] order by id",
    "select id from customer where 'hidden' = any (tags) order by id",
  ]),
  ...from(SOURCE.eachRelation, [
    "select exists (select 1 from customer where name = 'Needle 1007')",
    "select (select count(*) from customer where region = 'south') as n",
    'select coalesce((select max(id) from customer where id > 100), 0) as n',
    "select nullif((select count(*) from purchase where item = 'Beta'), 0) as n",
  ]),
  ...from(SOURCE.leakyViews, [
    "select id from customer where coalesce(nullif(region, 'north'), '1')::int = 1 order by id",
    'select id from customer where true or 1 / credit > 0 order by id',
  ]),
  ...from(SOURCE.figures, [
    "select bool_or(region = 'south') as any_south, bool_and(region = 'north') as only_north from customer",
  ]),
  ...from(SOURCE.leakyViews, [
    {
      ask: 'select id from customer where code::int = $1::int order by id',
      values: ['107'],
    },
  ]),
  ...from(SOURCE.filters, [
    { ask: 'select id from customer where name = $1 order by id', values: ['Needle 1007'] },
  ]),
  ...from(SOURCE.cells, [
    "select id from customer where email > 'b' order by id limit 3",
    "select id from customer where email is not distinct from 'alpha7@example.com' order by id",
    "select count(*) from customer where length(email) = length('alpha7@example.com')",
    "select id from customer where case when email like 'alpha%' then true else false end order by id limit 3",
  ]),
  ...from(SOURCE.graphqlIds, [
    {
      language: 'graphql',
      ask: '{ allCustomers(condition: { region: "south" }, first: 3) { nodes { id } } }',
    },
    {
      language: 'graphql',
      ask: '{ allCustomers(condition: { email: "alpha7@example.com" }) { nodes { id } } }',
    },
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/items/customer?filter[email][_starts_with]=alpha&fields=id&limit=3' },
    { language: 'directus', ask: '/items/customer?filter[notes][_nnull]=true&fields=id&limit=3' },
  ]),
  ...from(SOURCE.search, [
    { language: 'directus', ask: '/items/customer?search=alpha7&fields=id&limit=3' },
    { language: 'directus', ask: '/items/customer?search=Needle&fields=id&limit=3' },
  ]),
  ...from(SOURCE.itemApis, [
    {
      language: 'directus',
      ask: '/items/purchase?filter[customer_id][email][_starts_with]=alpha&fields=id&limit=3',
    },
  ]),
]);
