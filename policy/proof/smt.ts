import { assertNever } from 'osl-compiler';
import type { Formula, Sort } from './formula.js';

/** Writes formulas in SMT-LIB 2. Equal subformulas are written once, as a named definition. */
class SmtWriter {
  /** Sorts of the declared variables, by name. */
  readonly variables = new Map<string, Sort>();
  readonly #lines: string[] = [];
  readonly #terms = new Map<Formula, string>();
  readonly #definitions = new Map<string, string>();
  readonly #functions = new Set<string>();
  /** Names of the constants that hold the truth values of formulas, by term. */
  readonly #truths = new Map<string, string>();

  /** Returns the SMT-LIB term for a formula, after writing the declarations that it needs. */
  term(formula: Formula): string {
    const cached = this.#terms.get(formula);
    if (cached !== undefined) return cached;
    const term = this.#write(formula);
    this.#terms.set(formula, term);
    return term;
  }

  assert(formula: Formula): void {
    this.#lines.push(`(assert ${this.term(formula)})`);
  }

  /** Returns the name of a constant that is true if the formula is. Models of the solver contain its value. */
  truthOf(formula: Formula): string {
    return this.#truthOf(this.term(formula));
  }

  /** Returns the name of the formula's truth constant; null if the formula has none. */
  existingTruthOf(formula: Formula): string | null {
    return this.#truths.get(this.term(formula)) ?? null;
  }

  text(): string {
    return this.#lines.join('\n');
  }

  #write(formula: Formula): string {
    switch (formula.kind) {
      case 'boolean':
        return String(formula.value);
      case 'number':
        return numberText(formula.text, formula.sort);
      case 'text':
        return stringText(formula.value);
      case 'variable':
        return this.#variable(formula.name, formula.sort);
      case 'unknown': {
        const args = formula.args.map((arg) => this.term(arg));
        this.#function(formula);
        const term = args.length === 0 ? symbol(formula.name) : `(${symbol(formula.name)} ${args.join(' ')})`;
        this.#truthOf(term);
        return term;
      }
      case 'operation':
        return this.#define(
          `(${formula.op} ${formula.args.map((arg) => this.term(arg)).join(' ')})`,
          formula.sort,
        );
      default:
        return assertNever(formula);
    }
  }

  #variable(name: string, sort: Sort): string {
    if (!this.variables.has(name)) {
      this.variables.set(name, sort);
      this.#lines.push(`(declare-const ${symbol(name)} ${sort})`);
    }
    return symbol(name);
  }

  #function({ name, args }: Extract<Formula, { readonly kind: 'unknown' }>): void {
    if (this.#functions.has(name)) return;
    this.#functions.add(name);
    this.#lines.push(`(declare-fun ${symbol(name)} (${args.map(({ sort }) => sort).join(' ')}) Bool)`);
  }

  #define(body: string, sort: Sort): string {
    const cached = this.#definitions.get(body);
    if (cached !== undefined) return cached;
    const name = symbol(`term ${this.#definitions.size}`);
    this.#definitions.set(body, name);
    this.#lines.push(`(define-fun ${name} () ${sort} ${body})`);
    return name;
  }

  #truthOf(term: string): string {
    const cached = this.#truths.get(term);
    if (cached !== undefined) return cached;
    const name = `truth ${this.#truths.size}`;
    this.#truths.set(term, name);
    this.#lines.push(`(declare-const ${symbol(name)} Bool)`, `(assert (= ${symbol(name)} ${term}))`);
    return name;
  }
}

function symbol(name: string): string {
  return `|${symbolName(name)}|`;
}

/** Escapes `|` and `\`, which a quoted SMT-LIB symbol must not contain. */
function symbolName(name: string): string {
  return name.replace(/[|\\]/g, (c) => `#${c.charCodeAt(0)}#`);
}

function numberText(digits: string, sort: 'Int' | 'Real'): string {
  const isNegative = digits.startsWith('-');
  const plain = digits.replace(/^[+-]/, '');
  const formatted = sort === 'Int' || plain.includes('.') ? plain : `${plain}.0`;
  return isNegative ? `(- ${formatted})` : formatted;
}

/** Formats a string literal. Quotes, backslashes and characters outside printable ASCII are escaped. */
function stringText(value: string): string {
  const escaped = [...value].map((char) => {
    const code = char.codePointAt(0) ?? 0;
    return code < 0x20 || code > 0x7e || char === '"' || char === '\\' ? `\\u{${code.toString(16)}}` : char;
  });
  return `"${escaped.join('')}"`;
}

/** A model found by the solver: values of variables by name, and the truth of formulas. */
export interface SolverModel {
  value(name: string): ModelValue | null;
  /** True if the formula is true in the model; false also if the model does not contain its truth. */
  holds(formula: Formula): boolean;
}

/** A truth value, a text, or a number as digits (a fraction as `1/3`). */
export type ModelValue = boolean | string;

export interface Script {
  /** Declarations and assertions in SMT-LIB 2. */
  readonly text: string;
  /** For each case, the names of the constants that must be true. */
  readonly cases: readonly (readonly string[])[];
  model(constants: ReadonlyMap<string, ModelValue>): SolverModel;
}

/**
 * Writes the SMT-LIB script that checks a set of cases.
 *
 * @param facts formulas that hold in every case
 * @param cases for each case, the formulas that hold in it
 * @param observed formulas whose truth a model contains
 */
export function scriptOf(
  facts: readonly Formula[],
  cases: readonly (readonly Formula[])[],
  observed: readonly Formula[] = [],
): Script {
  const writer = new SmtWriter();
  for (const fact of facts) writer.assert(fact);
  for (const formula of observed) writer.truthOf(formula);
  const truths = cases.map((formulas) => formulas.map((formula) => writer.truthOf(formula)));
  return { text: writer.text(), cases: truths, model: (constants) => modelOf(constants, writer) };
}

function modelOf(constants: ReadonlyMap<string, ModelValue>, writer: SmtWriter): SolverModel {
  const constant = (name: string): ModelValue | null => constants.get(symbolName(name)) ?? null;
  return {
    value: (name) => (writer.variables.has(name) ? constant(name) : null),
    holds: (formula) => {
      if (formula.kind === 'boolean') return formula.value;
      return (
        constant(formula.kind === 'variable' ? formula.name : (writer.existingTruthOf(formula) ?? '')) ===
        true
      );
    },
  };
}
