import { fingerprint, Positions } from '../../plan/fingerprint.js';
import type { Expr, Output } from '../../plan/plan.js';

/** The outputs of a SELECT as GROUP BY, ORDER BY and DISTINCT ON look for them, each list gone through once. */
export class SelectList {
  readonly #outputs: readonly Output[];
  #byName: ReadonlyMap<string, readonly Output[]> | null = null;
  #positions: Positions | null = null;
  readonly #several = new Map<string, boolean>();

  constructor(outputs: readonly Output[]) {
    this.#outputs = outputs;
  }

  get length(): number {
    return this.#outputs.length;
  }

  /** The output at `position`, from 1. */
  at(position: number): Output | undefined {
    return this.#outputs[position - 1];
  }

  named(name: string): readonly Output[] {
    this.#byName ??= groupByName(this.#outputs);
    return this.#byName.get(name) ?? [];
  }

  /** Whether outputs of that name are not all the same expression. */
  meansSeveral(name: string): boolean {
    const known = this.#several.get(name);
    if (known !== undefined) return known;
    const several = new Set(this.named(name).map((o) => fingerprint(o.expr))).size > 1;
    this.#several.set(name, several);
    return several;
  }

  /** The position, from 1, of the first output that is `expr`. */
  positionOf(expr: Expr): number | null {
    this.#positions ??= new Positions(this.#outputs);
    return this.#positions.of(expr);
  }
}

function groupByName(outputs: readonly Output[]): ReadonlyMap<string, readonly Output[]> {
  const names = new Map<string, Output[]>();
  for (const output of outputs) {
    const same = names.get(output.name);
    if (same === undefined) names.set(output.name, [output]);
    else same.push(output);
  }
  return names;
}
