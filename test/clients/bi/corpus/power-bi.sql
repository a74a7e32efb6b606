-- tool: Power BI (written, extended)
-- session: connects
SELECT version();

-- session: resets a pooled connection
DISCARD ALL;

-- session: reads a setting
SHOW max_identifier_length;

-- data: folded merge, left outer with nested groups
select "rows"."region" as "region", "rows"."status" as "status", sum("rows"."amount") as "a0" from (select "$Outer"."status", "$Outer"."amount", "$Inner"."region" from (select "id", "customer_id", "status", "amount" from "entities"."order") "$Outer" left outer join (select "_"."id" as "id2", "_"."region" as "region" from "entities"."customer" "_") "$Inner" on ("$Outer"."customer_id" = "$Inner"."id2")) "rows" group by "region", "status" limit 1000001;

-- data: full outer merge
select "$Outer"."id", "$Inner"."cid" from (select "id" from "entities"."customer") "$Outer" full outer join (select distinct "customer_id" as "cid" from "entities"."event") "$Inner" on ("$Outer"."id" = "$Inner"."cid");

-- data: merge on a text key, null-safe
select count(*) as "c" from (select "id", "note" from "entities"."order") "$Outer" inner join (select distinct "note" as "note2" from "entities"."order") "$Inner" on ("$Outer"."note" = "$Inner"."note2" or "$Outer"."note" is null and "$Inner"."note2" is null);

-- data: left anti merge
select "$Outer"."id" from (select "id" from "entities"."customer") "$Outer" where not exists (select 1 from "entities"."event" "$Inner" where "$Inner"."customer_id" = "$Outer"."id" and "$Inner"."kind" = 'buy');

-- data: DirectQuery: a matrix with subtotals by UNION
select * from (select "t0"."region" as "c1", null::text as "c2", sum("t0"."amount") as "a0" from "entities"."order" as "t0" group by "t0"."region" union all select "t0"."region", "t0"."status", sum("t0"."amount") from "entities"."order" as "t0" group by "t0"."region", "t0"."status") as "m" order by "c1", "c2" nulls first;

-- data: DirectQuery: a date table joined by cast
select "d"."day", count("o"."id") as "n" from (select distinct cast("placed_at" as date) as "day" from "entities"."order") as "d" left join (select "id", cast("placed_at" as date) as "day" from "entities"."order") as "o" on "d"."day" = "o"."day" group by "d"."day" limit 1000001;

-- data: type changes folded
select cast("_"."quantity" as double precision) as "q", cast("_"."amount" as decimal(19, 4)) as "a", cast("_"."placed_at" as timestamp) as "p", cast("_"."id" as character varying) as "i" from "entities"."order" as "_" where "_"."id" < 6;

-- data: conditional column
select "_"."id", case when "_"."quantity" >= 20 and "_"."quantity" is not null then 'high' when "_"."quantity" >= 10 then 'mid' else null end as "band" from "entities"."order" "_" where "_"."id" <= 10;

-- data: top n of rows
select "_"."id", "_"."amount" from "entities"."order" "_" order by "_"."amount" desc, "_"."id" limit 5;

-- data: date parts folded
select date_part('year', "_"."placed_at") as "y", date_part('quarter', "_"."placed_at") as "q", count(1) as "n" from "entities"."order" "_" group by date_part('year', "_"."placed_at"), date_part('quarter', "_"."placed_at");

-- data: a parameter
-- values: ["eu", "10"]
select "_"."id" from "entities"."order" "_" where "_"."region" = $1 and "_"."quantity" > $2::int order by 1;
