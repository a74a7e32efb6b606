import { assertNever, InternalError } from '../errors.js';
import type { OperatorDefinition } from '../functions/definition.js';
import type { Aggregate, Call, Expr, Frame, FrameBound, Operation, SortKey, WindowCall } from '../plan.js';
import { emitQuery } from './query.js';
import { identifier, quoted, type Writer } from './writer.js';

/** Writes `expr`, in parentheses where it could bind otherwise than it should. */
export function emitExpr(expr: Expr, w: Writer): void {
  switch (expr.kind) {
    case 'column':
      return w.write(`r${expr.source}.${identifier(expr.name)}`);
    case 'base':
      return w.write(`t.${identifier(expr.column)}`);
    case 'parameter':
      return w.write(`${w.parameter(expr.slot)}::${expr.type}`);
    case 'null':
      return w.write(`null::${expr.type}`);
    case 'boolean':
      return w.write(String(expr.value));
    case 'structural':
      return w.write(`${quoted(expr.text)}::text`);
    case 'call':
      return emitCall(expr, w);
    case 'operation':
      return emitOperation(expr, w);
    case 'cast':
      return emitCast(expr.arg, expr.type, expr.modifiers, w);
    case 'and':
    case 'or':
      return parenthesised(w, () => w.list(expr.args, ` ${expr.kind} `, (e) => emitExpr(e, w)));
    case 'not':
      return parenthesised(w, () => {
        w.write('not ');
        emitExpr(expr.arg, w);
      });
    case 'null_test':
      return suffixed(expr.arg, expr.negated ? 'is not null' : 'is null', w);
    case 'truth_test':
      return suffixed(expr.arg, `is ${expr.negated ? 'not ' : ''}${expr.test}`, w);
    case 'distinct_test':
      return between(expr.left, expr.negated ? 'is not distinct from' : 'is distinct from', expr.right, w);
    case 'quantified':
      return emitQuantified(expr.arg, expr.definition, expr.quantifier, expr.array, w);
    case 'membership':
      return emitMembership(expr, w);
    case 'case':
      return emitCase(expr, w);
    case 'conditional':
      w.write(`${expr.form}(`);
      w.list(expr.args, ', ', (e) => emitExpr(e, w));
      return w.write(')');
    case 'array':
      w.write('array[');
      w.list(expr.items, ', ', (e) => emitExpr(e, w));
      return w.write(`]::${expr.type}`);
    case 'subscript':
      return parenthesised(w, () => {
        parenthesised(w, () => emitExpr(expr.arg, w));
        w.write('[');
        emitExpr(expr.index, w);
        w.write(']');
      });
    case 'aggregate':
      return emitAggregate(expr, w);
    case 'window':
      return emitWindow(expr, w);
    case 'scalar_query':
      return parenthesised(w, () => emitQuery(expr.query, w));
    case 'exists':
      w.write('exists ');
      return parenthesised(w, () => emitQuery(expr.query, w));
    case 'in_query':
      return parenthesised(w, () => {
        emitExpr(expr.arg, w);
        w.write(expr.negated ? ' not in (' : ' in (');
        emitQuery(expr.query, w);
        w.write(')');
      });
    case 'literal':
    case 'attribute_match':
      throw new InternalError(`${expr.kind} was not grounded`);
    default:
      return assertNever(expr);
  }
}

function parenthesised(w: Writer, inner: () => void): void {
  w.write('(');
  inner();
  w.write(')');
}

function suffixed(arg: Expr, suffix: string, w: Writer): void {
  parenthesised(w, () => {
    emitExpr(arg, w);
    w.write(` ${suffix}`);
  });
}

function between(left: Expr, operator: string, right: Expr, w: Writer): void {
  parenthesised(w, () => {
    emitExpr(left, w);
    w.write(` ${operator} `);
    emitExpr(right, w);
  });
}

/** Schema-qualified: `extract` and `overlay` are keywords to the grammar and need quotes then. */
function functionName(name: string): string {
  return `pg_catalog.${identifier(name)}`;
}

function emitCall(call: Call, w: Writer): void {
  w.write(`${functionName(call.definition.name)}(`);
  w.list(call.args, ', ', (e) => emitExpr(e, w));
  w.write(')');
}

// The session's search_path is pg_catalog and nothing else that could have operators, so bare names are safe.
function emitOperation(operation: Operation, w: Writer): void {
  const { left, definition, right } = operation;
  if (left !== null) return between(left, definition.name, right, w);
  parenthesised(w, () => {
    w.write(`${definition.name} `);
    emitExpr(right, w);
  });
}

function emitCast(arg: Expr, type: string, modifiers: readonly number[], w: Writer): void {
  w.write('cast(');
  emitExpr(arg, w);
  w.write(` as ${type}${modifiers.length === 0 ? '' : `(${modifiers.join(', ')})`})`);
}

function emitQuantified(arg: Expr, definition: OperatorDefinition, quantifier: string, array: Expr, w: Writer): void {
  parenthesised(w, () => {
    emitExpr(arg, w);
    w.write(` ${definition.name} ${quantifier} (`);
    emitExpr(array, w);
    w.write(')');
  });
}

function emitMembership(expr: Extract<Expr, { kind: 'membership' }>, w: Writer): void {
  parenthesised(w, () => {
    emitExpr(expr.arg, w);
    w.write(expr.negated ? ' not in (' : ' in (');
    w.list(expr.items, ', ', (e) => emitExpr(e, w));
    w.write(')');
  });
}

function emitCase(expr: Extract<Expr, { kind: 'case' }>, w: Writer): void {
  w.write('case');
  for (const arm of expr.arms) {
    w.write(' when ');
    emitExpr(arm.when, w);
    w.write(' then ');
    emitExpr(arm.then, w);
  }
  w.write(' else ');
  emitExpr(expr.otherwise, w);
  w.write(' end');
}

function emitAggregate(expr: Aggregate, w: Writer): void {
  w.write(`${functionName(expr.definition.name)}(`);
  if (expr.distinct) w.write('distinct ');
  if (expr.args.length === 0 && expr.definition.kind === 'aggregate') w.write('*');
  w.list(expr.args, ', ', (e) => emitExpr(e, w));
  if (expr.orderBy.length > 0) {
    w.write(expr.definition.kind === 'ordered_set' ? ') within group (order by ' : ' order by ');
    emitSortKeys(expr.orderBy, w);
  }
  w.write(')');
  emitFilter(expr.filter, w);
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

function emitFrame(frame: Frame, w: Writer): void {
  w.write(` ${frame.mode} between `);
  emitBound(frame.start, w);
  w.write(' and ');
  emitBound(frame.end, w);
  if (frame.exclude !== null) w.write(` exclude ${frame.exclude}`);
}

function emitBound(bound: FrameBound, w: Writer): void {
  if (bound.kind === 'preceding' || bound.kind === 'following') {
    emitExpr(bound.offset, w);
    return w.write(` ${bound.kind}`);
  }
  w.write(bound.kind);
}

export function emitSortKeys(keys: readonly SortKey[], w: Writer): void {
  w.list(keys, ', ', (key) => {
    if (typeof key.by === 'number') w.write(String(key.by));
    else emitExpr(key.by, w);
    if (key.descending) w.write(' desc');
    if (key.nullsFirst !== key.descending) w.write(key.nullsFirst ? ' nulls first' : ' nulls last');
  });
}
