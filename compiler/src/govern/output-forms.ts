import { columnOf } from '../catalog/catalog.js';
import type { ColumnRef, Expr } from '../plan/plan.js';
import { type ColumnForm, declaredColumn } from '../types/column-form.js';
import { isArray } from '../types/types.js';
import type { StatementLineage } from './lineage.js';

/**
 * Type modifiers of output values, by Postgres' rules: a length or precision comes from a column or a cast, and is
 * kept if all alternatives of a value agree.
 */
export class OutputForms {
  readonly #lineage: StatementLineage;
  /** By FROM item and name; null while it is being computed, as in a recursive table. */
  readonly #columns = new Map<string, ColumnForm | null>();
  readonly #known = new Map<Expr, ColumnForm | null>();

  constructor(lineage: StatementLineage) {
    this.#lineage = lineage;
  }

  /** The common form of `exprs`; null if they differ, or have none. */
  common(exprs: readonly Expr[]): ColumnForm | null {
    const [first, ...more] = exprs;
    const form = first === undefined ? null : this.#of(first);
    if (form === null) return null;
    const isSame = (other: ColumnForm | null): boolean =>
      other !== null && other.oid === form.oid && other.modifier === form.modifier;
    return more.every((e) => isSame(this.#of(e))) ? form : null;
  }

  #of(expr: Expr): ColumnForm | null {
    if (expr.kind === 'column') return this.#ofColumn(expr);
    let form = this.#known.get(expr);
    if (form === undefined) this.#known.set(expr, (form = this.#ofParts(expr)));
    return form;
  }

  #ofParts(expr: Expr): ColumnForm | null {
    switch (expr.kind) {
      case 'cast':
        return expr.modifiers.length === 0 ? null : formNamed(`${expr.type}(${expr.modifiers.join(',')})`);
      case 'case':
        return this.common([expr.otherwise, ...expr.arms.map((a) => a.result)]);
      case 'conditional':
        return this.common(expr.form === 'nullif' ? expr.args.slice(0, 1) : expr.args);
      case 'collate':
        return this.#of(expr.arg);
      case 'scalar_query':
        return this.common(this.#lineage.outputsOf(expr.query));
      case 'subscript':
        return elementForm(this.#of(expr.arg));
      case 'array':
        return isArray(expr.type) ? arrayForm(this.common(expr.items)) : null;
      default:
        return null;
    }
  }

  /** Null for a column that may show a mask. */
  #ofColumn(ref: ColumnRef): ColumnForm | null {
    const scan = this.#lineage.scanOf(ref.source);
    if (scan !== null) {
      const shown = scan.kind === 'governed' ? scan.columns.find((c) => c.name === ref.name) : undefined;
      return shown?.masked === 'none' ? (columnOf(scan.relation, ref.name)?.form ?? null) : null;
    }
    const id = `${ref.source} ${ref.name}`;
    const known = this.#columns.get(id);
    if (known !== undefined) return known;
    this.#columns.set(id, null);
    const form = this.common(this.#lineage.definitionsOf(ref));
    this.#columns.set(id, form);
    return form;
  }
}

function formNamed(sql: string): ColumnForm | null {
  return declaredColumn(sql)?.form ?? null;
}

function elementForm(array: ColumnForm | null): ColumnForm | null {
  return array?.sql.endsWith('[]') === true ? formNamed(array.sql.slice(0, -2)) : null;
}

function arrayForm(element: ColumnForm | null): ColumnForm | null {
  return element === null || element.sql.endsWith('[]') ? null : formNamed(`${element.sql}[]`);
}
