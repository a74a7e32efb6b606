import { assertNever, InternalError } from '../errors/errors.js';
import { isConfigured, PATH_FUNCTIONS } from '../functions/special-types.js';
import { type EnumEquality, enumEquality } from '../plan/keys.js';
import type {
  Aggregate,
  BaseColumn,
  Collate,
  Distance,
  Expr,
  FrameBound,
  FunctionCall,
  Operation,
  RowComparison,
  Slice,
  SortKey,
  WindowCall,
  WindowFrame,
} from '../plan/plan.js';
import { COLLATIONS, explicitCollation } from '../plan/properties.js';
import { identifier } from '../text/sql-text.js';
import { emitQuery } from './emit.js';
import { emitRowsCall } from './rows.js';
import { quoteStructural, type Writer } from './writer.js';

/** Writes `expr`, in parentheses where precedence could change its meaning. */
export function emitExpr(expr: Expr, w: Writer): void {
  switch (expr.kind) {
    case 'column':
      w.write(`r${expr.source}.${identifier(expr.name)}`);
      break;
    case 'base':
      emitBase(expr, w);
      break;
    case 'parameter':
      w.write(`${w.parameter(expr.slot)}::${expr.type}`);
      break;
    case 'null':
      w.write(`null::${expr.type}`);
      break;
    case 'boolean':
      w.write(String(expr.value));
      break;
    case 'structural':
      w.write(`${quoteStructural(expr.text)}::text`);
      break;
    case 'call':
      emitCall(expr, w);
      break;
    case 'operation':
      emitOperation(expr, w);
      break;
    case 'cast':
      emitCast(expr.arg, expr.type, expr.modifiers, w);
      break;
    case 'bit_number':
      w.write('cast(cast(');
      emitExpr(expr.arg, w);
      w.write(` as bit(${expr.length})) as ${expr.type})`);
      break;
    case 'collate':
      writeParenthesised(w, () => {
        emitExpr(expr.arg, w);
        w.write(` collate pg_catalog."${collationName(expr)}"`);
      });
      break;
    case 'and':
    case 'or':
      writeParenthesised(w, () => w.list(expr.args, ` ${expr.kind} `, (e) => emitExpr(e, w)));
      break;
    case 'not':
      writeParenthesised(w, () => {
        w.write('not ');
        emitExpr(expr.arg, w);
      });
      break;
    case 'null_test':
      writeSuffixed(expr.arg, expr.negated ? 'is not null' : 'is null', w);
      break;
    case 'truth_test':
      writeSuffixed(expr.arg, `is ${expr.negated ? 'not ' : ''}${expr.test}`, w);
      break;
    case 'distinct_test':
      writeInfix(expr.left, expr.negated ? 'is not distinct from' : 'is distinct from', expr.right, w);
      break;
    case 'row_comparison':
      emitRowComparison(expr, w);
      break;
    case 'quantified':
      emitQuantified(expr, w);
      break;
    case 'membership':
      emitMembership(expr, w);
      break;
    case 'case':
      emitCase(expr, w);
      break;
    case 'conditional':
      w.write(`${expr.form}(`);
      w.list(expr.args, ', ', (e) => emitExpr(e, w));
      w.write(')');
      break;
    case 'array':
      w.write('array[');
      w.list(expr.items, ', ', (e) => emitExpr(e, w));
      w.write(`]::${expr.type}`);
      break;
    case 'row_text':
      w.write('cast(row(');
      w.list(expr.items, ', ', (e) => emitExpr(e, w));
      w.write(') as text)');
      break;
    case 'subscript':
      writeParenthesised(w, () => {
        writeParenthesised(w, () => emitExpr(expr.arg, w));
        for (const index of expr.indices) {
          w.write('[');
          emitExpr(index, w);
          w.write(']');
        }
      });
      break;
    case 'slice':
      emitSlice(expr, w);
      break;
    case 'aggregate':
      emitAggregate(expr, w);
      break;
    case 'grouping':
      w.write('grouping(');
      w.list(expr.args, ', ', (e) => emitExpr(e, w));
      w.write(')');
      break;
    case 'window':
      emitWindow(expr, w);
      break;
    case 'scalar_query':
      writeParenthesised(w, () => emitQuery(expr.query, w));
      break;
    case 'exists':
      w.write('exists ');
      writeParenthesised(w, () => emitQuery(expr.query, w));
      break;
    case 'in_query':
      writeParenthesised(w, () => {
        emitExpr(expr.arg, w);
        w.write(expr.negated ? ' not in (' : ' in (');
        emitQuery(expr.query, w);
        w.write(')');
      });
      break;
    case 'distance':
      emitDistance(expr, w);
      break;
    case 'stored_vector':
      w.write(`cast(t.${identifier(expr.column)} as ${expr.type === 'text' ? 'text' : 'real[]'})`);
      break;
    case 'literal':
    case 'attribute_match':
      w.ofPolicy(expr);
      break;
    default:
      assertNever(expr);
  }
}

/** Emits a base column, cast to text if it is read as text. For inet, the cast would append `/32` to a host address. */
function emitBase({ column, stored, type }: BaseColumn, w: Writer): void {
  if (stored === undefined) {
    w.base(column);
    return;
  }
  w.write(stored === 'inet' ? 'pg_catalog.abbrev(' : 'cast(');
  w.base(column);
  w.write(stored === 'inet' ? ')' : ` as ${type})`);
}

/**
 * Adds a comparison of enum labels to the comparison of texts, so that an index on the column can be used. The label is
 * looked up among the existing ones and is NULL if it does not exist, so it neither fails nor changes the result.
 */
function emitEnumEquality({ base, sql, value }: EnumEquality, w: Writer): void {
  const labels = `pg_catalog.unnest(pg_catalog.enum_range(null::${sql})) as e`;
  w.write(' and cast('); // a domain over the enum has no equality operator
  w.base(base.column);
  w.write(` as ${sql}) = (select e from ${labels} where cast(e as text) = `);
  emitExpr(value, w);
  w.write(')');
}

function writeParenthesised(w: Writer, inner: () => void): void {
  w.write('(');
  inner();
  w.write(')');
}

function writeSuffixed(arg: Expr, suffix: string, w: Writer): void {
  writeParenthesised(w, () => {
    emitExpr(arg, w);
    w.write(` ${suffix}`);
  });
}

function writeInfix(left: Expr, operator: string, right: Expr, w: Writer): void {
  writeParenthesised(w, () => {
    emitExpr(left, w);
    w.write(` ${operator} `);
    emitExpr(right, w);
  });
}

function collationName({ collation }: Collate): string {
  if (!COLLATIONS.has(collation)) throw new InternalError('a collation is not of the list');
  return collation;
}

/** Returns the schema-qualified, quoted name: `extract` and `overlay` are keywords of the grammar. */
function functionName(name: string): string {
  return `pg_catalog.${identifier(name)}`;
}

function emitCall(call: FunctionCall, w: Writer): void {
  if (call.definition.kind === 'rows') {
    emitRowsCall(call.definition, call.args, w);
    return;
  }
  w.write(`${functionName(call.definition.name)}(`);
  if (PATH_FUNCTIONS.has(call.definition.name)) emitWithPath(call.args, w);
  else if (isConfigured(call.definition)) emitConfigured(call.args, w);
  else w.list(call.args, ', ', (e) => emitExpr(e, w));
  if (call.definition.name === 'starts_with' && explicitCollation(call) === null) w.write(BYTEWISE);
  w.write(')');
}

/** Emits the arguments of a text search function. A literal configuration is qualified with `pg_catalog`. */
function emitConfigured(args: readonly Expr[], w: Writer): void {
  w.list([...args.entries()], ', ', ([i, e]) => {
    if (i > 0 || e.kind !== 'structural') emitExpr(e, w);
    else w.write(`${quoteStructural(`pg_catalog.${e.text.slice(e.text.indexOf('.') + 1)}`)}::regconfig`);
  });
}

/** Emits the arguments of a JSON path function: the document, the path as jsonpath, and any further arguments. */
export function emitWithPath(args: readonly Expr[], w: Writer): void {
  w.list([...args.entries()], ', ', ([i, e]) => {
    if (i !== 1) {
      emitExpr(e, w);
      return;
    }
    w.write('cast(');
    emitExpr(e, w);
    w.write(' as jsonpath)');
  });
}

/**
 * Makes LIKE and similar operators compare characters, whatever the column's collation. Up to Postgres 17 they fail on
 * nondeterministic collations, and the error would reveal that a row exists.
 */
const BYTEWISE = ' collate pg_catalog."default"';
const PATTERNS: ReadonlySet<string> = new Set(['~~', '!~~', '^@']);

// The session's search_path contains no operators outside pg_catalog, so bare names are safe.
function emitOperation(operation: Operation, w: Writer): void {
  const { left, definition, right } = operation;
  writeParenthesised(w, () => {
    if (left !== null) emitExpr(left, w);
    w.write(left === null ? `${definition.name} ` : ` ${definition.name} `);
    emitExpr(right, w);
    const patterned = PATTERNS.has(definition.name) && right.type === 'text';
    if (patterned && explicitCollation(operation) === null) w.write(BYTEWISE);
    const labels = enumEquality(operation);
    if (labels !== null) emitEnumEquality(labels, w);
  });
}

function emitCast(arg: Expr, type: string, modifiers: readonly number[], w: Writer): void {
  w.write('cast(');
  emitExpr(arg, w);
  w.write(` as ${type}${modifiers.length === 0 ? '' : `(${modifiers.join(', ')})`})`);
}

/** Emits a single comparison of two rows, so that a multi-column index can be used. */
function emitRowComparison({ operator, pairs }: RowComparison, w: Writer): void {
  writeParenthesised(w, () => {
    w.write('row(');
    w.list(pairs, ', ', (p) => emitExpr(p.left, w));
    w.write(`) ${operator} row(`);
    w.list(pairs, ', ', (p) => emitExpr(p.right, w));
    w.write(')');
  });
}

function emitQuantified(expr: Extract<Expr, { kind: 'quantified' }>, w: Writer): void {
  writeParenthesised(w, () => {
    emitExpr(expr.arg, w);
    w.write(` ${expr.definition.name} ${expr.quantifier} (`);
    emitAlone(expr.array, w);
    w.write(')');
  });
}

function emitMembership(expr: Extract<Expr, { kind: 'membership' }>, w: Writer): void {
  writeParenthesised(w, () => {
    emitExpr(expr.arg, w);
    w.write(expr.negated ? ' not in (' : ' in (');
    w.list(expr.items, ', ', (e) => (expr.items.length === 1 ? emitAlone(e, w) : emitExpr(e, w)));
    w.write(')');
  });
}

/** Emits what stands alone in the brackets of IN, ANY or ALL, where a bare subquery would be one over its rows. */
function emitAlone(expr: Expr, w: Writer): void {
  if (expr.kind === 'scalar_query') emitCast(expr, expr.type, [], w);
  else emitExpr(expr, w);
}

/**
 * Qualifies pgvector with schema public, which is not in the search path. The subquery makes Postgres parse the text
 * once: in a generic plan, a bare cast of a parameter is evaluated for every row.
 */
function emitDistance(expr: Distance, w: Writer): void {
  const signs = expr.vector === 'bit';
  w.write(`(t.${identifier(expr.column)} operator(public.${expr.operator}) (select `);
  w.write(signs ? 'public.binary_quantize(cast(' : 'cast(');
  emitExpr(expr.to, w);
  w.write(signs ? ' as public.vector))))' : ` as public.${expr.vector})))`);
}

function emitCase(expr: Extract<Expr, { kind: 'case' }>, w: Writer): void {
  w.write('case');
  for (const arm of expr.arms) {
    w.write(' when ');
    emitExpr(arm.when, w);
    w.write(' then ');
    emitExpr(arm.result, w);
  }
  w.write(' else ');
  emitExpr(expr.otherwise, w);
  w.write(' end');
}

function emitAggregate(expr: Aggregate, w: Writer): void {
  w.write(`${functionName(expr.definition.name)}(`);
  if (expr.distinct) w.write('distinct ');
  if (expr.args.length === 0 && expr.definition.kind === 'aggregate') w.write('*');
  const row = expr.definition.name === 'count' && expr.args.length > 1;
  if (row) w.write('row(');
  w.list(expr.args, ', ', (e) => emitExpr(e, w));
  if (row) w.write(')');
  if (expr.orderBy.length > 0) {
    w.write(expr.definition.kind === 'ordered_set' ? ') within group (order by ' : ' order by ');
    emitSortKeys(expr.orderBy, w);
  }
  w.write(')');
  emitFilter(expr.filter, w);
}

function emitSlice({ arg, lower, upper }: Slice, w: Writer): void {
  writeParenthesised(w, () => {
    writeParenthesised(w, () => emitExpr(arg, w));
    w.write('[');
    if (lower !== null) emitExpr(lower, w);
    w.write(' : ');
    if (upper !== null) emitExpr(upper, w);
    w.write(']');
  });
}

function emitFilter(filter: Expr | null, w: Writer): void {
  if (filter === null) return;
  w.write(' filter (where ');
  emitExpr(filter, w);
  w.write(')');
}

function emitWindow(expr: WindowCall, w: Writer): void {
  w.write(`${functionName(expr.definition.name)}(`);
  if (expr.args.length === 0 && expr.definition.kind === 'aggregate') w.write('*');
  w.list(expr.args, ', ', (e) => emitExpr(e, w));
  w.write(')');
  emitFilter(expr.filter, w);
  w.write(' over (');
  if (expr.partitionBy.length > 0) {
    w.write('partition by ');
    w.list(expr.partitionBy, ', ', (e) => emitExpr(e, w));
  }
  if (expr.orderBy.length > 0) {
    w.write(expr.partitionBy.length > 0 ? ' order by ' : 'order by ');
    emitSortKeys(expr.orderBy, w);
  }
  if (expr.frame !== null) emitFrame(expr.frame, w);
  w.write(')');
}

function emitFrame(frame: WindowFrame, w: Writer): void {
  w.write(` ${frame.mode} between `);
  emitBound(frame.start, w);
  w.write(' and ');
  emitBound(frame.end, w);
  if (frame.exclude !== null) w.write(` exclude ${frame.exclude}`);
}

function emitBound(bound: FrameBound, w: Writer): void {
  if (bound.kind === 'preceding' || bound.kind === 'following') {
    emitExpr(bound.offset, w);
    w.write(' ');
  }
  w.write(bound.kind);
}

export function emitSortKeys(keys: readonly SortKey[], w: Writer): void {
  w.list(keys, ', ', (key) => {
    if (typeof key.by === 'number') w.write(String(key.by));
    else emitKey(key.by, w);
    if (key.descending) w.write(' desc');
    if (key.nullsFirst !== key.descending) w.write(key.nullsFirst ? ' nulls first' : ' nulls last');
  });
}

/** Emits a key of ORDER BY, GROUP BY or DISTINCT ON, where Postgres refuses a constant without a cast. */
export function emitKey(expr: Expr, w: Writer): void {
  emitExpr(expr, w);
  if (expr.kind === 'boolean') w.write('::bool');
}
