import type { LiteralSlots, WrittenLiteral } from '../bind/index.js';
import { type Column, columnOf } from '../catalog/catalog.js';
import type { ColumnRef, EntityScan, Expr, FromItem, Query, SourceId } from '../plan/plan.js';
import { allQueries, leavesOf } from '../plan/walk.js';
import { storedType } from '../types/column-form.js';
import { columnRule } from './mask.js';
import type { ScanAccesses } from './scan-access.js';

/** An enum whose labels the caller may know. */
export interface LabelledEnum {
  readonly stored: string;
  /** The labels in declared order. */
  readonly labels: readonly string[];
  readonly isLabel: (text: string) => boolean;
}

const NAMING_ROWS: ReadonlySet<string> = new Set(['first_value', 'last_value', 'nth_value', 'lag', 'lead']);

/** The columns of a statement that are enum labels for its caller, and the expressions that pass them on. */
export class EnumValues {
  readonly #accesses: ScanAccesses;
  readonly #literals: LiteralSlots;
  readonly #items = new Map<SourceId, FromItem>();
  readonly #tables = new Map<number, Query>();
  readonly #enums = new Map<Column, LabelledEnum>();
  readonly #made = new Map<Expr, LabelledEnum | null>();
  readonly #columns = new Map<string, LabelledEnum | null>();
  /** True if the statement reads a column with labels. */
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

  /** Records that `expr` is a label of `of`. */
  note(expr: Expr, of: LabelledEnum): void {
    this.#made.set(expr, of);
  }

  /** Returns the enum that `expr` is a label of; null if there is none. */
  enumOf(expr: Expr): LabelledEnum | null {
    if (expr.kind === 'column') {
      const key = `${expr.source} ${expr.name}`;
      let of = this.#columns.get(key);
      if (of === undefined) this.#columns.set(key, (of = this.#enumOfColumn(expr)));
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

  /** Returns the enum of the output of `query` at `index`, counted from 0. */
  enumOfOutput(query: Query, index: number): LabelledEnum | null {
    if (query.kind === 'values') return null;
    if (query.kind === 'select') {
      const output = query.outputs[index];
      return output === undefined ? null : this.enumOf(output.expr);
    }
    const [left, right] = [this.enumOfOutput(query.left, index), this.enumOfOutput(query.right, index)];
    return left !== null && right !== null && isSame(left, right) ? left : null;
  }

  /** Returns the common enum of `exprs`, ignoring constants; null if they differ, or if one is not a label. */
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

  /** The enum of these alternatives: all must be labels of one enum, or literals equal to such labels. */
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
      case 'cte': {
        const table = item.recursive === undefined ? this.#tables.get(item.table) : undefined;
        return table === undefined ? null : this.enumOfOutput(table, positionOf(name));
      }
      default:
        return null;
    }
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

/** Returns the position of column `c1`, `c2`, …, counted from 0. */
function positionOf(name: string): number {
  return Number(name.slice(1)) - 1;
}
