import type { A_Const } from '@pgsql/types';
import {
  type BoundPlan,
  type CarriedLiterals,
  carriedText,
  type LiteralTest,
  WrittenLiteral,
} from '../bind/index.js';
import { InternalError } from '../errors/errors.js';
import type { Expr, LiteralValue, Query, Slot } from '../plan/plan.js';
import { allLeaves, someExpr } from '../plan/walk.js';
import type { PlainLiteral } from '../text/shape.js';
import { type GovernedPlan, withValues } from './governed-plan.js';
import { verifyBarrier } from './verify/barrier.js';
import { type ProofDependency, upholds } from './verify/proofs.js';

/** A literal of the text that fills a slot, with the minus sign that the grammar treats as part of it. */
interface Hole {
  readonly literal: number;
  readonly negated: boolean;
}

/** Where the value of a slot comes from: a literal of the text, a constant, or the items of an IN list. */
type Recipe = Hole | string | readonly (Hole | string | null)[];

interface SlotFilling {
  readonly slot: number;
  /** Sources of the slot's value: the first provides it, and the others must yield the same value. */
  readonly recipes: readonly Recipe[];
}

/**
 * The plan for all texts of one shape that have the same values in the literals that the plan depends on. The other
 * literals are plain values: compilation does not examine them, except by tests that are repeated here.
 *
 * INVARIANT: `fill` returns what compiling the text would have returned, slot for slot, or null.
 */
export class PlanTemplate {
  readonly plan: GovernedPlan;
  readonly #fixed: readonly { readonly literal: number; readonly value: string }[];
  readonly #tests: readonly { readonly hole: Hole; readonly holds: LiteralTest; readonly outcome: boolean }[];
  readonly #fillings: readonly SlotFilling[];
  /** The properties of literals that the verifier's proofs of the plan rely on. */
  readonly #relied: readonly ProofDependency[];
  /** Type and value of each literal slot with the same value for all texts; an equal literal would share that slot. */
  readonly #taken: ReadonlySet<string>;

  private constructor(plan: GovernedPlan, bound: BoundPlan, literals: readonly PlainLiteral[]) {
    const { bound: written, carried } = bound.literals;
    const holes = holesOf(written, literals);
    this.plan = plan;
    this.#relied = verifyBarrier(plan.query, plan.slots);
    this.#fixed = fixedLiterals(written, holes, literals);
    this.#tests = written.flatMap((w) => {
      const hole = holes.get(w);
      return hole === undefined ? [] : w.tests.map(({ holds, outcome }) => ({ hole, holds, outcome }));
    });
    const recipes = [...carried].map(([slot, from]) => ({
      slot,
      recipes: from.map((c) => recipeOf(c, holes)),
    }));
    this.#fillings = recipes.filter((f) => f.recipes.some(varies));
    refuseInPolicy(plan.query, new Set(this.#fillings.map((f) => f.slot)));
    this.#taken = new Set(
      recipes.filter((f) => !f.recipes.some(varies)).map(({ slot }) => keyOfSlot(bound.slots[slot])),
    );
  }

  /**
   * Returns the template of `plan`, which was bound as `bound` from a text with `literals`. Returns null if `plan` has
   * runtime relations, whose plans have separate slots, or does not begin with the slots of `bound`.
   */
  static of(plan: GovernedPlan, bound: BoundPlan, literals: readonly PlainLiteral[]): PlanTemplate | null {
    if (plan.runtime.length > 0) return null;
    // Policy adds its slots after those of the query.
    if (bound.slots.some((slot, i) => plan.slots[i] !== slot)) return null;
    return new PlanTemplate(plan, bound, literals);
  }

  /** Returns the plan with the values of `literals`, which have the template's shape; null if the plan would differ. */
  fill(literals: readonly PlainLiteral[]): GovernedPlan | null {
    return this.fillWith(literals.map((l) => l.value));
  }

  /** Like `fill`, for literals with these `values`. */
  fillWith(values: readonly string[]): GovernedPlan | null {
    const slots = this.slotsWith(values);
    return slots === null ? null : withValues(this.plan, slots);
  }

  /** Returns the slots of the plan for literals with these `values`; null if they need a different plan. */
  slotsWith(values: readonly string[]): readonly Slot[] | null {
    for (const { literal, value } of this.#fixed) if (values[literal] !== value) return null;
    for (const { hole, holds, outcome } of this.#tests) {
      if (holds(holeText(hole, values)) !== outcome) return null;
    }
    const slots = [...this.plan.slots];
    const used = new Set<string>();
    for (const { slot, recipes } of this.#fillings) {
      const filled = this.#fill(slot, recipes, values, used);
      if (filled === null) return null;
      slots[slot] = filled;
    }
    return this.#relied.every((r) => upholds(r, slots)) ? slots : null;
  }

  /** Returns slot `index` with its new value; null if a fresh compilation would share or split slots differently. */
  #fill(
    index: number,
    recipes: readonly Recipe[],
    values: readonly string[],
    used: Set<string>,
  ): Slot | null {
    const before = this.plan.slots[index];
    if (before?.kind !== 'literal') return null;
    const [first] = recipes;
    if (first === undefined) return null;
    const value = valueOfRecipe(first, values);
    const key = keyOf(before.type, value);
    if (this.#taken.has(key) || used.has(key)) return null;
    used.add(key);
    if (recipes.some((r) => r !== first && keyOf(before.type, valueOfRecipe(r, values)) !== key)) return null;
    const { type, written } = before;
    return Object.freeze({ kind: 'literal', type, value, written });
  }
}

/** INVARIANT: values in row filters and masks do not depend on the text, since only those of the first are verified. */
function refuseInPolicy(root: Query, changed: ReadonlySet<number>): void {
  const reads = (e: Expr): boolean => e.kind === 'parameter' && changed.has(e.slot);
  for (const leaf of allLeaves(root)) {
    if (leaf.kind !== 'governed') continue;
    const ofPolicy = leaf.columns.map((c) => c.expr);
    if (leaf.filter !== null) ofPolicy.push(leaf.filter);
    if (ofPolicy.some((e) => someExpr(e, reads)))
      throw new InternalError('a text changes a value of a row filter or a mask');
  }
}

function keyOf(type: string, value: LiteralValue): string {
  return typeof value === 'string' ? `${type}:s${value}` : `${type}:a${JSON.stringify(value)}`;
}

function keyOfSlot(slot: Slot | undefined): string {
  return slot?.kind === 'literal' ? keyOf(slot.type, slot.value) : '';
}

function valueOfRecipe(recipe: Recipe, values: readonly string[]): LiteralValue {
  if (typeof recipe === 'string') return recipe;
  if ('literal' in recipe) return holeText(recipe, values);
  return Object.freeze(
    recipe.map((item) => (item === null || typeof item === 'string' ? item : holeText(item, values))),
  );
}

function holeText(hole: Hole, values: readonly string[]): string {
  const value = values[hole.literal] ?? '';
  return hole.negated ? negate(value) : value;
}

/** Returns the number with a minus sign, except for 0: the grammar has no negative zero for integers. */
function negate(value: string): string {
  return value === '0' ? '0' : `-${value}`;
}

/** Maps each literal of the bound plan to the literal at the same position of the text, if their values agree. */
function holesOf(
  written: readonly WrittenLiteral[],
  literals: readonly PlainLiteral[],
): ReadonlyMap<WrittenLiteral, Hole> {
  const values = literals.map((l) => l.value);
  const byOffset = new Map<number, Hole>();
  for (const [literal, { start, sign }] of literals.entries()) {
    byOffset.set(start, { literal, negated: false });
    if (sign >= 0) byOffset.set(sign, { literal, negated: true });
  }
  const holes = new Map<WrittenLiteral, Hole>();
  for (const w of written) {
    const hole = byOffset.get(w.node?.location ?? -1);
    if (hole !== undefined && carriedText(w) === holeText(hole, values)) holes.set(w, hole);
  }
  return holes;
}

/** Returns the literals that the plan depends on: examined, shared by several nodes, or never made a slot's value. */
function fixedLiterals(
  written: readonly WrittenLiteral[],
  holes: ReadonlyMap<WrittenLiteral, Hole>,
  literals: readonly PlainLiteral[],
): readonly { readonly literal: number; readonly value: string }[] {
  const owners = new Map<number, A_Const | null>();
  const fixed = new Set<number>();
  for (const w of written) {
    const hole = holes.get(w);
    if (hole === undefined) continue;
    const owner = owners.get(hole.literal) ?? w.node;
    owners.set(hole.literal, owner);
    if (w.isRead || owner !== w.node) fixed.add(hole.literal);
  }
  return literals.flatMap(({ value }, literal) =>
    fixed.has(literal) || !owners.has(literal) ? [{ literal, value }] : [],
  );
}

function recipeOf(carried: CarriedLiterals, holes: ReadonlyMap<WrittenLiteral, Hole>): Recipe {
  const one = (w: WrittenLiteral): Hole | string => holes.get(w) ?? carriedText(w);
  return carried instanceof WrittenLiteral ? one(carried) : carried.map((w) => (w === null ? null : one(w)));
}

function varies(recipe: Recipe): boolean {
  return (
    typeof recipe !== 'string' &&
    ('literal' in recipe || recipe.some((i) => typeof i === 'object' && i !== null))
  );
}
