/** Formulas for an SMT solver, without quantifiers, so that the solver can decide most of them. */

export type Sort = 'Bool' | 'Int' | 'Real' | 'String';

export type Formula =
  | { readonly kind: 'boolean'; readonly sort: 'Bool'; readonly value: boolean }
  | { readonly kind: 'number'; readonly sort: 'Int' | 'Real'; readonly text: string }
  | { readonly kind: 'text'; readonly sort: 'String'; readonly value: string }
  | { readonly kind: 'variable'; readonly sort: Sort; readonly name: string }
  /** Application of an uninterpreted function: equal arguments give equal results. */
  | {
      readonly kind: 'unknown';
      readonly sort: 'Bool';
      readonly name: string;
      readonly args: readonly Formula[];
    }
  | { readonly kind: 'operation'; readonly sort: Sort; readonly op: Op; readonly args: readonly Formula[] };

type Op = 'and' | 'or' | 'not' | '=' | '<' | '+' | '-' | '*' | 'ite' | 'to_real' | 'str.prefixof' | 'str.<';

export const TRUE: Formula = Object.freeze({ kind: 'boolean', sort: 'Bool', value: true });
export const FALSE: Formula = Object.freeze({ kind: 'boolean', sort: 'Bool', value: false });

export function boolean(value: boolean): Formula {
  return value ? TRUE : FALSE;
}

/** @param text decimal digits, optionally with a sign and a fraction */
export function number(text: string, sort: 'Int' | 'Real'): Formula {
  return Object.freeze({ kind: 'number', sort, text });
}

export function text(value: string): Formula {
  return Object.freeze({ kind: 'text', sort: 'String', value });
}

export function variable(name: string, sort: Sort): Formula {
  return Object.freeze({ kind: 'variable', sort, name });
}

export function unknown(name: string, args: readonly Formula[]): Formula {
  return Object.freeze({ kind: 'unknown', sort: 'Bool', name, args });
}

export function and(...args: readonly Formula[]): Formula {
  return join('and', args, TRUE, FALSE);
}

export function or(...args: readonly Formula[]): Formula {
  return join('or', args, FALSE, TRUE);
}

function join(op: 'and' | 'or', args: readonly Formula[], neutral: Formula, absorbing: Formula): Formula {
  const operands = new Set<Formula>();
  for (const arg of args) {
    if (arg === absorbing) return absorbing;
    if (arg !== neutral) operands.add(arg);
  }
  for (const arg of operands) {
    const [inner] = arg.kind === 'operation' && arg.op === 'not' ? arg.args : [];
    if (inner !== undefined && operands.has(inner)) return absorbing;
  }
  const [only = neutral] = operands;
  return operands.size < 2 ? only : operation(op, 'Bool', [...operands]);
}

export function not(arg: Formula): Formula {
  if (arg.kind === 'boolean') return boolean(!arg.value);
  const [inner] = arg.kind === 'operation' && arg.op === 'not' ? arg.args : [];
  return inner ?? operation('not', 'Bool', [arg]);
}

export function equal(a: Formula, b: Formula): Formula {
  if (a === b) return TRUE;
  const [left, right] = withSameSort(a, b);
  if (left.kind === 'number' && right.kind === 'number' && left.text === right.text) return TRUE;
  return operation('=', 'Bool', [left, right]);
}

export function less(a: Formula, b: Formula): Formula {
  return operation('<', 'Bool', withSameSort(a, b));
}

/** Returns a formula that is true if `a` comes before `b` in code point order. */
export function textLess(a: Formula, b: Formula): Formula {
  return operation('str.<', 'Bool', [a, b]);
}

export function isPrefix(prefix: Formula, of: Formula): Formula {
  return operation('str.prefixof', 'Bool', [prefix, of]);
}

export function arithmetic(op: '+' | '-' | '*', a: Formula, b: Formula): Formula {
  const args = withSameSort(a, b);
  return operation(op, args[0].sort, args);
}

export function ifThenElse(condition: Formula, a: Formula, b: Formula): Formula {
  if (condition === TRUE || a === b) return a;
  if (condition === FALSE) return b;
  const [left, right] = withSameSort(a, b);
  return operation('ite', left.sort, [condition, left, right]);
}

function operation(op: Op, sort: Sort, args: readonly Formula[]): Formula {
  return Object.freeze({ kind: 'operation', sort, op, args });
}

function withSameSort(a: Formula, b: Formula): readonly [Formula, Formula] {
  return a.sort === b.sort ? [a, b] : [toReal(a), toReal(b)];
}

function toReal(formula: Formula): Formula {
  if (formula.sort !== 'Int') return formula;
  return formula.kind === 'number' ? number(formula.text, 'Real') : operation('to_real', 'Real', [formula]);
}
