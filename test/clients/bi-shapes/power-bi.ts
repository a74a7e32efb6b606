import type { Tool } from './shape.js';

export const POWER_BI: Tool = {
  tool: 'Power BI',
  shapes: [
    {
      what: 'nested "rows", "_" and "$Table"',
      sql: `select "rows"."region" as "region", sum("rows"."amount") as "a0" from (select "_"."id", "_"."region", "_"."amount" from
        (select "$Table"."id" as "id", "$Table"."region" as "region", "$Table"."amount" as "amount" from "entities"."order" "$Table") "_"
        where "_"."region" = 'eu') "rows" group by "region" limit 1000001`,
    },
    {
      what: 'distinct count with blanks',
      sql: `select count(distinct "rows"."note") + max(case when "rows"."note" is null then 1 else 0 end) as "a0"
        from (select "_"."note" from "entities"."order" "_") "rows"`,
    },
    {
      what: 'a limit of one million and one, over ordered rows',
      sql: `select "_"."c1", "_"."a0" from (select "rows"."customer_id" as "c1", sum("rows"."quantity") as "a0" from "entities"."order" "rows" group by "customer_id") "_"
        where not "_"."a0" is null order by "_"."a0" desc, "_"."c1" limit 1000001`,
    },
    {
      what: 'a join of derived tables on keys',
      sql: `select "$Outer"."id", "$Inner"."name" from (select "id", "customer_id" from "entities"."order") "$Outer"
        inner join (select "_"."id" as "id2", "_"."name" as "name" from "entities"."customer" "_") "$Inner" on ("$Outer"."customer_id" = "$Inner"."id2") order by 1`,
    },
    {
      what: 'a left outer join of derived tables',
      sql: `select "$Outer"."name", count("$Inner"."id") as "n" from "entities"."customer" "$Outer"
        left outer join (select "id", "customer_id" from "entities"."order" where quantity > 35) "$Inner" on ("$Outer"."id" = "$Inner"."customer_id") group by "$Outer"."name" order by 1`,
    },
    {
      what: 'date filters by timestamp literals',
      sql: `select "_"."id" from "entities"."order" "_" where "_"."placed_at" >= timestamp '2026-01-01 00:00:00' and "_"."placed_at" < timestamp '2026-01-02 00:00:00' limit 4096`,
    },
    {
      what: 'a slicer of several members and blank',
      sql: `select "_"."id" from "entities"."order" "_" where ("_"."note" in ('note 3', 'note 6') or "_"."note" is null) and "_"."region" is not null`,
    },
    {
      what: 'the preview of a table',
      sql: `select "$Table"."id" as "id", "$Table"."name" as "name", "$Table"."email" as "email" from "entities"."customer" "$Table" limit 1000`,
    },
    {
      what: 'the count of a table',
      sql: `select count(*) as "C1" from (select "$Table"."id" from "entities"."order" "$Table") "rows"`,
    },
    {
      what: 'year and month keys',
      sql: `select extract(year from "_"."placed_at")::int * 100 + date_part('month', "_"."placed_at")::int as "ym", sum("_"."amount") as "a0" from "entities"."order" "_" group by 1`,
    },
    {
      what: 'text search by strpos and upper',
      sql: `select "_"."id" from "entities"."customer" "_" where strpos(upper("_"."name"), upper('d')) >= 1`,
    },
    {
      what: 'concatenation with null handling',
      sql: `select case when "_"."note" is not null and "_"."region" is not null then "_"."note" || ('/' || "_"."region") else null end as "t0_0" from "entities"."order" "_"`,
    },
    {
      what: 'a bound parameter cast to text',
      sql: `select "_"."id" from "entities"."customer" "_" where "_"."name" = 'Ada'::varchar and "_"."region" = cast('eu' as character varying(20))`,
    },
    {
      what: 'double precision casts and rounding',
      sql: `select round(cast("_"."amount" as numeric(18, 2)), 1) as a, cast("_"."amount" as double precision) * 2e0 as b, cast("_"."quantity" as decimal) as c from "entities"."order" "_"`,
    },
  ],
};
