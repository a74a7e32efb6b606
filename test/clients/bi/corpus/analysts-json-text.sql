-- tool: analysts: JSON, arrays, text (analysts, simple)
-- data: members of JSON
select id, props ->> 'page' as page, props #>> '{utm,source}' as source, (props ->> 'score')::int as score from event order by id limit 10;

-- data: JSON containment
select count(*) from event where props @> '{"ab": true}';

-- data: JSON key test
select count(*) from event where props ? 'utm' and props -> 'utm' ? 'source' and not props ?| array['x', 'y'];

-- data: group by a JSON member cast to boolean
select (props ->> 'ab')::boolean as ab, avg((props ->> 'score')::numeric) as score from event group by 1 order by 1;

-- data: jsonb_each
select e.key, count(*) from event, jsonb_each(props) as e group by 1 order by 1;

-- data: jsonb_each_text by LATERAL
select e.id, k.key, k.value from event e cross join lateral jsonb_each_text(e.props) as k(key, value) where e.id < 4 order by 1, 2;

-- data: jsonb_array_elements
select p.id, d.value::int as dim from product p, jsonb_array_elements_text(p.specs -> 'dims') as d(value) order by 1, 2;

-- data: elements with ordinality
select p.id, d.ord, d.elem from product p cross join lateral jsonb_array_elements(p.specs -> 'dims') with ordinality as d(elem, ord) order by 1, 2;

-- data: jsonb_object_keys
select distinct jsonb_object_keys(specs) as key from product order by 1;

-- data: jsonb_to_record
select p.id, r.weight, r.origin from product p, jsonb_to_record(p.specs) as r(weight int, origin text) order by 1;

-- data: jsonb_to_recordset of a literal
select * from jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]') as t(a int, b text) order by a;

-- data: jsonb_path_query
select p.id, d from product p, jsonb_path_query(p.specs, '$.dims[*] ? (@ > 4)') as d order by 1, 2;

-- data: jsonb_path_exists and match
select id from product where jsonb_path_exists(specs, '$.dims[*] ? (@ > 7)') and specs @@ '$.weight > 100' order by id;

-- data: build JSON per row
select jsonb_build_object('id', id, 'name', name, 'region', region) as j from customer order by id;

-- data: row_to_json
select row_to_json(c) from (select id, name from customer order by id limit 3) c;

-- data: to_jsonb of a table row
select to_jsonb(c) ->> 'name' as name from category c order by id;

-- data: json_agg of a subquery per row
select c.id, (select json_agg(json_build_object('id', o.id, 'amount', o.amount) order by o.id) from "order" o where o.customer_id = c.id and o.id < 30) as orders from customer c order by c.id;

-- data: jsonb_agg with FILTER and coalesce
select c.region, coalesce(jsonb_agg(c.name order by c.name) filter (where c.born is not null), '[]'::jsonb) as names from customer c group by 1 order by 1;

-- data: jsonb_set, minus, concatenation
select jsonb_set(specs, '{weight}', '0') as a, specs - 'dims' as b, specs || '{"x": 1}' as c, specs #- '{dims,0}' as d from product where id = 1;

-- data: jsonb_typeof and length
select jsonb_typeof(specs -> 'dims') as t, jsonb_array_length(specs -> 'dims') as n, jsonb_typeof(specs -> 'nothing') as nothing from product where id = 2;

-- data: pretty JSON
select jsonb_pretty(specs) from product where id = 1;

-- data: JSON sorted and compared
select id from product where specs ->> 'origin' in ('in', 'lk') and (specs -> 'weight')::int > 200 order by specs -> 'weight' desc;

-- data: unnest of an array column
select t.tag, count(*) from product p, unnest(p.tags) as t(tag) group by 1 order by 1;

-- data: unnest in the select list
select id, unnest(tags) as tag from product order by 1, 2;

-- data: unnest with ordinality
select p.id, t.tag, t.n from product p left join lateral unnest(p.tags) with ordinality as t(tag, n) on true order by 1, 3;

-- data: arrays: any, contains, overlap
select id, 'sale' = any (tags) as a, tags @> array['new'] as b, tags && array['hot', 'sale'] as c, cardinality(tags) as n from product order by id;

-- data: array functions
select array_position(skills, 'sql') as p, array_remove(skills, 'sql') as r, array_to_string(skills, '|', '-') as s, skills[1] as f, array_append(skills, 'x') as a from employee order by id;

-- data: array slices
select (array[1, 2, 3, 4])[2:3] as a, skills[1:1] as b from employee where id = 1;

-- data: array constructor of a subquery
select c.id, array(select o.id from "order" o where o.customer_id = c.id order by o.id limit 3) as ids from customer c order by c.id;

-- data: array_agg distinct and sorted
select region, array_agg(distinct status order by status) as statuses from "order" group by 1 order by 1;

-- data: string_to_array and unnest
select word, count(*) from (select unnest(string_to_array(label, ' ')) as word from product) w group by 1 order by 2 desc, 1;

-- data: regexp_split_to_table
select word, count(*) from product, regexp_split_to_table(label, '\s+') as word group by 1 order by 1;

-- data: regexp_matches
select id, (regexp_matches(note, '(\d+)'))[1] as number from "order" where note is not null order by id limit 10;

-- data: regexp_match
select id, (regexp_match(note, '\d+'))[1]::int as number from "order" where note ~ '\d' order by id limit 10;

-- data: regexp_replace with groups
select regexp_replace(props ->> 'page', '^/p/(\d+)$', 'page \1') as p, count(*) from event group by 1 order by 1;

-- data: email domain
select split_part(email, '@', 2) as domain, count(*) from customer group by 1 order by 1 nulls last;

-- data: padding, trimming, case
select lpad(id::text, 6, '0') as code, initcap(label) as title, btrim(label, 'gt') as trimmed, left(label, 3) || '…' as short, length(label) as n, reverse(label) as r, repeat('*', id) as stars from product order by id;

-- data: format
select format('%s has %s (%I)', name, coalesce(born::text, '?'), region) as line from customer order by id;

-- data: concat_ws
select concat_ws(', ', name, email, region) as line, concat(name, null, 1) as c from customer order by id;

-- data: LIKE ANY
select label from product where label like any (array['%tea%', 'p%']) order by 1;

-- data: ILIKE with a pattern of a column
select a.label, b.label as longer from product a join product b on b.label ilike '%' || a.label || '%' and a.id <> b.id order by 1, 2;

-- data: numbers as text
select to_char(amount, 'FM999,990.00') as a, to_char(quantity, '000') as b, to_number('1,234.5', '9,999.9') as c, amount::int as i, quantity::text || ' pcs' as t from "order" order by id limit 5;

-- data: text to number where it is one
select id, case when note ~ '^note \d+$' then substring(note from 6)::int end as n from "order" order by id limit 10;

-- data: hashes
select md5(name) as m, encode(sha256(name::bytea), 'hex') as s from customer order by id limit 2;

-- data: translate, overlay, position, strpos
select translate(label, 'aeiou', '*****') as t, overlay(label placing 'X' from 2 for 1) as o, position('a' in label) as p, strpos(label, 'e') as s, ascii(label) as c, chr(65) as l from product order by id;

-- data: full text search
select id, label from product where to_tsvector('english', label) @@ plainto_tsquery('english', 'teas') order by id;

-- data: ranks of full text
select id, round(ts_rank(to_tsvector('simple', label), to_tsquery('simple', 'tea | pan'))::numeric, 4) as r from product order by 2 desc, 1 limit 3;

-- data: collation in ORDER BY
select label from product order by label collate "C";

-- data: string aggregation of a pivot
select status, string_agg(id::text, ',' order by id) as ids from "order" where id <= 20 group by status order by status;

-- data: greatest and least of dates and numbers
select greatest(quantity, 10, null) as g, least(amount, 20.5) as l, greatest(shipped_on, date '2025-11-01') as d from "order" order by id limit 5;

-- data: uuid handling
select session_id::text, count(*) from event where session_id = '00000000-0000-4000-8000-000000000003' group by 1;

-- data: starts_with and ^@
select id from product where starts_with(label, 'p') or label ^@ 'gr' order by 1;

-- data: json literal access
select '{"a": {"b": [10, 20]}}'::jsonb #> '{a,b,1}' as v, ('{"a": 1}'::json) ->> 'a' as w;

-- data: JSON_TABLE free: nested arrays of objects
select x ->> 'k' as k, (x ->> 'v')::numeric as v from jsonb_array_elements('[{"k": "a", "v": 1.5}, {"k": "b", "v": 2}]'::jsonb) as x order by 1;
