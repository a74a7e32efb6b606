import { and, type Formula, or, type Sort, Symbols, smtText, symbol, symbolName } from './formula.js';
import type { Obligation } from './obligations.js';

/** SMT-LIB scripts of obligations, and what a solver answers to them. */

/** A model of the solver: values of variables by name, and what was asked besides. */
export interface Model {
  value(name: string): ModelValue | null;
  /** The truth of a formula. */
  holds(formula: Formula): boolean;
}

/** `true`, a number as digits (a fraction as `1/3`), or a text. */
export type ModelValue = boolean | string;

export interface Script {
  /** Declarations and assertions; they are satisfied by what has to be impossible. */
  readonly text: string;
  /** @param constants values of constants by name, as S-expressions */
  model(constants: ReadonlyMap<string, string>): Model;
}

/** @param wished formulas that shall hold besides */
export function scriptOf({ parts, facts }: Obligation, wished: readonly Formula[] = []): Script {
  const whole = and(...facts, or(...parts.map((p) => p.formula)), ...wished);
  const symbols = new Symbols();
  symbols.add(whole);
  for (const { formula } of parts) symbols.add(formula);
  // Formulas that are asked for get a name, since a model gives values of names.
  const asked = new Map(
    [...symbols.applications.keys(), ...parts.map((p) => smtText(p.formula))].map((text, i) => [
      text,
      `asked ${i}`,
    ]),
  );
  const named = [...asked].map(
    ([text, name]) => `(declare-const ${symbol(name)} Bool)\n(assert (= ${symbol(name)} ${text}))`,
  );
  return {
    text: [symbols.declarations(), ...named, `(assert ${smtText(whole)})`].join('\n'),
    model: (constants) => modelOf(constants, asked, symbols.variables),
  };
}

function modelOf(
  constants: ReadonlyMap<string, string>,
  asked: ReadonlyMap<string, string>,
  sorts: ReadonlyMap<string, Sort>,
): Model {
  const constant = (name: string): ModelValue | null => {
    const text = constants.get(symbolName(name));
    return text === undefined ? null : valueIn(expressionsIn(text)[0]);
  };
  return {
    value: (name) => (sorts.has(name) ? constant(name) : null),
    holds: (formula) =>
      formula.kind === 'boolean'
        ? formula.value
        : constant(
            asked.get(smtText(formula)) ?? symbolName(formula.kind === 'variable' ? formula.name : ''),
          ) === true,
  };
}

/** An S-expression; a text literal has its quotes. */
type Expression = string | undefined | readonly Expression[];

/** Reads S-expressions. @throws Error if they are not closed */
function expressionsIn(text: string): readonly Expression[] {
  const stack: Expression[][] = [[]];
  for (const [token] of text.matchAll(/\(|\)|"(?:[^"]|"")*"|\|[^|]*\||[^\s()"|]+/g)) {
    if (token === '(') stack.push([]);
    else if (token === ')') {
      const done = stack.pop();
      stack.at(-1)?.push(done);
    } else stack.at(-1)?.push(token);
  }
  const [all] = stack;
  if (stack.length !== 1 || all === undefined)
    throw new Error('the solver wrote something that cannot be read');
  return all;
}

function valueIn(expression: Expression): ModelValue | null {
  if (expression === undefined) return null;
  if (typeof expression !== 'string') {
    const [op, a, b] = expression;
    const [left, right] = [valueIn(a), valueIn(b)];
    if (op === '-' && typeof left === 'string') return left.startsWith('-') ? left.slice(1) : `-${left}`;
    if (op === '/' && typeof left === 'string' && typeof right === 'string')
      return `${left.replace(/\.0$/, '')}/${right.replace(/\.0$/, '')}`;
    return null;
  }
  if (expression === 'true' || expression === 'false') return expression === 'true';
  if (expression.startsWith('"')) return textIn(expression);
  return /^\d+(?:\.\d+)?$/.test(expression) ? expression.replace(/\.0$/, '') : null;
}

function textIn(literal: string): string {
  return literal
    .slice(1, -1)
    .replaceAll('""', '"')
    .replace(/\\u\{([0-9a-fA-F]+)\}|\\u([0-9a-fA-F]{4})/g, (_, braced: string | undefined, plain: string) =>
      String.fromCodePoint(Number.parseInt(braced ?? plain, 16)),
    );
}
