import type { BoundPlan, LiteralSlots, WrittenLiteral } from '../bind/index.js';
import { type Column, columnOf } from '../catalog/catalog.js';
import { type QueryError, queryError } from '../errors/errors.js';
import { isHypothetical } from '../functions/aggregate.js';
import { requireFunction, requireOperator } from '../functions/resolve.js';
import { LIMITS } from '../limits.js';
import { fingerprint } from '../plan/fingerprint.js';
import { callNode, columnRef, operationNode } from '../plan/nodes.js';
import type {
  Aggregate,
  ColumnRef,
  EntityScan,
  Expr,
  FromItem,
  Operation,
  Query,
  Select,
  SetOperation,
  SortKey,
  SourceId,
  WindowCall,
} from '../plan/plan.js';
import { recursionIn } from '../plan/properties.js';
import { mapQuery } from '../plan/query-tree.js';
import { selectOf } from '../plan/select-nodes.js';
import { allLeaves, allQueries, changed, columnsOf, leavesOf, mapped } from '../plan/walk.js';
import { enumName, storedType } from '../types/column-form.js';
import { isArray } from '../types/types.js';
import { columnRule } from './mask.js';
import type { ScanAccesses } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/** An enum whose labels are visible to the caller. */
export interface LabelledEnum {
  readonly stored: string;
  /** The labels in declared order. */
  readonly labels: readonly string[];
  readonly isLabel: (text: string) => boolean;
}

const NAMING_ROWS: ReadonlySet<string> = new Set(['first_value', 'last_value', 'nth_value', 'lag', 'lead']);

/** The columns that hold enum labels visible to the caller, and the expressions that pass them on. */
export class EnumValues {
  readonly #accesses: ScanAccesses;
  readonly #literals: LiteralSlots;
  readonly #items = new Map<SourceId, FromItem>();
  readonly #tables = new Map<number, Query>();
  readonly #enums = new Map<Column, LabelledEnum>();
  readonly #made = new Map<Expr, LabelledEnum | null>();
  readonly #columns = new Map<string, LabelledEnum | null>();
  /** True if the statement reads a column for which the manifest declares labels. */
  readonly someIsLabelled: boolean;

  constructor(root: Query, accesses: ScanAccesses, literals: LiteralSlots) {
    this.#accesses = accesses;
    this.#literals = literals;
    let some = false;
    for (const query of allQueries(root)) {
      if (query.kind !== 'values') for (const t of query.with) this.#tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) {
        this.#items.set(leaf.id, leaf);
        some ||=
          leaf.kind === 'entity' &&
          leaf.columns.some((name) => columnOf(leaf.relation, name)?.labels !== undefined);
      }
    }
    this.someIsLabelled = some;
  }

  /** Records that the value of `expr` is a label of enum `of`. */
  note(expr: Expr, of: LabelledEnum): void {
    this.#made.set(expr, of);
  }

  /** Returns the enum whose labels are the values of `expr`; null if `expr` is not an enum. */
  enumOf(expr: Expr): LabelledEnum | null {
    if (expr.kind === 'column') {
      const key = `${expr.source} ${expr.name}`;
      let of = this.#columns.get(key);
      if (of !== undefined) return of;
      // A column of a recursive table may be computed from itself; it then counts as text.
      this.#columns.set(key, null);
      this.#columns.set(key, (of = this.#enumOfColumn(expr)));
      return of;
    }
    let of = this.#made.get(expr);
    if (of === undefined) this.#made.set(expr, (of = this.#enumOfValue(expr)));
    return of;
  }

  #enumOfValue(expr: Expr): LabelledEnum | null {
    switch (expr.kind) {
      case 'conditional':
        return this.#enumOfChoice(expr.args);
      case 'case':
        return this.#enumOfChoice([...expr.arms.map((a) => a.result), expr.otherwise]);
      case 'scalar_query':
        return this.enumOfOutput(expr.query, 0);
      case 'aggregate':
        return expr.definition.name === 'min' || expr.definition.name === 'max'
          ? this.#enumOfFirst(expr.args)
          : null;
      case 'window':
        return expr.definition.name === 'min' ||
          expr.definition.name === 'max' ||
          NAMING_ROWS.has(expr.definition.name)
          ? this.#enumOfFirst(expr.args)
          : null;
      default:
        return null;
    }
  }

  /** Returns the enum of the output of `query` at `index`, counted from 0; null if it is not an enum. */
  enumOfOutput(query: Query, index: number): LabelledEnum | null {
    if (query.kind === 'values') return null;
    if (query.kind === 'select') {
      const output = query.outputs[index];
      return output === undefined ? null : this.enumOf(output.expr);
    }
    const [left, right] = [this.enumOfOutput(query.left, index), this.enumOfOutput(query.right, index)];
    return left !== null && right !== null && isSame(left, right) ? left : null;
  }

  /** Returns the common enum of `exprs`, ignoring constants; null if they differ or an expression is not an enum. */
  enumOfAll(exprs: readonly Expr[]): LabelledEnum | null {
    let found: LabelledEnum | null = null;
    for (const e of exprs) {
      if (e.kind === 'parameter' || e.kind === 'null') continue;
      const of = this.enumOf(e);
      if (of === null || (found !== null && !isSame(found, of))) return null;
      found = of;
    }
    return found;
  }

  literalIn(expr: Expr): WrittenLiteral | null {
    return expr.kind === 'parameter' ? this.#literals.literalIn(expr.slot) : null;
  }

  /** Returns the literals of a list written in the statement. */
  itemsOf(list: Expr): readonly WrittenLiteral[] {
    if (list.kind === 'array') return list.items.flatMap((i) => this.literalIn(i) ?? []);
    return list.kind === 'parameter' ? this.#literals.itemsIn(list.slot) : [];
  }

  #enumOfFirst([first]: readonly Expr[]): LabelledEnum | null {
    return first === undefined ? null : this.enumOf(first);
  }

  /** Returns the enum of alternatives, as in CASE; null if one is neither of that enum nor one of its labels. */
  #enumOfChoice(exprs: readonly Expr[]): LabelledEnum | null {
    const of = this.enumOfAll(exprs);
    if (of === null) return null;
    const isOther = (e: Expr): boolean =>
      e.kind === 'parameter' && this.literalIn(e)?.holds(of.isLabel) !== true;
    return exprs.some(isOther) ? null : of;
  }

  #enumOfColumn({ source, name }: ColumnRef): LabelledEnum | null {
    const item = this.#items.get(source);
    if (item === undefined) return null;
    switch (item.kind) {
      case 'entity':
        return this.#enumOfEntity(item, name);
      case 'derived':
        return this.enumOfOutput(item.query, positionOf(name));
      case 'cte':
      case 'recursion':
        return this.#enumOfTable(item.table, name);
      default:
        return null;
    }
  }

  /** Returns the enum of a common table's column. A recursive table may pass the column on from the previous step. */
  #enumOfTable(id: number, name: string): LabelledEnum | null {
    const table = this.#tables.get(id);
    if (table === undefined) return null;
    const passes = table.kind === 'set_operation' && passesOn(table, id, name);
    return this.enumOfOutput(passes ? table.left : table, positionOf(name));
  }

  #enumOfEntity(scan: EntityScan, name: string): LabelledEnum | null {
    const column = columnOf(scan.relation, name);
    if (column?.labels === undefined || column.stored === undefined) return null;
    if (storedType(column.stored)?.isEnum !== true) return null;
    const { access, minimum } = this.#accesses.of(scan);
    if (minimum !== null || columnRule(scan.relation, name, access).masked !== 'none') return null;
    return this.#known(column, column.stored, column.labels);
  }

  #known(column: Column, stored: string, labels: readonly string[]): LabelledEnum {
    let known = this.#enums.get(column);
    if (known === undefined) {
      const set = new Set(labels);
      this.#enums.set(column, (known = { stored, labels, isLabel: (text) => set.has(text) }));
    }
    return known;
  }
}

function isSame(one: LabelledEnum, other: LabelledEnum): boolean {
  return (
    one === other ||
    (one.stored === other.stored &&
      one.labels.length === other.labels.length &&
      one.labels.every((label, i) => label === other.labels[i]))
  );
}

/** True if each step of recursive table `id` takes column `name` from the previous step. */
function passesOn(table: SetOperation, id: number, name: string): boolean {
  const step = recursionIn(table, id);
  const next = table.right.kind === 'select' ? table.right.outputs[positionOf(name)]?.expr : undefined;
  return next?.kind === 'column' && next.source === step?.id && next.name === name;
}

/** Returns the position of column `c1`, `c2`, …, counted from 0. */
function positionOf(name: string): number {
  return Number(name.slice(1)) - 1;
}

/**
 * Sorts and compares enum values by the declared order of their labels. Values are read as text: ordering uses the
 * position of the label in the manifest, equality compares the texts. A literal that is not a label is refused, as in
 * Postgres; this depends on the manifest only, never on a row.
 *
 * A value is treated as an enum only if this caller sees its column in the clear in every row. Otherwise it is plain
 * text, and no label is revealed.
 */
export function inEnumOrder(root: Query, values: EnumValues, plan: BoundPlan, slots: GovernedSlots): Query {
  if (!values.someIsLabelled) return root;
  const order = new EnumOrder(root, values, plan, slots);
  const ordered = mapQuery(root, { expr: (e) => order.value(e), query: (q) => order.level(q) });
  return mapQuery(ordered, { expr: withoutMark });
}

/** Removes the text-to-text cast that marks a label. */
function withoutMark(e: Expr): Expr {
  return e.kind === 'cast' && e.type === 'text' && e.arg.type === 'text' ? e.arg : e;
}

const ORDERS: ReadonlySet<string> = new Set(['<', '<=', '>', '>=']);
const EQUALITIES: ReadonlySet<string> = new Set(['=', '<>']);
const EXTREMES: ReadonlySet<string> = new Set(['min', 'max']);

class EnumOrder {
  readonly #values: EnumValues;
  readonly #plan: BoundPlan;
  readonly #slots: GovernedSlots;
  #lastSource: SourceId;
  #written = 0;

  constructor(root: Query, values: EnumValues, plan: BoundPlan, slots: GovernedSlots) {
    this.#values = values;
    this.#plan = plan;
    this.#slots = slots;
    this.#lastSource = Math.max(0, ...allLeaves(root).map((l) => l.id));
  }

  /** Rewrites `e`, whose operands are already rewritten. */
  value(e: Expr): Expr {
    switch (e.kind) {
      case 'operation':
        return this.#operation(e);
      case 'distinct_test':
        this.#compared([e.left, e.right]);
        return e;
      case 'membership':
        this.#compared([e.arg, ...e.items]);
        return e;
      case 'quantified':
        return this.#quantified(e);
      case 'row_comparison':
        return changed(e, {
          pairs: mapped(e.pairs, (p) => {
            const ranked = this.#ranked(p.left, p.definition.name, p.right);
            return ranked === null ? p : Object.freeze(ranked);
          }),
        });
      case 'conditional':
        return this.#conditional(e);
      case 'aggregate':
        return this.#aggregate(e);
      case 'window':
        return this.#window(e);
      default:
        return e;
    }
  }

  #operation(e: Operation): Expr {
    const { left, right, definition } = e;
    if (left === null) return e;
    if (EQUALITIES.has(definition.name)) this.#compared([left, right]);
    if (!ORDERS.has(definition.name)) return e;
    const ranked = this.#ranked(left, definition.name, right);
    return ranked === null ? e : operationNode(ranked.definition, ranked.left, ranked.right);
  }

  /** Returns the comparison of two labels by position; null if they do not belong to the same enum. */
  #ranked(left: Expr, name: string, right: Expr) {
    const of = this.#compared([left, right]);
    if (of === null) return null;
    const definition = requireOperator(name, 'int4', 'int4');
    return { definition, left: this.#rank(left, of), right: this.#rank(right, of) };
  }

  #quantified(e: Extract<Expr, { kind: 'quantified' }>): Expr {
    const of = this.#values.enumOf(e.arg);
    if (of === null) return e;
    if (ORDERS.has(e.definition.name)) {
      const construct = `\`${e.definition.name}\` of an enum with ANY or ALL`;
      throw this.#unsupported(e, construct, 'compare with the least or the greatest of them');
    }
    for (const literal of this.#values.itemsOf(e.array)) this.#requireLabel(literal, of, e);
    return e;
  }

  #conditional(e: Extract<Expr, { kind: 'conditional' }>): Expr {
    if (e.form === 'nullif') this.#compared(e.args);
    if (e.form !== 'greatest' && e.form !== 'least') return e;
    const of = this.#compared(e.args);
    if (of === null) return e;
    const args = mapped(e.args, (a) => this.#rank(a, of));
    return this.#labelAt(Object.freeze({ ...e, args, type: 'int4' }), of);
  }

  #aggregate(e: Aggregate): Expr {
    const [arg] = e.args;
    const of = arg === undefined ? null : this.#values.enumOf(arg);
    if (of !== null && arg !== undefined && EXTREMES.has(e.definition.name))
      return this.#labelAt(changed(e, { args: Object.freeze([this.#rank(arg, of)]), type: 'int4' }), of);
    if (isHypothetical(e.definition)) return this.#hypothetical(e);
    const sorted = changed(e, { orderBy: this.#sorted(e.orderBy) });
    // With DISTINCT, Postgres requires the arguments themselves as sort keys.
    if (e.distinct && sorted !== e)
      throw this.#unsupported(
        e,
        'DISTINCT in the order of an enum',
        'aggregate a derived table with DISTINCT',
      );
    if (e.definition.kind !== 'ordered_set' || sorted === e) return sorted;
    if (isArray(e.type))
      throw this.#unsupported(e, 'several fractions of an enum', 'query each fraction separately');
    const [by] = e.orderBy;
    const picked = by === undefined || typeof by.by === 'number' ? null : this.#values.enumOf(by.by);
    return picked === null ? e : this.#labelAt(changed(sorted, { type: 'int4' }), picked);
  }

  #unsupported(e: Expr, construct: string, hint: string): QueryError {
    return queryError('unsupported', { construct, hint }, this.#plan.positionOf(e));
  }

  #hypothetical(e: Aggregate): Expr {
    const args = e.args.map((value, i) => {
      const by = e.orderBy[i]?.by;
      if (by === undefined || typeof by === 'number') return value;
      const of = this.#compared([by, value]);
      return of === null ? value : this.#rank(value, of);
    });
    return changed(e, { args: Object.freeze(args), orderBy: this.#sorted(e.orderBy) });
  }

  #window(e: WindowCall): Expr {
    const sorted = changed(e, { orderBy: this.#sorted(e.orderBy) });
    const [arg] = e.args;
    const of = arg === undefined ? null : this.#values.enumOf(arg);
    if (of === null || arg === undefined || !EXTREMES.has(e.definition.name)) return sorted;
    return this.#labelAt(changed(sorted, { args: Object.freeze([this.#rank(arg, of)]), type: 'int4' }), of);
  }

  #sorted(keys: readonly SortKey[]): readonly SortKey[] {
    return mapped(keys, (k) => {
      const of = typeof k.by === 'number' ? null : this.#values.enumOf(k.by);
      return of === null || typeof k.by === 'number' ? k : changed(k, { by: this.#rank(k.by, of) });
    });
  }

  /** Rewrites the ORDER BY of `query`, whose parts are already rewritten. */
  level(query: Query): Query {
    if (query.kind === 'values' || query.orderBy.length === 0) return query;
    const sorts = query.orderBy.map((k) => this.#enumOfKey(k, query));
    if (sorts.every((s) => s === null)) return query;
    // After DISTINCT or a set operation, every sort key must be an output column.
    if (query.kind === 'set_operation' || query.distinct) return this.#sortedAround(query);
    const first = new Set(query.distinctOn.map(fingerprint));
    const orderBy: SortKey[] = [];
    const distinctOn = [...query.distinctOn];
    for (const [i, key] of query.orderBy.entries()) {
      const of = sorts[i] ?? null;
      const by = typeof key.by === 'number' ? query.outputs[key.by - 1]?.expr : key.by;
      if (of === null || by === undefined) {
        orderBy.push(key);
        continue;
      }
      const rank = this.#rank(by, of);
      orderBy.push(Object.freeze({ ...key, by: rank }));
      // ORDER BY must begin with all keys of DISTINCT ON.
      if (first.has(fingerprint(by))) {
        distinctOn.push(rank);
        orderBy.push(key);
      }
    }
    return Object.freeze({
      ...query,
      distinctOn: Object.freeze(distinctOn),
      orderBy: Object.freeze(orderBy),
    });
  }

  #enumOfKey({ by }: SortKey, query: Select | SetOperation): LabelledEnum | null {
    return typeof by === 'number' ? this.#values.enumOfOutput(query, by - 1) : this.#values.enumOf(by);
  }

  #sortedAround(query: Select | SetOperation): Query {
    const { with: tables, orderBy, limit, offset, withTies } = query;
    const cut = { with: NONE, orderBy: NONE, limit: null, offset: null, withTies: false };
    const inner: Query =
      query.kind === 'select' ? Object.freeze({ ...query, ...cut }) : Object.freeze({ ...query, ...cut });
    const from: FromItem = Object.freeze({ kind: 'derived', id: ++this.#lastSource, query: inner });
    const refs = columnsOf(inner).map(({ name, type }, i) =>
      Object.freeze({ name, expr: columnRef(from.id, `c${i + 1}`, type) }),
    );
    const keys = orderBy.map((key) => {
      const of = this.#enumOfKey(key, query);
      const ref = typeof key.by === 'number' ? refs[key.by - 1]?.expr : undefined;
      return of === null || ref === undefined ? key : Object.freeze({ ...key, by: this.#rank(ref, of) });
    });
    const outputs = Object.freeze(refs);
    return selectOf({ with: tables, from, outputs, orderBy: Object.freeze(keys), limit, offset, withTies });
  }

  /** Returns the enum of all `exprs`, whose literals must be its labels; null if they have no common enum. */
  #compared(exprs: readonly Expr[]): LabelledEnum | null {
    const of = this.#values.enumOfAll(exprs);
    if (of === null) return null;
    for (const e of exprs) this.#requireLabel(this.#values.literalIn(e), of, e);
    return of;
  }

  /** @throws QueryError E0511, 22P02, if a literal that the caller wrote is not a label; others match no row */
  #requireLabel(literal: WrittenLiteral | null, of: LabelledEnum, at: Expr): void {
    if (literal === null || literal.node === null || literal.holds(of.isLabel)) return;
    const type = enumName(of.stored);
    throw queryError('unknownLabel', { type, label: literal.read() }, this.#plan.positionOf(at));
  }

  /** Returns the position of label `e` in its enum, counted from 1; NULL if `e` is NULL. */
  #rank(e: Expr, of: LabelledEnum): Expr {
    const { definition } = requireFunction('array_position', ['text[]', 'text']);
    return callNode(definition, [this.#labels(of), e], 'int4');
  }

  /** Returns the label at position `rank`. */
  #labelAt(rank: Expr, of: LabelledEnum): Expr {
    const label: Expr = Object.freeze({
      kind: 'subscript',
      arg: this.#labels(of),
      indices: Object.freeze([rank]),
      type: 'text',
    });
    this.#values.note(label, of);
    return label;
  }

  /** @throws QueryError E0511 beyond the limit, since every use repeats the whole list in the SQL */
  #labels({ labels }: LabelledEnum): Expr {
    this.#written += labels.length;
    if (this.#written > LIMITS.labels)
      throw queryError('tooComplex', {
        what: 'the number of labels that its enums are ordered by',
        limit: LIMITS.labels,
      });
    const items = labels.map((label) => this.#slots.literal(label, 'text'));
    return Object.freeze({ kind: 'array', items: Object.freeze(items), type: 'text[]' });
  }
}

const NONE: readonly never[] = Object.freeze([]);
