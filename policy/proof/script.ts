import type { Formula } from './formula.js';
import { SmtWriter, symbolName } from './smt.js';

/** Questions to a solver as SMT-LIB scripts, and its answers. */

/** A model of the solver: values of variables by name, and the truth of formulas. */
export interface Model {
  value(name: string): ModelValue | null;
  /** The truth of a formula. */
  holds(formula: Formula): boolean;
}

/** `true`, a number as digits (a fraction as `1/3`), or a text. */
export type ModelValue = boolean | string;

export interface Script {
  /** Declarations and assertions. */
  readonly text: string;
  /** By case: names of constants that shall be true. */
  readonly cases: readonly (readonly string[])[];
  model(constants: ReadonlyMap<string, ModelValue>): Model;
}

/**
 * @param facts formulas that hold in each case
 * @param cases formulas that hold in one case
 * @param observed formulas whose truth a model tells
 */
export function scriptOf(
  facts: readonly Formula[],
  cases: readonly (readonly Formula[])[],
  observed: readonly Formula[] = [],
): Script {
  const writer = new SmtWriter();
  for (const fact of facts) writer.assert(fact);
  for (const formula of observed) writer.truthOf(formula);
  const named = cases.map((formulas) => formulas.map((formula) => writer.truthOf(formula)));
  return { text: writer.text(), cases: named, model: (constants) => modelOf(constants, writer) };
}

function modelOf(constants: ReadonlyMap<string, ModelValue>, writer: SmtWriter): Model {
  const constant = (name: string): ModelValue | null => constants.get(symbolName(name)) ?? null;
  return {
    value: (name) => (writer.variables.has(name) ? constant(name) : null),
    holds: (formula) => {
      if (formula.kind === 'boolean') return formula.value;
      return (
        constant(formula.kind === 'variable' ? formula.name : (writer.knownTruthOf(formula) ?? '')) === true
      );
    },
  };
}
