import type { Expr, Query } from '../plan/plan.js';
import type { Location } from './ast.js';

/**
 * Whole rows that stand in a statement by themselves, as in `SELECT c FROM customer c`. They are text here, and rows to
 * Postgres, whose equality and order are other than those of text: so they can be shown, and nothing else.
 */
export class ShownRows {
  readonly #places = new Map<Expr, Location>();

  /** Takes note of `row`, which stands at `at`. */
  note(row: Expr, at: Location): Expr {
    this.#places.set(row, at);
    return row;
  }

  has(expr: Expr): boolean {
    return this.#places.has(expr);
  }

  /** The place of a row that is no output of the statement itself; undefined where each is one. */
  misplaced(whole: Query): { readonly at: Location } | undefined {
    if (this.#places.size === 0) return undefined;
    const shown = new Set(whole.kind === 'select' ? whole.outputs.map((o) => o.expr) : []);
    const found = [...this.#places].find(([row]) => !shown.has(row));
    return found === undefined ? undefined : { at: found[1] };
  }
}
