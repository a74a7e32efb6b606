import type { Relation } from '../catalog.js';
import { InternalError } from '../errors.js';
import { neededFunction, neededOperator } from '../functions/index.js';
import { allOf, anyOf, columnRef, FALSE, inType, isNotNull, operationNode } from '../nodes.js';
import {
  type Aggregate,
  type ColumnRef,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  GROUP_KEY,
  type GroupMinimum,
  type Query,
  type Select,
  type SortKey,
} from '../plan.js';
import { allQueries, changed, leavesOf, mapChildren, mapped, mapQuery, mapSort } from '../walk.js';
import { boundedExpr } from './bounds.js';
import { baseOf } from './mask.js';
import type { Minimum } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/** The column that tells which entity a row is of, where the row may only be aggregated; see `GROUP_KEY`. */
export function groupKeyColumn(relation: Relation, minimum: Minimum, slots: GovernedSlots): GovernedColumn {
  const key = keyOf(relation);
  const nothing: Expr = Object.freeze({ kind: 'null', type: key.type });
  const expr: Expr =
    minimum.plain === null
      ? key
      : Object.freeze({
          kind: 'case',
          arms: Object.freeze([
            Object.freeze({
              when: allOf(minimum.plain.map((filters) => slots.ground(anyOf(filters)))),
              result: nothing,
            }),
          ]),
          otherwise: key,
          type: key.type,
        });
  return Object.freeze({ name: GROUP_KEY, type: key.type, expr, masked: 'none' });
}

export function groupMinimum(minimum: Minimum): GroupMinimum {
  return Object.freeze({ size: minimum.size, everyRow: minimum.plain === null });
}

/** A row without a key would be nobody's, and count as shown: it is left out. Of several columns NULL counts too. */
export function hasKey(relation: Relation): readonly Expr[] {
  const key = keyOf(relation);
  if (key.kind !== 'base') return [];
  return [isNotNull(key)];
}

function keyOf(relation: Relation): Expr {
  const columns = relation.columns.filter((c) => relation.primaryKey.includes(c.name));
  const [only] = columns;
  if (only === undefined) throw new InternalError(`${relation.name} has no primary key to count by`);
  if (columns.length === 1) return baseOf(only);
  const texts = columns.map((c) => inType(baseOf(c), 'text'));
  return Object.freeze({ kind: 'array', items: Object.freeze(texts), type: 'text[]' });
}

/**
 * Makes every block count rows that may only be aggregated where its group, and what each aggregate takes of it,
 * rests on enough of them: else the group is as if they were not there, whether it has none or too few.
 */
export function keepMinima(root: Query, slots: GovernedSlots): Query {
  if (!allQueries(root).some(counts)) return root;
  return mapQuery(root, {
    query: (q) => (counts(q) ? new Block(withBounds(q, slots), slots).keepMinimum() : q),
  });
}

function counts(query: Query): query is Select {
  return query.kind === 'select' && countedScans(query).length > 0;
}

/** A block that counts such rows, kept from failing on one of them. */
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

export type CountedScan = GovernedScan & { readonly minimum: GroupMinimum };

/** The scans of a block some of whose rows may only be aggregated. */
export function countedScans(block: Select): readonly CountedScan[] {
  return leavesOf(block.from).filter(isCounted);
}

function isCounted(leaf: FromItem): leaf is CountedScan {
  return leaf.kind === 'governed' && leaf.minimum !== null;
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
      // A fence: no condition from outside runs on a group before it is known to be large enough.
      offset: block.offset ?? this.#slots.literal('0', 'int8'),
    });
  }

  /** An aggregate over the rows that count: all of them, or those that other grants show. */
  #value(call: Aggregate): Expr {
    const given = call.args.filter((a) => a.kind !== 'parameter').map(isNotNull);
    const when = this.#isEnough(conjunction([...optional(call.filter), ...given]));
    const otherwise: Expr = this.#hasPlainRows
      ? Object.freeze({ ...call, filter: conjunction([...optional(call.filter), ...this.#isPlain()]) })
      : Object.freeze({ kind: 'null', type: call.type });
    const arms = Object.freeze([Object.freeze({ when, result: call })]);
    return Object.freeze({ kind: 'case', arms, otherwise, type: call.type });
  }

  /** Whether a group is there at all. */
  #isPresent(): Expr {
    const enough = this.#isEnough(null);
    if (!this.#hasPlainRows) return enough;
    const rows = count([], false, conjunction(this.#isPlain()));
    const some = comparison('>', rows, this.#slots.literal('0', 'int8'));
    return anyOf([enough, some]);
  }

  #isEnough(filter: Expr | null): Expr {
    const each = this.#scans.map((s) =>
      comparison('>=', count([keyRef(s)], true, filter), this.#slots.literal(String(s.minimum.size), 'int8')),
    );
    return conjunction(each) ?? FALSE;
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

/** Whether a block yields one row whatever it reads; of grouping sets even the one without keys is a group. */
function isOneGroup({ groupBy, groupingSets }: Select): boolean {
  return groupBy.length === 0 && groupingSets === null;
}

export function keyRef(scan: GovernedScan): ColumnRef {
  const column = scan.columns.find((c) => c.name === GROUP_KEY);
  if (column === undefined) throw new InternalError(`scan of ${scan.relation.name} has no key to count by`);
  return columnRef(scan.id, GROUP_KEY, column.type);
}

function optional(expr: Expr | null): readonly Expr[] {
  return expr === null ? [] : [expr];
}

/** The conditions as one; null of none. */
function conjunction(args: readonly Expr[]): Expr | null {
  return args.length === 0 ? null : allOf(args);
}

export function count(args: readonly Expr[], distinct: boolean, filter: Expr | null): Aggregate {
  return Object.freeze({
    kind: 'aggregate',
    definition: neededFunction('count', ['text']).definition,
    args: Object.freeze([...args]),
    distinct,
    filter,
    orderBy: Object.freeze([]),
    metric: null,
    type: 'int8',
  });
}

export function comparison(name: '>' | '>=', left: Expr, right: Expr): Expr {
  const definition = neededOperator(name, 'int8', 'int8');
  return operationNode(definition, left, right);
}
