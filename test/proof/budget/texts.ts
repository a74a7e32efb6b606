/**
 * Texts that are pathological in one way each, of any size. Entities are those that the shop of the tests and the
 * shop of the golden cases share: `customer (id, name, email, region)` and `"order" (id, customer_id, amount)`.
 */
export interface Family {
  readonly name: string;
  /** The text with `n` of what it repeats. */
  at(n: number): string;
}

const times = (n: number, what: string | ((i: number) => string), between = ''): string =>
  Array.from({ length: n }, (_, i) => (typeof what === 'string' ? what : what(i))).join(between);

const listed = (name: string, at: Family['at']): Family => ({ name, at });
/** `open` n times, `core`, `close` n times. */
const nested = (
  name: string,
  before: string,
  open: string,
  core: string,
  close: string,
  after = '',
): Family => listed(name, (n) => `${before}${open.repeat(n)}${core}${close.repeat(n)}${after}`);

const FROM = ' from customer';

/** Lists of every kind that the grammar has. */
const LISTS: readonly Family[] = [
  listed('select items', (n) => `select ${times(n, 'id', ',')}${FROM}`),
  listed('select items, each its own name', (n) => `select ${times(n, (i) => `id as a${i}`, ',')}${FROM}`),
  listed('select items, all of one name', (n) => `select ${times(n, 'id as "a_2"', ',')}, id as a${FROM}`),
  listed('stars', (n) => `select ${times(n, '*', ',')}${FROM}`),
  listed('qualified stars', (n) => `select ${times(n, 'c.*', ',')}${FROM} c`),
  listed('constants', (n) => `select ${times(n, (i) => String(i), ',')}`),
  listed('comma joins', (n) => `select 1 from ${times(n, (i) => `customer c${i}`, ',')}`),
  listed(
    'sampled tables',
    (n) => `select 1 from ${times(n, (i) => `customer c${i} tablesample bernoulli (1)`, ',')}`,
  ),
  listed('comma joins by keys', (n) => {
    const on = times(n - 1, (i) => `c${i}.id = c${i + 1}.id`, ' and ');
    return `select 1 from ${times(n, (i) => `customer c${i}`, ',')} where ${on === '' ? 'true' : on}`;
  }),
  listed(
    'joins',
    (n) => `select 1${FROM} c ${times(n, (i) => `join customer c${i} on c${i}.id = c.id`, ' ')}`,
  ),
  listed(
    'left joins',
    (n) => `select 1${FROM} c ${times(n, (i) => `left join "order" c${i} on c${i}.id = c.id`, ' ')}`,
  ),
  listed(
    'joins by USING',
    (n) => `select *${FROM} c ${times(n, (i) => `join customer c${i} using (id)`, ' ')}`,
  ),
  listed('natural joins', (n) => `select *${FROM} c ${times(n, (i) => `natural join customer c${i}`, ' ')}`),
  listed(
    'common tables',
    (n) => `with ${times(n, (i) => `c${i} as (select id${FROM})`, ',')} select id from c0`,
  ),
  listed('common tables, each of the last', (n) => {
    const chain = times(n, (i) => `c${i + 1} as (select id, id from c${i})`, ',');
    return `with c0 as (select id${FROM})${n === 0 ? '' : `, ${chain.replaceAll('id, id', 'id')}`} select id from c${n}`;
  }),
  listed('IN list of numbers', (n) => `select id${FROM} where id in (${times(n, (i) => String(i), ',')})`),
  listed('IN list of one number', (n) => `select id${FROM} where id in (${times(n, '1', ',')})`),
  listed('IN list of texts', (n) => `select id${FROM} where name in (${times(n, (i) => `'n${i}'`, ',')})`),
  listed('IN list of expressions', (n) => `select id${FROM} where id in (${times(n, 'id+1', ',')})`),
  listed('IN lists', (n) => `select id${FROM} where ${times(n, 'id in (1,2)', ' or ')}`),
  listed('IN list that ends badly', (n) => `select id${FROM} where id in (${times(n, '1', ',')}`),
  listed(
    'ANY of an array',
    (n) => `select id${FROM} where id = any (array[${times(n, (i) => String(i), ',')}])`,
  ),
  listed('ANY of a text', (n) => `select id${FROM} where id = any ('{${times(n, (i) => String(i), ',')}}')`),
  listed('VALUES rows', (n) => `values ${times(n, (i) => `(${i})`, ',')}`),
  listed('VALUES columns', (n) => `values (${times(n, '1', ',')})`),
  listed('VALUES rows in FROM', (n) => `select * from (values ${times(n, "(1,'a')", ',')}) v`),
  listed('CASE arms', (n) => `select case ${times(n, (i) => `when id = ${i} then ${i}`, ' ')} end${FROM}`),
  listed(
    'CASE arms with an operand',
    (n) => `select case id ${times(n, (i) => `when ${i} then ${i}`, ' ')} end${FROM}`,
  ),
  listed('ANDs', (n) => `select id${FROM} where ${times(n, (i) => `id <> ${i}`, ' and ')}`),
  listed('ORs', (n) => `select id${FROM} where ${times(n, (i) => `id = ${i}`, ' or ')}`),
  listed('sums', (n) => `select ${times(n, 'id', '+')}${FROM}`),
  listed('concatenations', (n) => `select ${times(n, 'name', '||')}${FROM}`),
  listed('casts', (n) => `select id${times(n, '::text')}${FROM}`),
  listed('subscripts', (n) => `select (array[id])${times(n, '[1]')}${FROM}`),
  listed('array', (n) => `select array[${times(n, 'id', ',')}]${FROM}`),
  listed('function arguments', (n) => `select coalesce(${times(n, 'id', ',')})${FROM}`),
  listed('arguments of one function', (n) => `select lower(${times(n, 'name', ',')})${FROM}`),
  listed('variadic arguments', (n) => `select concat(${times(n, 'name', ',')})${FROM}`),
  listed('GROUP BY items', (n) => `select count(*)${FROM} group by ${times(n, 'id', ',')}`),
  listed('GROUP BY expressions', (n) => `select count(*)${FROM} group by ${times(n, (i) => `id+${i}`, ',')}`),
  listed('GROUP BY the first', (n) => `select id + id + id + id${FROM} group by ${times(n, '1', ',')}`),
  listed('GROUP BY what is selected', (n) => {
    const items = times(n, (i) => `id+${i}`, ',');
    return `select ${items === '' ? 'id' : items}${FROM} group by ${items === '' ? 'id' : items}`;
  }),
  listed('ORDER BY items', (n) => `select id${FROM} order by ${times(n, 'name', ',')}`),
  listed('ORDER BY expressions', (n) => `select id${FROM} order by ${times(n, (i) => `id+${i}`, ',')}`),
  listed('ORDER BY what is selected', (n) => {
    const items = times(n, (i) => `id+${i}`, ',');
    return `select ${items === '' ? 'id' : items}${FROM} order by ${items === '' ? 'id' : items}`;
  }),
  listed('ORDER BY the first', (n) => `select id${FROM} order by ${times(n, '1', ',')}`),
  listed('DISTINCT ON items', (n) => `select distinct on (${times(n, 'id', ',')}) id${FROM}`),
  listed('aggregates', (n) => `select ${times(n, 'sum(id)', ',')}${FROM}`),
  listed(
    'aggregates with FILTER',
    (n) => `select ${times(n, (i) => `sum(id) filter (where id > ${i})`, ',')}${FROM}`,
  ),
  listed('HAVING', (n) => `select count(*)${FROM} having ${times(n, (i) => `count(*) > ${i}`, ' and ')}`),
  listed('metrics', (n) => `select ${times(n, 'measure(revenue)', ',')} from "order"`),
  listed('window calls', (n) => `select ${times(n, 'sum(id) over (order by id)', ',')}${FROM}`),
  listed(
    'window definitions',
    (n) =>
      `select ${times(n, (i) => `sum(id) over w${i}`, ',')}${FROM}${n === 0 ? '' : ` window ${times(n, (i) => `w${i} as (order by id)`, ',')}`}`,
  ),
  listed('window partitions', (n) => `select sum(id) over (partition by ${times(n, 'id', ',')})${FROM}`),
  listed('set operations', (n) => times(n + 1, `select id${FROM}`, ' union ')),
  listed('set operations of constants', (n) => times(n + 1, 'select 1', ' union all ')),
  listed(
    'EXISTS',
    (n) =>
      `select id${FROM} c where ${times(n, 'exists (select 1 from "order" o where o.customer_id = c.id)', ' and ')}`,
  ),
  listed(
    'IN subqueries',
    (n) => `select id${FROM} where ${times(n, 'id in (select customer_id from "order")', ' and ')}`,
  ),
  listed('scalar subqueries', (n) => `select ${times(n, '(select max(id) from "order")', ',')}`),
  listed('an array of parameters', (n) => `select array[${times(n, (i) => `$${i + 1}`, ',')}]`),
  listed('parameters', (n) => `select ${times(n, (i) => `$${i + 1}::int4`, ',')}`),
  listed('one parameter', (n) => `select ${times(n, '$1::int4', '+')}`),
  listed('LIKEs', (n) => `select id${FROM} where ${times(n, (i) => `name like '%a${i}_%'`, ' or ')}`),
  listed('dotted names', (n) => `select ${times(n + 1, 'a', '.')}${FROM}`),
  listed('unknown columns', (n) => `select ${times(n, (i) => `nothing${i}`, ',')}${FROM}`),
  listed('statements', (n) => times(n + 1, 'select 1', ';')),
  listed('semicolons', (n) => `select 1${';'.repeat(n)}`),
  listed('EXTRACTs', (n) => `select ${times(n, "extract (year from date '2020-01-01')", ',')}`),
  listed(
    'EXTRACT operators',
    (n) =>
      `select ${times(n, "extract (text, 'a')", ',')} from retrieve(facet => 'labels', query => 'a', top_k => 1)`,
  ),
];

/** Everything that can stand in itself. */
const NESTINGS: readonly Family[] = [
  nested('parentheses', 'select ', '(', '1', ')'),
  nested('parentheses around a query', '', '(', 'select 1', ')'),
  nested('scalar subqueries in each other', '', 'select (', 'select 1', ')'),
  nested('derived tables in each other', '', 'select id from (', `select id${FROM}`, ') t'),
  nested('stars of derived tables', '', 'select * from (', `select *${FROM}`, ') t'),
  nested('common tables in each other', '', 'with t as (', `select id${FROM}`, ') select id from t'),
  nested('EXISTS in each other', '', `select id${FROM} where exists (`, `select id${FROM}`, ')'),
  nested('IN in each other', '', `select id${FROM} where id in (`, `select id${FROM}`, ')'),
  nested('joins in each other', 'select 1 from ', '(customer a join ', 'customer', ' b on true)'),
  nested('NOT', 'select ', 'not ', 'true', ''),
  nested('minus', 'select ', '- ', '1', ''),
  nested('plus', 'select ', '+ ', '1', ''),
  nested('minus and parentheses', 'select ', '-(', '1', ')'),
  nested('CASE in THEN', 'select ', 'case when true then ', '1', ' end'),
  nested('CASE in WHEN', 'select ', 'case when ', 'true', ' then true end'),
  nested('CASE in its operand', 'select ', 'case ', 'id', ' when 1 then 1 when 2 then 2 end', FROM),
  nested('BETWEEN in itself', 'select ', '(', 'id between 1 and 2', ') between false and true', FROM),
  nested(
    'BETWEEN SYMMETRIC',
    'select ',
    '(',
    'id between 1 and 2',
    ') between symmetric false and true',
    FROM,
  ),
  nested('BETWEEN to the right', 'select ', 'true between false and (', 'true', ')'),
  nested('NULLIF in itself', 'select ', 'nullif(', 'id', ', 1)', FROM),
  nested('IS DISTINCT FROM', 'select ', '(', 'true', ') is distinct from true'),
  nested('IS NULL', 'select ', '(', 'true', ') is null'),
  nested('function calls', 'select ', 'abs(', 'id', ')', FROM),
  nested('COALESCE in itself', 'select ', 'coalesce(', 'id', ', 1)', FROM),
  nested('aggregates in each other', 'select ', 'sum(', 'id', ')', FROM),
  nested('CAST in itself', 'select ', 'cast(', 'id', ' as int8)', FROM),
  nested('arrays in each other', 'select ', 'array[', '1', ']'),
  nested('rows in each other', 'select ', 'row(', '1', ')'),
  nested('subscripts in each other', 'select ', '(array[1])[', '1', ']'),
  nested('AND and OR', 'select ', 'true and (false or ', 'true', ')'),
  nested('operators to the right', 'select ', 'name || (', 'name', ')', FROM),
  nested('set operations to the right', '', 'select 1 union (', 'select 1', ')'),
  nested('EXPLAIN', '', 'explain ', 'select 1', ''),
  nested('comments', 'select ', '/* ', '', ' */', '1'),
  nested('comments without a space', 'select ', '/*', '', '*/', '1'),
  nested('comments that do not end', 'select 1 ', '/*', '', ''),
  nested('brackets that do not end', 'select ', '(', '', ''),
];

/** One token, or the space between two, that is long. */
const TOKENS: readonly Family[] = [
  listed('text', (n) => `select '${'x'.repeat(n)}'`),
  listed('text of quotes', (n) => `select '${"''".repeat(n)}'`),
  listed('text in many parts', (n) => `select ${times(n + 1, "'a'", '\n')}`),
  listed('texts side by side', (n) => `select ${times(n + 1, "'a'", ' ')}`),
  listed('text that does not end', (n) => `select '${'x'.repeat(n)}`),
  listed('text of wide characters', (n) => `select '${'é'.repeat(n)}', nothing${FROM}`),
  listed('text of pairs', (n) => `select '${'😀'.repeat(n)}', nothing${FROM}`),
  listed('escapes', (n) => `select E'${'\\n'.repeat(n)}'`),
  listed('unicode escapes', (n) => `select U&'${'\\0061'.repeat(n)}'`),
  listed('escaped names', (n) => `select U&"${'\\0061'.repeat(n)}"${FROM}`),
  listed('bits', (n) => `select B'${'1'.repeat(n)}'`),
  listed('dollar quotes', (n) => `select $$${'x'.repeat(n)}$$`),
  listed('dollar tags', (n) => `select ${times(n, (i) => `$a${i}$x$a${i}$`, ',')}`),
  listed('a long dollar tag', (n) => `select $${'a'.repeat(n)}$x$${'a'.repeat(n)}$`),
  listed('dollars', (n) => `select $a$${'$a'.repeat(n)}$a$`),
  listed('dollar quotes that do not end', (n) => `select ${times(n, '$a$', ' ')} $b$`),
  listed('name', (n) => `select ${'x'.repeat(n + 1)}${FROM}`),
  listed('quoted name', (n) => `select "${'x'.repeat(n + 1)}"${FROM}`),
  listed('name of quotes', (n) => `select "${'""'.repeat(n + 1)}"${FROM}`),
  listed('name of a table', (n) => `select 1 from ${'x'.repeat(n + 1)}`),
  listed('name of a function', (n) => `select ${'x'.repeat(n + 1)}(1)`),
  listed('name of a type', (n) => `select 1::${'x'.repeat(n + 1)}`),
  listed('alias', (n) => `select id as ${'x'.repeat(n + 1)}${FROM}`),
  listed('digits', (n) => `select ${'1'.repeat(n + 1)}`),
  listed('digits behind a point', (n) => `select 0.${'1'.repeat(n + 1)}`),
  listed('digits of a comparison', (n) => `select id${FROM} where id = ${'1'.repeat(n + 1)}`),
  listed(
    'text of digits that is not a number',
    (n) => `select id${FROM} where score > '${'1'.repeat(n + 1)}x'`,
  ),
  listed('text of zeros that is a number', (n) => `select id${FROM} where id > '${'0'.repeat(n + 1)}_1'`),
  listed('parameter number', (n) => `select $${'1'.repeat(n + 1)}`),
  listed('space', (n) => `select ${' '.repeat(n)}nothing${FROM}`),
  listed('lines', (n) => `select ${'\n'.repeat(n)}nothing${FROM}`),
  listed('line comments', (n) => `select ${'--\n'.repeat(n)}nothing${FROM}`),
  listed('dashes', (n) => `select 1 ${'-'.repeat(n + 2)}`),
  listed('a comment of stars', (n) => `select 1 /*${'*'.repeat(n)}*/`),
  listed('a comment of slashes', (n) => `select 1 /*${' /'.repeat(n)}*/`),
  listed('a run of pluses', (n) => `select 1 ${'+'.repeat(n + 1)} 1`),
  listed('a run of operators', (n) => `select 1 ${'@-'.repeat(n + 1)} 1`),
  listed('a run of less and more', (n) => `select 1 ${'<>'.repeat(n + 1)} 1`),
  listed('LIKE pattern', (n) => `select id${FROM} where name like '${'%a'.repeat(n)}'`),
  listed('LIKE pattern of escapes', (n) => `select id${FROM} where name like '${'\\%'.repeat(n)}'`),
  listed('SIMILAR pattern', (n) => `select id${FROM} where name similar to '${'(a|b)*'.repeat(n)}'`),
  listed('regular expression', (n) => `select id${FROM} where name ~ '${'(a*)*'.repeat(n)}'`),
  listed('interval', (n) => `select interval '${'1 day '.repeat(n)}'`),
  listed('date', (n) => `select date '${'2020-01-01 '.repeat(n + 1)}'`),
  listed('JSON', (n) => `select '${'['.repeat(n)}${']'.repeat(n)}'::jsonb`),
  listed('array text', (n) => `select '${'{'.repeat(n + 1)}${'}'.repeat(n + 1)}'::int4[]`),
  listed('EXTRACT and space', (n) => `select ${times(n, 'extract', '    ')}${FROM}`),
  listed('FROM and space', (n) => `select ${times(n, ',', '    ')} x`),
  listed(
    'what RETRIEVE seeks',
    (n) => `select text from retrieve(facet => 'labels', query => '${'a '.repeat(n)}', top_k => 1)`,
  ),
  listed(
    'arguments of RETRIEVE',
    (n) => `select text from retrieve(${times(n + 1, "facet => 'labels'", ',')})`,
  ),
  listed(
    'filters of RETRIEVE',
    (n) =>
      `select text from retrieve(facet => 'labels', query => 'a', top_k => 1) where ${times(n + 1, "text = 'a'", ' and ')}`,
  ),
  listed(
    'operators of RETRIEVE',
    (n) =>
      `select ${times(n + 1, 'text', ',')}, ${times(n + 1, (i) => `summarize(text) as s${i}`, ',')} from retrieve(facet => 'labels', query => 'a', top_k => 1)`,
  ),
  listed(
    'keys of TRAVERSE',
    (n) =>
      `select * from traverse(from_keys => array[${times(n + 1, (i) => String(i), ',')}], to_entity => 'customer')`,
  ),
  listed(
    'arguments of TRAVERSE',
    (n) => `select * from traverse(${times(n + 1, "via => 'order_customer'", ',')})`,
  ),
  listed('COPY options', (n) => `copy (select 1) to stdout with (${times(n + 1, "format 'csv'", ',')})`),
  listed('value of SET', (n) => `set application_name to '${'x'.repeat(n)}'`),
  listed('values of SET', (n) => `set search_path to ${times(n + 1, 'a', ',')}`),
  listed('SHOW', (n) => `show ${'x'.repeat(n + 1)}`),
  listed('name of a cursor', (n) => `close ${'x'.repeat(n + 1)}`),
  listed('name of a prepared statement', (n) => `deallocate ${'x'.repeat(n + 1)}`),
  listed('catalog names', (n) => `select ${times(n + 1, 'relname', ',')} from pg_catalog.pg_class`),
  listed(
    'catalog tables',
    (n) => `select 1 from ${times(n + 1, (i) => `pg_catalog.pg_class c${i}`, ',')} where false`,
  ),
  listed(
    'catalog common tables',
    (n) => `with ${times(n + 1, (i) => `c${i} as (select 1)`, ',')} select 1 from pg_class where false`,
  ),
  listed(
    'catalog IN list',
    (n) => `select 1 from pg_class where oid in (${times(n + 1, (i) => String(i), ',')})`,
  ),
];

/** What doubles with each level: a text of a few hundred bytes that means more than any machine has. */
const DOUBLING: readonly Family[] = [
  nested('a column that doubles', '', 'select x||x||x||x as x from (', `select name as x${FROM}`, ') t'),
  nested(
    'a column that doubles in WHERE',
    '',
    'select id, x from (',
    `select id, name as x${FROM}`,
    ") t where x||x||x = 'a'",
  ),
  listed(
    'common tables that double',
    (n) =>
      `with c0 as (select id, name as x${FROM})${times(n, (i) => `, c${i + 1} as (select a.id, a.x||b.x as x from c${i} a join c${i} b on a.id = b.id)`)} select x from c${n}`,
  ),
  nested('stars that double', '', 'select *, * from (', `select id, name${FROM}`, ') t'),
  nested(
    'a set operation that doubles',
    '',
    'select x||x as x from (',
    `select name as x${FROM} union all select name${FROM}`,
    ') t',
  ),
  nested(
    'an IN subquery that doubles',
    '',
    `select x||x as x from (`,
    `select name as x${FROM}`,
    ') t',
    ' where x in (select name from customer)',
  ),
  nested(
    'CASE that doubles',
    '',
    `select case when x = 'a' then x||x else x end as x from (`,
    `select name as x${FROM}`,
    ') t',
  ),
  nested(
    'a sum that doubles',
    '',
    'select sum(x) + sum(x) as x, id from (',
    `select id as x, id${FROM}`,
    ') t group by id',
  ),
  nested(
    'a window that doubles',
    '',
    'select sum(x) over (order by x) + x as x from (',
    `select id as x${FROM}`,
    ') t',
  ),
  listed(
    'a filter that doubles',
    (n) =>
      `select x${FROM.replace('customer', `(${'select x||x as x from ('.repeat(n)}select name as x${FROM}${') t'.repeat(n)})`)} t where x = 'a' order by x`,
  ),
];

export const FAMILIES: readonly Family[] = Object.freeze([...LISTS, ...NESTINGS, ...TOKENS, ...DOUBLING]);

/** The text of `family` that is as long as it can be below `bytes`, or has `most` of what it repeats. */
export function largest(
  family: Family,
  bytes: number,
  most = Number.POSITIVE_INFINITY,
): { text: string; n: number } {
  const size = (n: number): number => Buffer.byteLength(family.at(n));
  const each = Math.max(1, (size(256) - size(128)) / 128);
  let n = Math.max(1, Math.min(most, Math.floor((bytes - size(0)) / each)));
  while (n > 1 && size(n) >= bytes) n = Math.floor(n * 0.98);
  return { text: family.at(n), n };
}
