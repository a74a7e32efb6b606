import { assertNever } from 'osl-compiler';
import type { Formula, Sort } from './formula.js';

/** Writes formulas in SMT-LIB 2. Equal parts of formulas are written once, under a name. */
class SmtWriter {
  /** Variables that were written, by name. */
  readonly variables = new Map<string, Sort>();
  readonly #lines: string[] = [];
  readonly #terms = new Map<Formula, string>();
  readonly #definitions = new Map<string, string>();
  readonly #functions = new Set<string>();
  /** Constants with the truth of formulas, by term. */
  readonly #truths = new Map<string, string>();

  /** The term that stands for a formula. */
  term(formula: Formula): string {
    const known = this.#terms.get(formula);
    if (known !== undefined) return known;
    const term = this.#written(formula);
    this.#terms.set(formula, term);
    return term;
  }

  assert(formula: Formula): void {
    this.#lines.push(`(assert ${this.term(formula)})`);
  }

  /** Name of a constant that is true if a formula is; a model of the solver has its value. */
  truthOf(formula: Formula): string {
    return this.#truthOf(this.term(formula));
  }

  /** Null if nobody asked for the truth of the formula. */
  knownTruthOf(formula: Formula): string | null {
    return this.#truths.get(this.term(formula)) ?? null;
  }

  text(): string {
    return this.#lines.join('\n');
  }

  #written(formula: Formula): string {
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
        return this.#defined(
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

  #defined(body: string, sort: Sort): string {
    const known = this.#definitions.get(body);
    if (known !== undefined) return known;
    const name = symbol(`term ${this.#definitions.size}`);
    this.#definitions.set(body, name);
    this.#lines.push(`(define-fun ${name} () ${sort} ${body})`);
    return name;
  }

  #truthOf(term: string): string {
    const known = this.#truths.get(term);
    if (known !== undefined) return known;
    const name = `truth ${this.#truths.size}`;
    this.#truths.set(term, name);
    this.#lines.push(`(declare-const ${symbol(name)} Bool)`, `(assert (= ${symbol(name)} ${term}))`);
    return name;
  }
}

function symbol(name: string): string {
  return `|${symbolName(name)}|`;
}

/** A name as a quoted symbol of SMT-LIB may contain it: without `|` and `\\`. */
function symbolName(name: string): string {
  return name.replace(/[|\\]/g, (c) => `#${c.charCodeAt(0)}#`);
}

function numberText(digits: string, sort: 'Int' | 'Real'): string {
  const isNegative = digits.startsWith('-');
  const plain = digits.replace(/^[+-]/, '');
  const written = sort === 'Int' || plain.includes('.') ? plain : `${plain}.0`;
  return isNegative ? `(- ${written})` : written;
}

/** Characters outside of printable ASCII are written as escapes, and so are quotes and backslashes. */
function stringText(value: string): string {
  const escaped = [...value].map((char) => {
    const code = char.codePointAt(0) ?? 0;
    return code < 0x20 || code > 0x7e || char === '"' || char === '\\' ? `\\u{${code.toString(16)}}` : char;
  });
  return `"${escaped.join('')}"`;
}

/** A model of the solver: values of variables by name, and the truth of formulas. */
export interface SolverModel {
  value(name: string): ModelValue | null;
  /** The truth of a formula. */
  holds(formula: Formula): boolean;
}

/** `true`, a number as digits (a fraction as `1/3`), or a text. */
export type ModelValue = boolean | string;

export interface Script {
  /** Declarations and assertions. */
  readonly text: string;
  /** For each case, the names of the constants that must be true. */
  readonly cases: readonly (readonly string[])[];
  model(constants: ReadonlyMap<string, ModelValue>): SolverModel;
}

/**
 * @param facts formulas that hold in each case
 * @param cases formulas that hold in one case
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
  const named = cases.map((formulas) => formulas.map((formula) => writer.truthOf(formula)));
  return { text: writer.text(), cases: named, model: (constants) => modelOf(constants, writer) };
}

function modelOf(constants: ReadonlyMap<string, ModelValue>, writer: SmtWriter): SolverModel {
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
