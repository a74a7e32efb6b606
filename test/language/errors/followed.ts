/** The hint of E0514 where these keys are in reach. */
function keysHere(names: string): string {
  return `sealed keys here: ${names}; \`features.joins: any\` in the manifest allows any condition`;
}

/**
 * By hint of `WRONG`: a question that does what the hint says, in the place of one that was refused with it. Hints of
 * names are followed as they stand.
 */
export const FOLLOWED: Readonly<Record<string, string>> = {
  'send exactly one SELECT': 'select 1',
  'ask with SELECT': 'select id from customer',
  'select it in the statement itself, as a column; elsewhere write c::text, to_jsonb(c) or its columns':
    'select id from customer c order by c::text',
  'qualify a column with a table alias; cast the arguments of a function or operator':
    'select c.id from customer c join "order" o on o.customer_id = c.id',
  'give each FROM item its own alias': 'select 1 from customer c join "order" o on c.id = o.customer_id',
  [keysHere('c.id, o.id, o.customer_id')]: 'select 1 from customer c join "order" o on o.customer_id = c.id',
  [keysHere('customer.id, product.id')]:
    'select 1 from customer join "order" on "order".customer_id = customer.id',
  [keysHere('customer.id, "order".id, "order".customer_id')]:
    'select 1 from customer join "order" on "order".customer_id = customer.id',
  [keysHere('c.id, o.id')]:
    'select 1 from (select id from customer) c full join (select id from "order") o on o.id = c.id',
  [keysHere('customer.id')]: 'select id from customer where id in (select customer_id from "order")',
  [keysHere('c.id')]:
    'select id from customer c where exists (select 1 from "order" o where o.customer_id = c.id)',
  [keysHere('c.id, "order".id, "order".customer_id')]:
    'select 1 from customer c join lateral (select 1 from "order" where customer_id = c.id) x on true',
  'there is one without `direction`':
    "select id from traverse(anchor => 'customer', target => 'order', keys => (1))",
  'there is one without `via`':
    "select id from traverse(anchor => 'order', target => 'product', keys => (1))",
  'read it FROM "order", or ask with a metrics body': 'select measure(revenue) from "order"',
  'an operator takes the name of a text column first; compute a text in a derived table':
    "select similarity(t, 'tea') from (select label || 'x' as t from product) p",
  'join it to one of the entities that it links':
    'select l.pieces from line l join product p on l.product_id = p.id',
  "FROM RETRIEVE(facet => 'labels', query => '…', top_k => 5)":
    "select text from retrieve(facet => 'labels', query => 'tea', top_k => 5)",
  'use HAVING': 'select name from customer group by name having count(*) > 1',
  'work it out in a derived table first': 'select sum(n) from (select count(*) as n from customer) d',
  'row_number(…) OVER (PARTITION BY … ORDER BY …)':
    'select row_number() over (partition by region order by id) from customer',
  'percentile_cont(…) WITHIN GROUP (ORDER BY …)':
    'select percentile_cont(0.5) within group (order by amount) from "order"',
  'WINDOW w AS (…)': 'select sum(quantity) over w from "order" window w as (order by id)',
  'there is lower(text), lower(anyrange), lower(anymultirange)': 'select lower(name) from customer',
  'an explicit cast may help': 'select id::text || name from customer',
  'values of type int4 are whole numbers from -2147483648 to 2147483647':
    "select id from customer where id = '-2147483648' or id = '2147483647'",
  'units: microsecond, millisecond, second, minute, hour, day, month, quarter, year, decade, century, millennium, week':
    "select date_trunc('week', placed_at), date_trunc('microsecond', placed_at) from \"order\"",
  'cast it to text first': 'select id::text::jsonb from customer',
  'cast it, as in array[]::text[]': 'select array[]::text[]',
  'rows are compared by =, <>, <, <=, > and >=': 'select (1, 2) >= (3, 4)',
  'write rows of equal length': 'select (1, 2) = (3, 4)',
  'write a row of as many values': 'select (1, 2) < (3, 4)',
  'there is "C", "POSIX", "default", "ucs_basic", "und-x-icu", "en-x-icu", "de-x-icu", "es-x-icu", "fr-x-icu"':
    'select name collate "C", name collate "default", name collate "und-x-icu" from customer',
  'use BERNOULLI (percent) or SYSTEM (percent)': 'select id from customer tablesample bernoulli (10)',
  'table functions are RETRIEVE, TRAVERSE, and those that make rows, such as generate_series':
    'select * from generate_series(1, 3)',
  'WITH RECURSIVE t AS (first UNION ALL SELECT … FROM t JOIN …)':
    'with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) select * from t',
  'cast one of them': 'select id::text from customer union select name from customer',
  'order by a name or a position of its result':
    'select id from customer union select id from "order" order by id',
  'facet => …, query => …, top_k => …':
    "select text from retrieve(facet => 'labels', query => 'tea', top_k => 5)",
  'say what to look for': "select text from retrieve(facet => 'labels', query => 'tea', top_k => 5)",
  'SIMILARITY(text, reference)': "select similarity(name, 'Ada') from customer",
  'anchor => …, target => …, keys => …, via => …, direction => …, max_hops => …, per_hop => …':
    "select id from traverse(anchor => 'order', target => 'product', keys => ('1'), via => 'line', direction => 'out', max_hops => 2, per_hop => 5)",
  "add WHERE id IN ('…')": "select id, evidence from product where id in ('1')",
  'use ROWS':
    'select sum(quantity) over (order by region rows between 2 preceding and current row) from "order"',
  '`->>` and jsonb_path_query_first read values':
    "select '{}'::jsonb ->> 'a', jsonb_path_query_first('{}', '$.a')",
  'name each side': 'select c.name, o.amount from customer c join "order" o on o.customer_id = c.id',
};

/** The question of `Wrong`, with the name that its hint proposes in the place of the one at `‸`. */
export function followedName(osql: string, message: string, hint: string): string | null {
  const meant = /^perhaps you meant `(.+)`$/.exec(hint)?.[1];
  const wrong = /.*`([^`]+)`/.exec(message)?.[1];
  if (meant === undefined || wrong === undefined) return null;
  const [before = '', after = ''] = osql.split('‸');
  const name = message.startsWith('column') ? (wrong.split('.').at(-1) ?? wrong) : wrong;
  return `${before}${after.replace(name, meant)}`;
}
