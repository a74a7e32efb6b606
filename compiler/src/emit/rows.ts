import type { FunctionDefinition } from '../functions/define.js';
import { PATH_FUNCTIONS } from '../functions/special-types.js';
import type { Expr, RowSource } from '../plan/plan.js';
import { identifier } from '../text/sql-text.js';
import { emitExpr, emitWithPath } from './expression.js';
import type { Writer } from './writer.js';

/** Emits a function in FROM with the plan's column names. Fields of JSON objects get the type of their column. */
export function emitRowSource(source: RowSource, w: Writer): void {
  const { id, columns, fields, numbered } = source;
  if (fields === null) {
    emitRows(source, w);
    const all = [...columns, ...(numbered ? ['number'] : [])];
    w.write(`${numbered ? ' with ordinality' : ''} as r${id}(${all.map((_, i) => `c${i + 1}`).join(', ')})`);
    return;
  }
  w.write('lateral (select ');
  w.list([...columns.entries()], ', ', ([i, type]) => {
    const key = fields[i];
    if (key === undefined) return;
    emitField(key, type, w);
    w.write(` as c${i + 1}`);
  });
  if (numbered) w.write(`, e.n as c${columns.length + 1}`);
  w.write(' from ');
  emitRowsCall(source.definition, source.args, w);
  w.write(`${numbered ? ' with ordinality as e(v, n)' : ' as e(v)'}) as r${id}`);
}

/** Emits `unnest` of several arrays by its bare name, as its syntax requires; the search path has no other `unnest`. */
function emitRows({ definition, args }: RowSource, w: Writer): void {
  if (definition.name !== 'unnest' || args.length === 1) {
    emitRowsCall(definition, args, w);
    return;
  }
  w.write('unnest(');
  w.list(args, ', ', (arg) => emitExpr(arg, w));
  w.write(')');
}

/** Emits a member of a JSON object as a value of `type`; NULL if the member is absent or a JSON null. */
function emitField(key: Expr, type: string, w: Writer): void {
  const isJson = type === 'jsonb' || type === 'json';
  w.write(isJson ? 'cast(case when (e.v ->> ' : 'cast(e.v ->> ');
  emitExpr(key, w);
  if (isJson) {
    w.write(') is not null then e.v -> ');
    emitExpr(key, w);
    w.write(' end');
  }
  w.write(` as ${type})`);
}

/**
 * Emits a FROM item that reads a recursive table. Postgres computes rows as they are read; too many fail with 54000.
 * `OFFSET 0` keeps the outer query's conditions out of the subquery, because rows dropped there would not be counted.
 */
export function emitRecursive(table: number, width: number, id: number, w: Writer): void {
  const names = Array.from({ length: width }, (_, i) => `c${i + 1}`);
  const numbered = names.map((name) => `q.${name}`).join(', ');
  const tooMany = `case when s.n > ${MOST_ROWS} then pg_catalog.repeat(cast(s.n as text), 2147483647) is null else true end`;
  w.write(`(select ${names.map((name) => `s.${name}`).join(', ')} from (select ${numbered}`);
  w.write(
    `, pg_catalog.row_number() over () as n from q${table} as q) as s where ${tooMany} offset 0) as r${id}`,
  );
}

/** Maximum number of rows of one call of `generate_series`, and of a recursive table. */
const MOST_ROWS = 1_000_000;

/** Emits a call of a row function. A series that is too long fails with 54000 before any row is generated. */
export function emitRowsCall(definition: FunctionDefinition, args: readonly Expr[], w: Writer): void {
  const [start, stop, step] = args;
  w.write(`pg_catalog.${identifier(definition.name)}(`);
  if (PATH_FUNCTIONS.has(definition.name)) emitWithPath(args, w);
  else if (definition.name !== 'generate_series' || start === undefined || stop === undefined) {
    w.list(args, ', ', (e) => emitExpr(e, w));
  } else {
    emitExpr(start, w);
    w.write(', ');
    emitBounded(start, stop, step ?? null, w);
    if (step !== undefined) {
      w.write(', ');
      emitExpr(step, w);
    }
  }
  w.write(')');
}

/**
 * Emits the last value of a series, or an error if the series is too long. The failing branch reads all that the test
 * reads, and `concat` is not evaluated at plan time, so the branch is evaluated only if the test is true.
 */
function emitBounded(start: Expr, stop: Expr, step: Expr | null, w: Writer): void {
  const moments = stop.type === 'timestamp' || stop.type === 'timestamptz';
  const width = (): void => {
    w.write(moments ? 'extract(epoch from (' : '(cast(');
    emitExpr(stop, w);
    w.write(moments ? ' - ' : ' as numeric) - cast(');
    emitExpr(start, w);
    w.write(moments ? '))' : ' as numeric))');
  };
  const stride = (by: Expr): void => {
    w.write(moments ? 'extract(epoch from ' : 'cast(');
    emitExpr(by, w);
    w.write(moments ? ')' : ' as numeric)');
  };
  w.write('case when ');
  width();
  if (step === null) w.write(` >= ${MOST_ROWS}`);
  else {
    w.write(' * pg_catalog.sign(');
    stride(step);
    w.write(`) >= ${MOST_ROWS} * pg_catalog.abs(`);
    stride(step);
    w.write(') and ');
    stride(step);
    w.write(' <> 0');
  }
  w.write(' then cast(pg_catalog.repeat(pg_catalog.concat(');
  w.list([start, stop, ...(step === null ? [] : [step])], ', ', (e) => emitExpr(e, w));
  w.write(`), 2147483647) as ${stop.type}) else `);
  emitExpr(stop, w);
  w.write(' end');
}
