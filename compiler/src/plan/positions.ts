import { fingerprint } from './fingerprint.js';
import type { Expr, PlanOutput } from './plan.js';
import { childrenOf } from './walk.js';

/** The positions of expressions in a select list, from 1; for equal outputs, the first one. */
export class Positions {
  readonly #byText = new Map<string, number>();
  /** Keyed by node, since most ORDER BY and GROUP BY keys are the output node itself. */
  readonly #byOutput = new Map<Expr, number>();

  constructor(outputs: readonly PlanOutput[]) {
    let position = 0;
    for (const { expr } of outputs) {
      position++;
      const text = fingerprint(expr);
      const first = this.#byText.get(text) ?? position;
      this.#byText.set(text, first);
      this.#byOutput.set(expr, first);
    }
  }

  of(expr: Expr): number | null {
    return this.#byOutput.get(expr) ?? this.#byText.get(fingerprint(expr)) ?? null;
  }
}

/** Returns a test for expressions that equal one of `groupBy`. */
export function keyFinder(groupBy: readonly Expr[]): (expr: Expr) => boolean {
  const keys = new Set(groupBy.map(fingerprint));
  // Only an expression with as many nodes as a key can equal it, so only those are fingerprinted.
  const sizes = new Map<Expr, number>();
  const keySizes = new Set(groupBy.map((key) => sizeOf(key, sizes)));
  return (expr) => keySizes.has(sizeOf(expr, sizes)) && keys.has(fingerprint(expr));
}

/** Returns the number of nodes in `expr`, without those of queries in it. */
function sizeOf(expr: Expr, sizes: Map<Expr, number>): number {
  const children = childrenOf(expr);
  if (children.length === 0) return 1;
  const before = sizes.get(expr);
  if (before !== undefined) return before;
  let size = 1;
  for (const child of children) size += sizeOf(child, sizes);
  sizes.set(expr, size);
  return size;
}
