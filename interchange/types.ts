import type { Node } from '@pgsql/types';
import type { TypeName } from 'osl-compiler';
import { modelType } from '../src/model/discovery/index.js';
import type { ColumnDraft, EntityDraft, ImportDraft } from './draft.js';
import { safeText } from './names.js';
import { type ModelImportOptions, schemaOf, upstreamOf } from './options.js';
import { report, type SourcePlace } from './source.js';
import {
  attempt,
  divides,
  functionName,
  hasAggregate,
  identifier,
  NoMapping,
  nameOf,
  parseExpression,
  print,
} from './sql-expression.js';

/** Assigns a type to every column: from the database or the source, or otherwise an assumed type, which is reported. */
export function assignTypes(draft: ImportDraft, options: ModelImportOptions): void {
  if (options.upstream !== null) for (const entity of draft.entities) fromUpstream(entity, options);
  for (const entity of draft.entities) {
    for (const column of entity.columns) {
      if (column.type === null && column.fallback !== null) assume(column, column.fallback);
      else if (column.vague !== null) assumeVague(column, column.vague);
    }
  }
  assumeFromUses(draft);
  assumeAlongLinks(draft);
  for (const entity of draft.entities) {
    for (const column of entity.columns) if (column.type === null) assume(column, 'text');
  }
}

function assume(column: ColumnDraft, type: TypeName): void {
  column.type = type;
  report(column.place, 'decision', `the type of \`${column.name}\` is not stated; \`${type}\` was assumed`);
}

function assumeVague(column: ColumnDraft, word: string): void {
  report(
    column.place,
    'decision',
    `\`${word}\` was taken for \`${column.type}\`; a column of another width has to say so`,
  );
}

function fromUpstream(entity: EntityDraft, options: ModelImportOptions): void {
  const { table } = entity;
  const relation = upstreamOf(table, options);
  if (relation === undefined) {
    const name = `${schemaOf(table, options)}.${table.table}`;
    report(entity.place, 'decision', `the database has no table \`${name}\``);
    return;
  }
  for (const column of entity.columns) {
    const found = relation.columns.find((c) => c.name === column.physical);
    if (found === undefined) {
      report(column.place, 'decision', `the table has no column \`${column.physical}\``);
      continue;
    }
    const model = modelType(found);
    column.vague = null;
    if (model !== null) {
      column.type = model.type;
      column.declared = model.spelled;
      column.stored = model.stored;
      column.labels = model.labels;
    } else report(column.place, 'decision', `\`${found.type}\` is not a type of the model`);
    column.nullable = found.nullable;
  }
}

const OF_NUMBERS: ReadonlySet<string> = new Set([
  ...['sum', 'avg', 'percentile_cont', 'stddev', 'stddev_pop', 'stddev_samp'],
  ...['variance', 'var_pop', 'var_samp'],
]);
const ARITHMETIC: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%']);
const COMPARES: ReadonlySet<string> = new Set(['=', '<>', '<', '>', '<=', '>=']);

function assumeFromUses(draft: ImportDraft): void {
  for (const { document } of draft.metrics) {
    const entity = document.entity === undefined ? null : draft.entity(document.entity);
    if (entity === null) continue;
    for (const text of [document.expression, document.filter]) {
      if (text === undefined) continue;
      const parsed = attempt(() => parseExpression(text));
      if (parsed.ok)
        attempt(() => inferTypes(parsed.value, entity, text === document.filter ? 'bool' : null));
    }
  }
}

/** Assumes types for untyped columns in places that allow only one kind of type, such as operands of arithmetic. */
function inferTypes(value: unknown, entity: EntityDraft, here: TypeName | null): void {
  if (typeof value !== 'object' || value === null) return;
  if ('ColumnRef' in value) {
    const name = nameOf(value as Node)?.at(-1); // cast: a node has only one key
    const column = name === undefined ? null : entity.column(name);
    if (here !== null && column !== null && column.type === null) assume(column, here);
    return;
  }
  if ('FuncCall' in value) {
    const call = (value as Extract<Node, { FuncCall: unknown }>).FuncCall; // cast: a node has only one key
    const inner = OF_NUMBERS.has(functionName(call)) ? 'numeric' : null;
    for (const arg of [...(call.args ?? []), ...(call.agg_order ?? [])]) inferTypes(arg, entity, inner);
    inferTypes(call.agg_filter, entity, 'bool');
    return;
  }
  if ('A_Expr' in value) {
    inferFromOperation((value as Extract<Node, { A_Expr: unknown }>).A_Expr, entity);
    return;
  }
  if ('BoolExpr' in value) {
    const { args } = (value as Extract<Node, { BoolExpr: unknown }>).BoolExpr;
    for (const arg of args ?? []) inferTypes(arg, entity, 'bool');
    return;
  }
  if ('CaseWhen' in value) {
    const arm = (value as Extract<Node, { CaseWhen: unknown }>).CaseWhen;
    inferTypes(arm.expr, entity, 'bool');
    inferTypes(arm.result, entity, here);
    return;
  }
  if ('CaseExpr' in value) {
    const { args, defresult, arg } = (value as Extract<Node, { CaseExpr: unknown }>).CaseExpr;
    for (const arm of args ?? []) inferTypes(arm, entity, here);
    inferTypes(defresult, entity, here);
    inferTypes(arg, entity, null);
    return;
  }
  if ('SortBy' in value) {
    inferTypes((value as Extract<Node, { SortBy: unknown }>).SortBy.node, entity, here);
    return;
  }
  for (const member of Object.values(value)) inferTypes(member, entity, null);
}

function inferFromOperation(e: Extract<Node, { A_Expr: unknown }>['A_Expr'], entity: EntityDraft): void {
  const name = e.name?.[0];
  const op = name !== undefined && 'String' in name ? (name.String.sval ?? '') : '';
  const sides = [e.lexpr, e.rexpr];
  const number = ARITHMETIC.has(op) || (COMPARES.has(op) && sides.some(isNumber));
  for (const side of sides) inferTypes(side, entity, number ? 'numeric' : null);
}

function isNumber(node: Node | undefined): boolean {
  return node !== undefined && 'A_Const' in node && (node.A_Const.ival ?? node.A_Const.fval) !== undefined;
}

/** Maximum number of successive relationships along which a type is propagated. */
const PASSES = 3;

/** Propagates types along relationships, because the columns at both ends have the same type. */
function assumeAlongLinks(draft: ImportDraft): void {
  for (let pass = 0; pass < PASSES; pass++) {
    for (const { document } of draft.relationships) {
      const [starts, ends] = [[document.from].flat(), [document.to].flat()];
      for (const [i, start] of starts.entries())
        assumeAlong(endOf(draft, start), endOf(draft, ends[i] ?? ''));
    }
  }
}

function assumeAlong(from: ColumnDraft | null, to: ColumnDraft | null): void {
  if (from === null || to === null) return;
  if (from.type === null && to.type !== null) assume(from, to.type);
  else if (to.type === null && from.type !== null) assume(to, from.type);
}

function endOf(draft: ImportDraft, text: string): ColumnDraft | null {
  const dot = text.indexOf('.');
  const entity = draft.entity(text.slice(0, dot));
  return entity?.columns.find((c) => c.name === text.slice(dot + 1)) ?? null;
}

/** Context for resolving names in an expression over one entity's rows. */
interface ColumnScope {
  readonly entity: EntityDraft;
  readonly first: 'field' | 'physical';
  /** Location and purpose of the expression (`place`, `what`), for reporting columns that must be exposed. */
  readonly place: SourcePlace;
  readonly what: string;
}

/** Returns SQL for a column or computed field of the entity. @throws NoMapping if it has no equivalent */
export function columnText(name: string, scope: ColumnScope, within: readonly string[] = []): string {
  const { entity, first, place, what } = scope;
  const physical = entity.physical(name);
  if (first === 'physical' && physical !== null) return identifier(physical.name);
  if (first === 'field') {
    // Before the columns: one of this name may have been exposed since, for what the field is computed from.
    const computed = entity.computed.get(name.toLowerCase());
    if (computed !== undefined) return writtenOut(name, computed, scope, within);
    const column = entity.column(name);
    if (column !== null) return identifier(column.name);
  }
  const kept = entity.kept.get(name.toLowerCase());
  if (kept !== undefined) return identifier(kept);
  if (first === 'field' && entity.lost.has(name.toLowerCase()))
    throw new NoMapping(`\`${safeText(name)}\` of \`${entity.name}\` was lost`);
  return identifier(entity.expose(name, place, what).name);
}

/** Returns SQL for a computed column of the entity. @throws NoMapping if `node` has an aggregate or no equivalent */
export function computedText(node: Node, scope: ColumnScope): string {
  if (hasAggregate(node)) throw new NoMapping('it holds an aggregate');
  return print(node, { column: (parts) => columnText(parts.at(-1) ?? '', scope) });
}

/** Inlines a computed field. Names inside the field resolve like `name` itself, so nested fields are inlined too. */
function writtenOut(name: string, node: Node, scope: ColumnScope, within: readonly string[]): string {
  if (within.includes(name)) throw new NoMapping(`\`${safeText(name)}\` is made of itself`);
  if (within.length === 20)
    throw new NoMapping(`\`${safeText(name)}\` is made of fields of fields of fields`);
  if (hasAggregate(node)) throw new NoMapping(`\`${safeText(name)}\` holds an aggregate`);
  const text = print(node, {
    column: (parts) => {
      const last = parts.at(-1) ?? '';
      // A field named like its own column reads that column.
      if (last.toLowerCase() === name.toLowerCase())
        return identifier(scope.entity.expose(last, scope.place, scope.what).name);
      return columnText(last, scope, [...within, name]);
    },
  });
  return nameOf(node) === null ? `(${text})` : text;
}

/** Reports divisions in metrics, because in most tools their result depends on the database. */
export function reportDivision(node: Node, place: SourcePlace): void {
  if (divides(node))
    report(
      place,
      'approximated',
      'a division gives fractions of whole numbers here, and NULL for a division by zero',
    );
}
