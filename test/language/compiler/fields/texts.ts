/** Where things stand in a text. */
export const PLACES = /\.(location|list_start|list_end|rexpr_list_start|rexpr_list_end)$/;

/** Fields that have but one value in a question, or that only say how something was spelt. */
export const SAYS_NOTHING: ReadonlyMap<string, RegExp> = new Map([
  ['RangeVar.relpersistence', /^"p"$/],
  ['TypeName.typemod', /^-1$/],
  ['SQLValueFunction.typmod', /^-1$/],
  ['NamedArgExpr.argnumber', /^-1$/],
  // ROW(…) and (…) are the same row.
  ['RowExpr.row_format', /^"COERCE_(EXPLICIT_CALL|IMPLICIT_CAST)"$/],
  // Of VALUES, and of the step of a recursion: what is no LIMIT and no set operation.
  ['SelectStmt.limitOption', /^"LIMIT_OPTION_(DEFAULT|COUNT)"$/],
  ['SelectStmt.op', /^"SETOP_NONE"$/],
  // Postgres never merges a recursive table, whatever is said of it.
  ['CommonTableExpr.ctematerialized', /^"CTEMaterializeDefault"$/],
  ['ColumnDef.is_local', /^true$/],
  // A function in FROM sees the items before it with or without the word.
  ['RangeFunction.lateral', /^true$/],
  // Without grouping sets there is nothing to take twice.
  ['SelectStmt.groupDistinct', /^true$/],
  // What OVER has of its own where it names a window: Postgres' default, without the bit that says otherwise.
  ['WindowDef.frameOptions', /^1058$/],
  // EXTRACT, SUBSTRING … FROM and their kin are calls of functions, however they are written.
  ['FuncCall.funcformat', /^"COERCE_(EXPLICIT_CALL|SQL_SYNTAX)"$/],
]);

/** Fields that analysis fills in, and those that the grammar fills in for other statements only. */
export const NEVER_IN_A_QUESTION = new RegExp(
  [
    String.raw`\.(xpr|\w*collid|\w*typeOid|typeOid|row_typeid|subLinkId|rtindex|casetype|coalescetype|minmaxtype)$`,
    String.raw`^ColumnDef\.(?!colname$|typeName$|is_local$|location$)`,
    String.raw`^CommonTableExpr\.(cterecursive|cterefcount|ctecol\w+)$`,
    String.raw`^CTECycleClause\.cycle_mark_(type|typmod|collation|neop)$`,
    String.raw`^GroupingFunc\.(refs|agglevelsup)$`,
    String.raw`^SetToDefault\.(typeId|typeMod|collation)$`,
    String.raw`^SQLValueFunction\.type$`,
    String.raw`^(JsonParseExpr\.output|JsonScalarExpr\.output|JsonReturning\.typ(id|mod)|JsonValueExpr\.formatted_expr)$`,
    // Of INSERT and UPDATE, of a function's parameters, and of analysis.
    String.raw`^(ResTarget\.indirection|TypeName\.pct_type|NullTest\.argisrow|RowExpr\.colnames)$`,
  ].join('|'),
);

/** Questions with what those of the docs and the golden cases lack. */
export const TEXTS: readonly string[] = [
  'select id from only customer',
  'select id from only (customer)',
  'select id from customer *',
  'select c.id from customer c join only "order" o on o.customer_id = c.id',
  'with t as (select id from customer) select id from only t',
  'with t(a, b) as (select id from customer) select a from t',
  'with t as (select id from customer), t as (select 1 as id) select id from t',
  'select sum(id) over w from customer window w as (order by id), w as (order by name)',
  'select id from customer tablesample system (10) repeatable (1)',
  'select id from customer for update of customer nowait',
  'select id from customer for share skip locked',
  'select id from customer as c(x, y)',
  "select key from traverse(anchor => 'order', target => 'customer', keys => ('1')) with ordinality",
  "select key from traverse(anchor => 'order', target => 'customer', keys => ('1')) as t(a, b)",
  "select key from traverse(anchor => 'order', target => 'customer', keys => ('1')) as t(a int, b int)",
  "select key from lateral traverse(anchor => 'order', target => 'customer', keys => ('1'))",
  "select key from rows from (traverse(anchor => 'order', target => 'customer', keys => ('1')))",
  "select key from rows from (traverse(anchor => 'order', target => 'customer', keys => ('1')) as (a int))",
  "select key from traverse(distinct anchor => 'order', target => 'customer', keys => ('1'))",
  "select key from traverse(anchor => 'order', target => 'customer', variadic keys => ('1'))",
  "select key from traverse(anchor => 'order', target => 'customer', keys => ('1') order by 1)",
  'select j.id from (customer join "order" using (region)) as j',
  'select id from customer join "order" using (region) as u',
  'select row(1, 2)',
  'select id as x.y from customer',
  'select (1, 2) is null',
  'select id::customer.name%type from customer',
  'select id::setof int4 from customer',
  'select current_time(3)',
  'select localtimestamp(0)',
  'with recursive t as (select 1 as id union all select id from t) search breadth first by id set s select id from t',
  'with recursive t as (select 1 as id union all select id from t) cycle id set c to 1 default 0 using p select id from t',
  'select id into unlogged t from customer',
  'select id from customer group by distinct id',
  'select id from customer group by all id',
  'select grouping(id) from customer group by rollup (id)',
  'select id from customer order by id using <',
  'select id from customer order by id fetch first 1 rows with ties',
  'select percentile_cont(0.5) within group (order by id) from customer',
  'select count(distinct id) filter (where id > 1) from customer',
  'select id[1], labels[1:2] from customer',
  'select (select id from customer limit 1) = any (select id from customer)',
  'select id collate "C" from customer',
  'select 1 operator(pg_catalog.+) 2',
];
