-- tool: functions in FROM (checks, simple)

-- data: generate_series, without an alias
select p.id, generate_series.*, generate_series as whole, generate_series as named from product p, generate_series(1, p.id) order by p.id, generate_series::text

-- data: generate_series as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, generate_series(1, p.id) as item order by p.id, item::text

-- data: generate_series with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral generate_series(1, p.id) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: generate_series, numbered
select p.id, t.* from product p cross join generate_series(1, p.id) with ordinality as t order by p.id, t.ordinality

-- data: generate_series, numbered, with columns
select p.id, t.n, t.c from product p left join generate_series(1, p.id) with ordinality as t(c, n) on true order by p.id, t.n

-- data: generate_series in a subquery
select p.id, (select count(x) from generate_series(1, p.id) as x) as n, exists (select 1 from generate_series(1, p.id) as x where x is not null) as some from product p order by p.id

-- data: generate_series, grouped
select item, count(*) as n, min(p.id) as least from product p, generate_series(1, p.id) as item group by item order by n desc, item::text limit 20

-- data: generate_series of moments, without an alias
select p.id, generate_series.*, generate_series as whole, generate_series as named from product p, generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') order by p.id, generate_series::text

-- data: generate_series of moments as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') as item order by p.id, item::text

-- data: generate_series of moments with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: generate_series of moments, numbered
select p.id, t.* from product p cross join generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') with ordinality as t order by p.id, t.ordinality

-- data: generate_series of moments, numbered, with columns
select p.id, t.n, t.c from product p left join generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') with ordinality as t(c, n) on true order by p.id, t.n

-- data: generate_series of moments in a subquery
select p.id, (select count(x) from generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') as x) as n, exists (select 1 from generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') as x where x is not null) as some from product p order by p.id

-- data: generate_series of moments, grouped
select item, count(*) as n, min(p.id) as least from product p, generate_series(timestamp '2026-01-01', timestamp '2026-01-01' + p.id * interval '1 day', '1 day') as item group by item order by n desc, item::text limit 20

-- data: generate_subscripts, without an alias
select p.id, generate_subscripts.*, generate_subscripts as whole, generate_subscripts as named from product p, generate_subscripts(p.tags, 1) order by p.id, generate_subscripts::text

-- data: generate_subscripts as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, generate_subscripts(p.tags, 1) as item order by p.id, item::text

-- data: generate_subscripts with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral generate_subscripts(p.tags, 1) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: generate_subscripts, numbered
select p.id, t.* from product p cross join generate_subscripts(p.tags, 1) with ordinality as t order by p.id, t.ordinality

-- data: generate_subscripts, numbered, with columns
select p.id, t.n, t.c from product p left join generate_subscripts(p.tags, 1) with ordinality as t(c, n) on true order by p.id, t.n

-- data: generate_subscripts in a subquery
select p.id, (select count(x) from generate_subscripts(p.tags, 1) as x) as n, exists (select 1 from generate_subscripts(p.tags, 1) as x where x is not null) as some from product p order by p.id

-- data: generate_subscripts, grouped
select item, count(*) as n, min(p.id) as least from product p, generate_subscripts(p.tags, 1) as item group by item order by n desc, item::text limit 20

-- data: unnest, without an alias
select p.id, unnest.*, unnest as whole, unnest as named from product p, unnest(p.tags) order by p.id, unnest::text

-- data: unnest as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, unnest(p.tags) as item order by p.id, item::text

-- data: unnest with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral unnest(p.tags) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: unnest, numbered
select p.id, t.* from product p cross join unnest(p.tags) with ordinality as t order by p.id, t.ordinality

-- data: unnest, numbered, with columns
select p.id, t.n, t.c from product p left join unnest(p.tags) with ordinality as t(c, n) on true order by p.id, t.n

-- data: unnest in a subquery
select p.id, (select count(x) from unnest(p.tags) as x) as n, exists (select 1 from unnest(p.tags) as x where x is not null) as some from product p order by p.id

-- data: unnest, grouped
select item, count(*) as n, min(p.id) as least from product p, unnest(p.tags) as item group by item order by n desc, item::text limit 20

-- data: string_to_table, without an alias
select p.id, string_to_table.*, string_to_table as whole, string_to_table as named from product p, string_to_table(p.label, ' ') order by p.id, string_to_table::text

-- data: string_to_table as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, string_to_table(p.label, ' ') as item order by p.id, item::text

-- data: string_to_table with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral string_to_table(p.label, ' ') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: string_to_table, numbered
select p.id, t.* from product p cross join string_to_table(p.label, ' ') with ordinality as t order by p.id, t.ordinality

-- data: string_to_table, numbered, with columns
select p.id, t.n, t.c from product p left join string_to_table(p.label, ' ') with ordinality as t(c, n) on true order by p.id, t.n

-- data: string_to_table in a subquery
select p.id, (select count(x) from string_to_table(p.label, ' ') as x) as n, exists (select 1 from string_to_table(p.label, ' ') as x where x is not null) as some from product p order by p.id

-- data: string_to_table, grouped
select item, count(*) as n, min(p.id) as least from product p, string_to_table(p.label, ' ') as item group by item order by n desc, item::text limit 20

-- data: regexp_split_to_table, without an alias
select p.id, regexp_split_to_table.*, regexp_split_to_table as whole, regexp_split_to_table as named from product p, regexp_split_to_table(p.label, '\s') order by p.id, regexp_split_to_table::text

-- data: regexp_split_to_table as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, regexp_split_to_table(p.label, '\s') as item order by p.id, item::text

-- data: regexp_split_to_table with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral regexp_split_to_table(p.label, '\s') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: regexp_split_to_table, numbered
select p.id, t.* from product p cross join regexp_split_to_table(p.label, '\s') with ordinality as t order by p.id, t.ordinality

-- data: regexp_split_to_table, numbered, with columns
select p.id, t.n, t.c from product p left join regexp_split_to_table(p.label, '\s') with ordinality as t(c, n) on true order by p.id, t.n

-- data: regexp_split_to_table in a subquery
select p.id, (select count(x) from regexp_split_to_table(p.label, '\s') as x) as n, exists (select 1 from regexp_split_to_table(p.label, '\s') as x where x is not null) as some from product p order by p.id

-- data: regexp_split_to_table, grouped
select item, count(*) as n, min(p.id) as least from product p, regexp_split_to_table(p.label, '\s') as item group by item order by n desc, item::text limit 20

-- data: regexp_matches, without an alias
select p.id, regexp_matches.*, regexp_matches as whole, regexp_matches as named from product p, regexp_matches(p.label, '(e)(.)', 'g') order by p.id, regexp_matches::text

-- data: regexp_matches as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, regexp_matches(p.label, '(e)(.)', 'g') as item order by p.id, item::text

-- data: regexp_matches with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral regexp_matches(p.label, '(e)(.)', 'g') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: regexp_matches, numbered
select p.id, t.* from product p cross join regexp_matches(p.label, '(e)(.)', 'g') with ordinality as t order by p.id, t.ordinality

-- data: regexp_matches, numbered, with columns
select p.id, t.n, t.c from product p left join regexp_matches(p.label, '(e)(.)', 'g') with ordinality as t(c, n) on true order by p.id, t.n

-- data: regexp_matches in a subquery
select p.id, (select count(x) from regexp_matches(p.label, '(e)(.)', 'g') as x) as n, exists (select 1 from regexp_matches(p.label, '(e)(.)', 'g') as x where x is not null) as some from product p order by p.id

-- data: regexp_matches, grouped
select item, count(*) as n, min(p.id) as least from product p, regexp_matches(p.label, '(e)(.)', 'g') as item group by item order by n desc, item::text limit 20

-- data: jsonb_array_elements, without an alias
select p.id, jsonb_array_elements.*, jsonb_array_elements as whole, value as named from product p, jsonb_array_elements(p.specs -> 'dims') order by p.id, value::text

-- data: jsonb_array_elements as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, jsonb_array_elements(p.specs -> 'dims') as item order by p.id, item::text

-- data: jsonb_array_elements with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral jsonb_array_elements(p.specs -> 'dims') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: jsonb_array_elements, numbered
select p.id, t.* from product p cross join jsonb_array_elements(p.specs -> 'dims') with ordinality as t order by p.id, t.ordinality

-- data: jsonb_array_elements, numbered, with columns
select p.id, t.n, t.c from product p left join jsonb_array_elements(p.specs -> 'dims') with ordinality as t(c, n) on true order by p.id, t.n

-- data: jsonb_array_elements in a subquery
select p.id, (select count(x) from jsonb_array_elements(p.specs -> 'dims') as x) as n, exists (select 1 from jsonb_array_elements(p.specs -> 'dims') as x where x is not null) as some from product p order by p.id

-- data: jsonb_array_elements, grouped
select item, count(*) as n, min(p.id) as least from product p, jsonb_array_elements(p.specs -> 'dims') as item group by item order by n desc, item::text limit 20

-- data: jsonb_array_elements_text, without an alias
select p.id, jsonb_array_elements_text.*, jsonb_array_elements_text as whole, value as named from product p, jsonb_array_elements_text(p.specs -> 'dims') order by p.id, value::text

-- data: jsonb_array_elements_text as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, jsonb_array_elements_text(p.specs -> 'dims') as item order by p.id, item::text

-- data: jsonb_array_elements_text with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral jsonb_array_elements_text(p.specs -> 'dims') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: jsonb_array_elements_text, numbered
select p.id, t.* from product p cross join jsonb_array_elements_text(p.specs -> 'dims') with ordinality as t order by p.id, t.ordinality

-- data: jsonb_array_elements_text, numbered, with columns
select p.id, t.n, t.c from product p left join jsonb_array_elements_text(p.specs -> 'dims') with ordinality as t(c, n) on true order by p.id, t.n

-- data: jsonb_array_elements_text in a subquery
select p.id, (select count(x) from jsonb_array_elements_text(p.specs -> 'dims') as x) as n, exists (select 1 from jsonb_array_elements_text(p.specs -> 'dims') as x where x is not null) as some from product p order by p.id

-- data: jsonb_array_elements_text, grouped
select item, count(*) as n, min(p.id) as least from product p, jsonb_array_elements_text(p.specs -> 'dims') as item group by item order by n desc, item::text limit 20

-- data: json_array_elements, without an alias
select p.id, json_array_elements.*, json_array_elements::text as whole, value::text as named from product p, json_array_elements(to_json(p.tags)) order by p.id, value::text

-- data: json_array_elements as an item
select p.id, item.*, item::text as whole, count(item::text) over () as n from product p, json_array_elements(to_json(p.tags)) as item order by p.id, item::text

-- data: json_array_elements with a column
select p.id, t.*, t.c, c::text as bare, t::text as whole from product p, lateral json_array_elements(to_json(p.tags)) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: json_array_elements, numbered
select p.id, t.* from product p cross join json_array_elements(to_json(p.tags)) with ordinality as t order by p.id, t.ordinality

-- data: json_array_elements, numbered, with columns
select p.id, t.n, t.c from product p left join json_array_elements(to_json(p.tags)) with ordinality as t(c, n) on true order by p.id, t.n

-- data: json_array_elements in a subquery
select p.id, (select count(x) from json_array_elements(to_json(p.tags)) as x) as n, exists (select 1 from json_array_elements(to_json(p.tags)) as x where x is not null) as some from product p order by p.id

-- data: json_array_elements_text, without an alias
select p.id, json_array_elements_text.*, json_array_elements_text as whole, value as named from product p, json_array_elements_text(to_json(p.tags)) order by p.id, value::text

-- data: json_array_elements_text as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, json_array_elements_text(to_json(p.tags)) as item order by p.id, item::text

-- data: json_array_elements_text with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral json_array_elements_text(to_json(p.tags)) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: json_array_elements_text, numbered
select p.id, t.* from product p cross join json_array_elements_text(to_json(p.tags)) with ordinality as t order by p.id, t.ordinality

-- data: json_array_elements_text, numbered, with columns
select p.id, t.n, t.c from product p left join json_array_elements_text(to_json(p.tags)) with ordinality as t(c, n) on true order by p.id, t.n

-- data: json_array_elements_text in a subquery
select p.id, (select count(x) from json_array_elements_text(to_json(p.tags)) as x) as n, exists (select 1 from json_array_elements_text(to_json(p.tags)) as x where x is not null) as some from product p order by p.id

-- data: json_array_elements_text, grouped
select item, count(*) as n, min(p.id) as least from product p, json_array_elements_text(to_json(p.tags)) as item group by item order by n desc, item::text limit 20

-- data: jsonb_object_keys, without an alias
select p.id, jsonb_object_keys.*, jsonb_object_keys as whole, jsonb_object_keys as named from product p, jsonb_object_keys(p.specs) order by p.id, jsonb_object_keys::text

-- data: jsonb_object_keys as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, jsonb_object_keys(p.specs) as item order by p.id, item::text

-- data: jsonb_object_keys with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral jsonb_object_keys(p.specs) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: jsonb_object_keys, numbered
select p.id, t.* from product p cross join jsonb_object_keys(p.specs) with ordinality as t order by p.id, t.ordinality

-- data: jsonb_object_keys, numbered, with columns
select p.id, t.n, t.c from product p left join jsonb_object_keys(p.specs) with ordinality as t(c, n) on true order by p.id, t.n

-- data: jsonb_object_keys in a subquery
select p.id, (select count(x) from jsonb_object_keys(p.specs) as x) as n, exists (select 1 from jsonb_object_keys(p.specs) as x where x is not null) as some from product p order by p.id

-- data: jsonb_object_keys, grouped
select item, count(*) as n, min(p.id) as least from product p, jsonb_object_keys(p.specs) as item group by item order by n desc, item::text limit 20

-- data: json_object_keys, without an alias
select p.id, json_object_keys.*, json_object_keys as whole, json_object_keys as named from product p, json_object_keys(p.specs::json) order by p.id, json_object_keys::text

-- data: json_object_keys as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, json_object_keys(p.specs::json) as item order by p.id, item::text

-- data: json_object_keys with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral json_object_keys(p.specs::json) as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: json_object_keys, numbered
select p.id, t.* from product p cross join json_object_keys(p.specs::json) with ordinality as t order by p.id, t.ordinality

-- data: json_object_keys, numbered, with columns
select p.id, t.n, t.c from product p left join json_object_keys(p.specs::json) with ordinality as t(c, n) on true order by p.id, t.n

-- data: json_object_keys in a subquery
select p.id, (select count(x) from json_object_keys(p.specs::json) as x) as n, exists (select 1 from json_object_keys(p.specs::json) as x where x is not null) as some from product p order by p.id

-- data: json_object_keys, grouped
select item, count(*) as n, min(p.id) as least from product p, json_object_keys(p.specs::json) as item group by item order by n desc, item::text limit 20

-- data: jsonb_path_query, without an alias
select p.id, jsonb_path_query.*, jsonb_path_query as whole, jsonb_path_query as named from product p, jsonb_path_query(p.specs, '$.dims[*]') order by p.id, jsonb_path_query::text

-- data: jsonb_path_query as an item
select p.id, item.*, item as whole, count(item) over () as n from product p, jsonb_path_query(p.specs, '$.dims[*]') as item order by p.id, item::text

-- data: jsonb_path_query with a column
select p.id, t.*, t.c, c as bare, t as whole from product p, lateral jsonb_path_query(p.specs, '$.dims[*]') as t(c) where t.c is not null and t is not null order by p.id, t.c::text

-- data: jsonb_path_query, numbered
select p.id, t.* from product p cross join jsonb_path_query(p.specs, '$.dims[*]') with ordinality as t order by p.id, t.ordinality

-- data: jsonb_path_query, numbered, with columns
select p.id, t.n, t.c from product p left join jsonb_path_query(p.specs, '$.dims[*]') with ordinality as t(c, n) on true order by p.id, t.n

-- data: jsonb_path_query in a subquery
select p.id, (select count(x) from jsonb_path_query(p.specs, '$.dims[*]') as x) as n, exists (select 1 from jsonb_path_query(p.specs, '$.dims[*]') as x where x is not null) as some from product p order by p.id

-- data: jsonb_path_query, grouped
select item, count(*) as n, min(p.id) as least from product p, jsonb_path_query(p.specs, '$.dims[*]') as item group by item order by n desc, item::text limit 20

-- data: jsonb_each, without an alias
select p.id, jsonb_each.* from product p, jsonb_each(p.specs) order by p.id, 2, 3::text

-- data: jsonb_each as an item
select p.id, t.key, t.value, value as bare from product p, jsonb_each(p.specs) as t order by p.id, key

-- data: jsonb_each with columns
select p.id, t.*, t.k, v from product p, jsonb_each(p.specs) as t(k, v) order by p.id, k::text, v::text

-- data: jsonb_each, numbered
select p.id, t.* from product p, jsonb_each(p.specs) with ordinality as t(k, v, n) order by p.id, n

-- data: jsonb_each, the whole row as text
select p.id, t::text as row from product p, jsonb_each(p.specs) as t order by p.id, 2

-- data: jsonb_each, the whole row as JSON
select p.id, to_jsonb(t) as row from product p, jsonb_each(p.specs) as t order by p.id, 2

-- data: jsonb_each_text, without an alias
select p.id, jsonb_each_text.* from product p, jsonb_each_text(p.specs) order by p.id, 2, 3::text

-- data: jsonb_each_text as an item
select p.id, t.key, t.value, value as bare from product p, jsonb_each_text(p.specs) as t order by p.id, key

-- data: jsonb_each_text with columns
select p.id, t.*, t.k, v from product p, jsonb_each_text(p.specs) as t(k, v) order by p.id, k::text, v::text

-- data: jsonb_each_text, numbered
select p.id, t.* from product p, jsonb_each_text(p.specs) with ordinality as t(k, v, n) order by p.id, n

-- data: jsonb_each_text, the whole row as text
select p.id, t::text as row from product p, jsonb_each_text(p.specs) as t order by p.id, 2

-- data: jsonb_each_text, the whole row as JSON
select p.id, to_jsonb(t) as row from product p, jsonb_each_text(p.specs) as t order by p.id, 2

-- data: json_each, without an alias
select p.id, json_each.* from product p, json_each(p.specs::json) order by p.id, 2, 3::text

-- data: json_each as an item
select p.id, t.key, t.value, value as bare from product p, json_each(p.specs::json) as t order by p.id, key

-- data: json_each with columns
select p.id, t.*, t.k, v from product p, json_each(p.specs::json) as t(k, v) order by p.id, k::text, v::text

-- data: json_each, numbered
select p.id, t.* from product p, json_each(p.specs::json) with ordinality as t(k, v, n) order by p.id, n

-- data: json_each, the whole row as text
select p.id, t::text as row from product p, json_each(p.specs::json) as t order by p.id, 2

-- data: json_each, the whole row as JSON
select p.id, to_jsonb(t) as row from product p, json_each(p.specs::json) as t order by p.id, 2

-- data: json_each_text, without an alias
select p.id, json_each_text.* from product p, json_each_text(p.specs::json) order by p.id, 2, 3::text

-- data: json_each_text as an item
select p.id, t.key, t.value, value as bare from product p, json_each_text(p.specs::json) as t order by p.id, key

-- data: json_each_text with columns
select p.id, t.*, t.k, v from product p, json_each_text(p.specs::json) as t(k, v) order by p.id, k::text, v::text

-- data: json_each_text, numbered
select p.id, t.* from product p, json_each_text(p.specs::json) with ordinality as t(k, v, n) order by p.id, n

-- data: json_each_text, the whole row as text
select p.id, t::text as row from product p, json_each_text(p.specs::json) as t order by p.id, 2

-- data: json_each_text, the whole row as JSON
select p.id, to_jsonb(t) as row from product p, json_each_text(p.specs::json) as t order by p.id, 2

-- data: unnest of two arrays, without an alias
select p.id, u.* from product p, unnest(p.tags, array[p.id, 1]) as u order by p.id, 2, 3

-- data: unnest of two arrays with columns
select p.id, t.*, t.k, v from product p, unnest(p.tags, array[p.id, 1]) as t(k, v) order by p.id, k::text, v::text

-- data: unnest of two arrays, numbered
select p.id, t.* from product p, unnest(p.tags, array[p.id, 1]) with ordinality as t(k, v, n) order by p.id, n

-- data: unnest of two arrays, the whole row as text
select p.id, t::text as row from product p, unnest(p.tags, array[p.id, 1]) as t order by p.id, 2

-- data: unnest of two arrays, the whole row as JSON
select p.id, to_jsonb(t) as row from product p, unnest(p.tags, array[p.id, 1]) as t order by p.id, 2

-- data: jsonb_to_recordset
select e.id, t.* from event e, jsonb_to_recordset(jsonb_build_array(e.props)) as t(page text, score int, ab bool) where e.id < 9 order by 1

-- data: jsonb_to_record
select e.id, t.page, t.utm ->> 'source' as source from event e, jsonb_to_record(e.props) as t(page text, utm jsonb) where e.id < 9 order by 1

-- data: an array of items in an event, by the name of the item
select e.id, item ->> 0 as first from event e, jsonb_array_elements(jsonb_build_array(e.props -> 'page', e.props -> 'score')) as item where e.id < 5 order by 1, 2

-- data: items of items
select p.id, a, b from product p, unnest(p.tags) as a, string_to_table(a, 'e') as b order by 1, 2, 3

-- data: an item in ON
select p.id, t from product p join lateral unnest(p.tags) as t on t <> 'new' order by 1, 2

-- data: an item in IN
select id from product p where 'hot' in (select t from unnest(p.tags) as t) order by 1

-- data: the item of an outer query
select p.id, (select string_agg(u || t, ',' order by u) from string_to_table('a b', ' ') as u) as each from product p, unnest(p.tags) as t order by 1, 2
