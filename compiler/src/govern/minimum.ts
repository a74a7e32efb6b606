import { InternalError } from '../errors/errors.js';
import { requireFunction, requireOperator } from '../functions/resolve.js';
import {
  allOf,
  anyOf,
  caseNode,
  columnRef,
  FALSE,
  inType,
  isNotNull,
  nullOf,
  operationNode,
} from '../plan/nodes.js';
import {
  type Aggregate,
  type ColumnRef,
  type Expr,
  type GovernedScan,
  GROUP_KEY,
  groupValue,
  type Query,
  type Select,
  type SortKey,
} from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { allQueries, changed, mapChildren, mapped, mapSort } from '../plan/walk.js';
import { boundedExpr } from './bounds.js';
import { type CountedScan, countedScans } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/**
 * Excludes rows that may only be aggregated unless there are enough of them in their group, and in the part of it that
 * each aggregate covers. If there are too few, the result is the same as without these rows.
 */
export function enforceMinima(root: Query, slots: GovernedSlots): Query {
  if (!allQueries(root).some(counts)) return root;
  return mapQuery(root, {
    query: (q) => (counts(q) ? new Block(withBounds(q, slots), slots).keepMinimum() : q),
  });
}

function counts(query: Query): query is Select {
  return query.kind === 'select' && countedScans(query).length > 0;
}

/** Bounds the values of a block, so that no row that it may only aggregate raises an error. */
function withBounds(block: Select, slots: GovernedSlots): Select {
  const all = (list: readonly Expr[]): readonly Expr[] => mapped(list, (e) => boundedExpr(e, slots));
  return changed(block, {
    where: all(block.where),
    groupBy: all(block.groupBy),
    having: all(block.having),
    outputs: mapped(block.outputs, (o) => changed(o, { expr: boundedExpr(o.expr, slots) })),
    distinctOn: all(block.distinctOn),
    orderBy: mapSort(block.orderBy, (e) => boundedExpr(e, slots)),
  });
}

class Block {
  readonly #block: Select;
  readonly #slots: GovernedSlots;
  readonly #scans: readonly CountedScan[];

  constructor(block: Select, slots: GovernedSlots) {
    this.#block = block;
    this.#slots = slots;
    this.#scans = countedScans(block);
  }

  keepMinimum(): Select {
    const block = this.#block;
    const deep = (e: Expr): Expr =>
      e.kind === 'aggregate' ? this.#value(e) : mapChildren(e, deep, (q) => q);
    const sorted = (k: SortKey): SortKey =>
      typeof k.by === 'number' ? k : Object.freeze({ ...k, by: deep(k.by) });
    const present = isOneGroup(block) ? [] : [this.#isPresent()];
    return Object.freeze({
      ...block,
      having: Object.freeze([...present, ...block.having.map(deep)]),
      outputs: Object.freeze(block.outputs.map((o) => Object.freeze({ ...o, expr: deep(o.expr) }))),
      orderBy: Object.freeze(block.orderBy.map(sorted)),
      // A fence: no outer condition runs on a group before it is known to be large enough.
      offset: block.offset ?? this.#slots.literal('0', 'int8'),
    });
  }

  /** Returns the aggregate over all rows if there are enough, else over the rows that other grants show, or NULL. */
  #value(call: Aggregate): Expr {
    const given = call.args.filter((a) => a.kind !== 'parameter').map(isNotNull);
    const taken = [...optional(call.filter), ...given];
    const when = allOf([this.#isEnough(conjunction(taken)), ...this.#isShared(call, taken)]);
    const otherwise: Expr = this.#hasPlainRows
      ? Object.freeze({ ...call, filter: conjunction([...optional(call.filter), ...this.#isPlain()]) })
      : nullOf(call.type);
    return caseNode(when, call, otherwise);
  }

  /** Returns the condition under which a group appears in the result. */
  #isPresent(): Expr {
    const enough = this.#isEnough(null);
    if (!this.#hasPlainRows) return enough;
    const rows = count([], false, conjunction(this.#isPlain()));
    const some = comparison('>', rows, this.#slots.literal('0', 'int8'));
    return anyOf([enough, some]);
  }

  #isEnough(filter: Expr | null): Expr {
    const atLeast = (key: ColumnRef, least: number): Expr =>
      comparison('>=', count([key], true, filter), this.#slots.literal(String(least), 'int8'));
    const each = this.#scans.flatMap((s) => [
      atLeast(keyRef(s), s.minimum.size),
      ...s.minimum.distinct.map((least, i) => atLeast(countedRef(s, groupValue(i)), least)),
    ]);
    return conjunction(each) ?? FALSE;
  }

  /**
   * Returns conditions under which no row that may only be aggregated contributes more than its share of a figure:
   * neither the greatest value nor the least exceeds `dominance` percent of the sum of absolute values.
   */
  #isShared(call: Aggregate, taken: readonly Expr[]): readonly Expr[] {
    const [value] = call.args;
    if (call.definition.name === 'count' || value === undefined) return [];
    return this.#scans.flatMap((s) => {
      const { dominance } = s.minimum;
      if (dominance === null) return [];
      const counted = [...taken, isNotNull(keyRef(s))];
      const figure = (name: 'sum' | 'max' | 'min', sign: '>' | '<'): Expr =>
        this.#figure(name, value, call.distinct, [...counted, this.#signed(sign, value)]);
      const [above, below] = [figure('sum', '>'), figure('sum', '<')];
      const most = calculated('*', calculated('-', above, below), this.#number(dominance));
      const part = (share: Expr): Expr => calculated('*', share, this.#number(100));
      const least = calculated('-', this.#number(0), figure('min', '<'));
      return [atMost(part(figure('max', '>')), most), atMost(part(least), most)];
    });
  }

  /** Returns the aggregate as `numeric`, which cannot overflow; 0 for no rows. */
  #figure(name: 'sum' | 'max' | 'min', value: Expr, distinct: boolean, filter: readonly Expr[]): Expr {
    const { definition, result } = requireFunction(name, [value.type]);
    const call: Aggregate = Object.freeze({
      kind: 'aggregate',
      definition,
      args: Object.freeze([value]),
      distinct,
      filter: conjunction(filter),
      orderBy: Object.freeze([]),
      metric: null,
      type: result,
    });
    const args = Object.freeze([inType(call, 'numeric'), this.#number(0)]);
    return Object.freeze({ kind: 'conditional', form: 'coalesce', args, type: 'numeric' });
  }

  #signed(sign: '>' | '<', value: Expr): Expr {
    const definition = requireOperator(sign, value.type, value.type);
    return operationNode(definition, value, this.#slots.literal('0', value.type));
  }

  #number(value: number): Expr {
    return this.#slots.literal(String(value), 'numeric');
  }

  get #hasPlainRows(): boolean {
    return this.#scans.every((s) => !s.minimum.everyRow);
  }

  #isPlain(): readonly Expr[] {
    return this.#scans.map((s) =>
      Object.freeze({ kind: 'null_test', arg: keyRef(s), negated: false, type: 'bool' }),
    );
  }
}

/** True if a block always yields exactly one row; false for grouping sets, even for a single empty set. */
function isOneGroup({ groupBy, groupingSets }: Select): boolean {
  return groupBy.length === 0 && groupingSets === null;
}

function keyRef(scan: GovernedScan): ColumnRef {
  return countedRef(scan, GROUP_KEY);
}

function countedRef(scan: GovernedScan, name: string): ColumnRef {
  const column = scan.columns.find((c) => c.name === name);
  if (column === undefined) throw new InternalError(`scan of ${scan.relation.name} has no key to count by`);
  return columnRef(scan.id, name, column.type);
}

function calculated(name: '*' | '-', left: Expr, right: Expr): Expr {
  return operationNode(requireOperator(name, 'numeric', 'numeric'), left, right, 'numeric');
}

function atMost(left: Expr, right: Expr): Expr {
  return operationNode(requireOperator('<=', 'numeric', 'numeric'), left, right);
}

function optional(expr: Expr | null): readonly Expr[] {
  return expr === null ? [] : [expr];
}

/** Returns the conjunction of `args`; null if there are none. */
function conjunction(args: readonly Expr[]): Expr | null {
  return args.length === 0 ? null : allOf(args);
}

export function count(args: readonly Expr[], distinct: boolean, filter: Expr | null): Aggregate {
  return Object.freeze({
    kind: 'aggregate',
    definition: requireFunction('count', ['text']).definition,
    args: Object.freeze([...args]),
    distinct,
    filter,
    orderBy: Object.freeze([]),
    metric: null,
    type: 'int8',
  });
}

export function comparison(name: '>' | '>=', left: Expr, right: Expr): Expr {
  const definition = requireOperator(name, 'int8', 'int8');
  return operationNode(definition, left, right);
}
