import { readFileSync } from 'node:fs';
import { formsOf, ready } from 'osl-compiler';
import t from 'tap';
import {
  kindWarnings,
  lackingFor,
  type ServerKind,
  serverKind,
} from '../../src/engine/postgres/server-kind.js';
import { CASES, caseFiles } from '../proof/golden/files.js';

/**
 * Emitted SQL, of all golden cases, against what servers document that speak the protocol of Postgres. None of them runs
 * here: docs/decisions/0110-several-servers-behind-one.md names the pages.
 */

await ready();

/**
 * Every kind of node of Postgres' syntax tree that is emitted, and the rule of CockroachDB's grammar
 * (`docs/generated/sql/bnf/stmt_block.bnf`) that takes it; null where none does.
 */
const COCKROACH: ReadonlyMap<string, string | null> = new Map([
  ['A_ArrayExpr', 'd_expr: ARRAY array_expr'],
  ['A_Const', 'd_expr'],
  ['A_Expr', 'a_expr'],
  ['A_Indices', 'array_subscript'],
  ['A_Indirection', 'c_expr: d_expr array_subscripts; d_expr: ( a_expr ) . name'],
  ['BoolExpr', 'a_expr: AND, OR, NOT'],
  ['BooleanTest', 'a_expr: IS TRUE, IS NOT FALSE'],
  ['CaseExpr', 'case_expr'],
  ['CaseWhen', 'when_clause'],
  ['CoalesceExpr', 'func_expr_common_subexpr'],
  ['CollateClause', 'a_expr: COLLATE'],
  ['ColumnDef', 'col_def'],
  ['ColumnRef', 'column_path_with_star'],
  ['CommonTableExpr', 'common_table_expr, with materialize_clause'],
  ['FuncCall', 'func_expr: func_application within_group_clause filter_clause over_clause'],
  ['GroupingFunc', null],
  ['GroupingSet', null],
  ['Integer', 'typename'],
  ['JoinExpr', 'joined_table'],
  ['List', 'a list of any rule'],
  ['MinMaxExpr', 'special_function: GREATEST, LEAST'],
  ['NullTest', 'a_expr: IS NULL'],
  ['ParamRef', 'd_expr: PLACEHOLDER'],
  ['RangeFunction', 'table_ref: func_table opt_ordinality'],
  ['RangeSubselect', 'table_ref: LATERAL select_with_parens'],
  ['RangeTableSample', null],
  ['RangeVar', 'relation_expr'],
  ['ResTarget', 'target_elem'],
  ['RowExpr', 'row'],
  ['SelectStmt', 'simple_select'],
  ['SortBy', 'sortby'],
  ['String', 'name'],
  ['SubLink', 'c_expr: EXISTS; subquery_op; in_expr; d_expr: select_with_parens'],
  ['TypeCast', 'func_expr_common_subexpr: CAST'],
  ['TypeName', 'typename'],
  ['WindowDef', 'window_specification'],
  ['WithClause', 'with_clause'],
]);

/** The SQL of every golden case that is answered. */
function emitted(): readonly string[] {
  return caseFiles().flatMap((file) =>
    readFileSync(new URL(file, CASES), 'utf8')
      .split(/\n{2,}/)
      .flatMap((block) => {
        const [, result = ''] = block.split('\n----');
        const [, sql] = /^sql {5}([^\n]*(?:\n {8}[^\n]*)*)/m.exec(result) ?? [];
        return sql === undefined ? [] : [sql.replaceAll('\n        ', '\n')];
      }),
  );
}

const statements = emitted();

t.test('each node that is emitted is one that was looked for in the documentation', async (t) => {
  t.ok(statements.length > 600, `${statements.length} statements`);
  const seen = new Set(statements.flatMap((sql) => [...formsOf(sql).nodes]));
  t.same(
    [...seen].filter((node) => !COCKROACH.has(node)),
    [],
  );
  t.same(
    [...COCKROACH.keys()].filter((node) => !seen.has(node)),
    [],
    'and none is listed that is not emitted',
  );
});

t.test('what CockroachDB does not document is refused, and nothing else', async (t) => {
  const refused = statements.filter((sql) => lackingFor('cockroachdb', sql) !== null);
  for (const sql of statements) {
    const { nodes, forms } = formsOf(sql);
    const undocumented = [...nodes].filter((node) => COCKROACH.get(node) === null);
    const unruled = forms.has('FETCH … WITH TIES') || forms.has('a sorted DISTINCT aggregate');
    const lacking = lackingFor('cockroachdb', sql);
    if (undocumented.length > 0 || unruled) t.not(lacking, null, sql);
    else t.ok(lacking === null || lacking.startsWith('the operator'), `${lacking}: ${sql}`);
  }
  t.comment(`${refused.length} of ${statements.length} statements are refused`);
  t.ok(refused.length > 0 && refused.length < statements.length / 20, `${refused.length}`);
});

t.test('servers on the parser of Postgres are sent everything that they answer correctly', async (t) => {
  const lacking = (kind: ServerKind) =>
    statements.map((sql) => lackingFor(kind, sql)).filter((form) => form !== null);
  for (const kind of ['postgres', 'yugabytedb', 'aurora'] as const) t.same(lacking(kind), [], kind);
  t.same([...new Set(lacking('citus'))], ['FETCH … WITH TIES']);
});

t.test('each form is seen where it is used', async (t) => {
  const forms = (sql: string): readonly string[] => [...formsOf(sql).forms].sort();
  t.same(forms('select 1'), []);
  t.same(forms('select a from t group by grouping sets ((a), ())'), ['GROUPING SETS']);
  t.same(forms('select a from t order by a fetch first 3 rows with ties'), ['FETCH … WITH TIES']);
  t.same(forms('select a from t tablesample system (1)'), ['TABLESAMPLE']);
  t.same(forms('with recursive q as (select 1) select * from q'), ['WITH RECURSIVE']);
  t.same(forms('with q as materialized (select 1) select * from q'), ['MATERIALIZED']);
  t.same(forms('select distinct a from t'), []);
  t.same(forms('select distinct on (a) a from t'), ['DISTINCT ON']);
  t.same(forms('select string_agg(distinct a, $1 order by a) from t'), ['a sorted DISTINCT aggregate']);
  t.same(forms('select f(variadic a) from t'), ['a variadic call']);
  t.same(forms('select (a)[1:2] from t'), ['an array slice']);
  t.same(forms('select xmlelement(name a)'), ['XML']);
  t.same(forms('select 1 union all (select a from t order by a fetch first 1 rows with ties)'), [
    'FETCH … WITH TIES',
  ]);
  t.same([...formsOf('select a operator(pg_catalog.-|-) b from t').operators], ['-|-']);
});

t.test('servers are told apart by what they have, and what they say', async (t) => {
  const postgres = 'PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit';
  const none = { citus: false, aurora: false };
  t.equal(serverKind({ version: postgres, ...none }), 'postgres');
  t.equal(serverKind({ version: postgres, ...none, citus: true }), 'citus');
  t.equal(serverKind({ version: postgres, ...none, aurora: true }), 'aurora');
  t.equal(serverKind({ version: 'CockroachDB CCL v24.3.1 (x86_64-pc-linux-gnu)', ...none }), 'cockroachdb');
  t.equal(serverKind({ version: 'PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64', ...none }), 'yugabytedb');
  t.same(kindWarnings('postgres'), []);
  for (const kind of ['aurora', 'cockroachdb', 'yugabytedb'] as const)
    t.match(kindWarnings(kind), [/was not tried/], kind);
});
