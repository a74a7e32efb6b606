import { assertNever } from '../../errors/errors.js';
import type { Expr, Slot } from '../../plan/plan.js';
import { elementOf, isArray, type TypeName } from '../../types/types.js';

/*
 * The verifier's own list of operations that cannot fail. It shares no code with `harmless.ts`: a condition that can
 * fail gets through only if both are wrong in the same way.
 */

/** A property of a literal that a proof relies on. */
export interface ProofDependency {
  readonly slot: number;
  readonly as:
    | 'pattern'
    | 'moment'
    | 'contained'
    | 'short'
    | 'words'
    | 'small'
    | 'year'
    | 'month'
    | 'day'
    | 'count'
    | 'at most one';
}

/** Upper bound for the absolute value of a literal that is `small`. */
const SMALL = 2e6;

/** True if the literal in a slot has the property that a proof assumes. */
export function upholds({ slot, as }: ProofDependency, slots: readonly Slot[]): boolean {
  const found = slots[slot];
  if (found?.kind !== 'literal' || typeof found.value !== 'string') return false;
  switch (as) {
    case 'pattern':
      return isWholePattern(found.value);
    case 'moment':
      return isNearMoment(found.value);
    case 'contained':
      return isShallow(found.value);
    case 'short':
      return found.value.length <= 1_000;
    case 'words':
      return found.value.length <= 1_000 && (found.value.match(/-/g) ?? []).length < 20;
    case 'small':
      return found.value.length <= 14 && Math.abs(Number(found.value)) < SMALL;
    case 'year':
      return isWithin(found.value, 1, 9_999);
    case 'month':
      return isWithin(found.value, 1, 12);
    case 'day':
      return isWithin(found.value, 1, 28);
    case 'count':
      return isWithin(found.value, 0, 999_999_999);
    case 'at most one':
      return isWithin(found.value, 0, 1);
    default:
      return assertNever(as);
  }
}

/** The literals of a plan, and a record of those that a proof relies on. */
export class ProofLiterals {
  readonly relied: ProofDependency[] = [];
  readonly #slots: readonly Slot[];

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  /** True for a literal with the property that a proof needs; records that the proof relies on it. */
  has(e: Expr | null | undefined, as: ProofDependency['as']): boolean {
    if (e?.kind !== 'parameter' || !upholds({ slot: e.slot, as }, this.#slots)) return false;
    this.relied.push({ slot: e.slot, as });
    return true;
  }

  /** Runs a proof, and records the literals that it relies on only if it succeeds. */
  ifProved(proof: (literals: ProofLiterals) => boolean): boolean {
    const literals = new ProofLiterals(this.#slots);
    if (!proof(literals)) return false;
    this.relied.push(...literals.relied);
    return true;
  }
}

/** True for plain digits that denote a number from `least` to `most`. */
function isWithin(digits: string, least: number, most: number): boolean {
  const value = Number(digits);
  return String(value) === digits && value >= least && value <= most;
}

/** True for a short JSON text, at most fifty levels deep, without arrays or objects inside arrays. */
function isShallow(json: string): boolean {
  if (json.length > 10_000) return false;
  const open: string[] = [];
  let quoted = false;
  for (let i = 0; i < json.length; i++) {
    const c = json.charAt(i);
    if (c === '"') quoted = !quoted;
    else if (quoted && c === '\\') i++;
    else if (quoted) continue;
    else if (c === ']' || c === '}') open.pop();
    else if (c === '[' || c === '{') {
      if (open.at(-1) === '[' || open.length === 50) return false;
      open.push(c);
    }
  }
  return open.length === 0 && !quoted;
}

/** True for a LIKE pattern with complete escapes and at most a hundred `%`. */
function isWholePattern(pattern: string): boolean {
  return /^(?:[^\\]|\\.)*$/su.test(pattern) && pattern.split('%').length - 1 <= 100;
}

/** True for a date with a four-digit year, a small number, or an interval under two thousand years. */
function isNearMoment(text: string): boolean {
  const [, digits, unit] = /^[+-]?(\d{1,5})(?: ([a-z]+?)s?)?$/i.exec(text) ?? [];
  if (digits === undefined) return /^\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}(?::\d{2})?)?$/.test(text);
  if (unit === undefined) return !text.startsWith('+');
  const most = LONGEST[unit.toLowerCase()];
  return most !== undefined && Number(digits) <= most;
}

const LONGEST: Readonly<Record<string, number | undefined>> = {
  second: 99_999,
  minute: 99_999,
  hour: 99_999,
  day: 99_999,
  week: 99_999,
  month: 9_999,
  year: 999,
};

/** True if the node yields a value for all arguments of its types. */
export function isTotalNode(e: Expr, literals: ProofLiterals): boolean {
  switch (e.kind) {
    case 'base':
    case 'column':
    case 'parameter':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'and':
    case 'or':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'case':
    case 'array':
    case 'exists':
    case 'grouping':
    case 'collate':
      return true;
    case 'conditional':
      return e.form === 'coalesce' || e.args.every((a) => areOrdered(a.type, a.type));
    case 'distinct_test':
      return areOrdered(e.left.type, e.right.type);
    case 'row_comparison':
      return e.pairs.every((p) => isOrder(p.definition.name) && areOrdered(p.left.type, p.right.type));
    case 'membership':
      return e.items.every((i) => areOrdered(e.arg.type, i.type));
    case 'in_query':
      return areOrdered(e.arg.type, outputType(e.query) ?? e.arg.type);
    case 'quantified':
      return (
        isOrder(e.definition.name) && isArray(e.array.type) && areOrdered(e.arg.type, elementOf(e.array.type))
      );
    case 'cast':
      return e.modifiers.length === 0 && (TOTAL_CASTS[e.arg.type]?.includes(e.type) ?? false);
    case 'call':
      return isTotalCall(e) || isShortSearch(e, literals) || isLookUp(e) || isCutOut(e, literals);
    case 'operation':
      return isTotalOperation(e, literals);
    case 'aggregate':
      return ['count', 'min', 'max', 'bool_and', 'bool_or', 'every'].includes(e.definition.name);
    case 'literal':
    case 'bit_number':
    case 'row_text':
    case 'slice':
    case 'subscript':
    case 'window':
    case 'distance':
    case 'stored_vector':
    case 'scalar_query':
    case 'attribute_match':
      return false;
    default:
      return assertNever(e);
  }
}

function outputType(query: Extract<Expr, { kind: 'in_query' }>['query']): TypeName | undefined {
  return query.kind === 'select' ? query.outputs[0]?.expr.type : query.columns[0]?.type;
}

function isOrder(name: string): boolean {
  return /^(?:=|<>|[<>]=?)$/.test(name);
}

/** Types that Postgres compares with each other without a cast. */
const COMPARED_TOGETHER: readonly (readonly TypeName[])[] = [
  ['int2', 'int4', 'int8'],
  ['float4', 'float8'],
  ['date', 'timestamp', 'timestamptz'],
];

function areOrdered(left: TypeName, right: TypeName): boolean {
  if (left === 'tsquery' || right === 'tsquery') return false;
  return left === right || COMPARED_TOGETHER.some((t) => t.includes(left) && t.includes(right));
}

const TOTAL_CASTS: Readonly<Partial<Record<TypeName, readonly TypeName[]>>> = {
  int2: ['int4', 'int8', 'numeric', 'float4', 'float8', 'text'],
  int4: ['int8', 'numeric', 'float4', 'float8', 'text', 'bool'],
  int8: ['numeric', 'float4', 'float8', 'text'],
  float4: ['float8', 'numeric'],
  float8: ['numeric'],
  bool: ['int4'],
  time: ['interval'],
  timestamp: ['date'],
  uuid: ['text'],
  cidr: ['inet'],
};

/** Types of the last argument with which a function cannot fail; any argument before is a unit or of the same type. */
const TOTAL_CALLS: Readonly<Record<string, readonly TypeName[]>> = {
  length: ['text', 'bytea'],
  char_length: ['text'],
  character_length: ['text'],
  octet_length: ['text', 'bytea'],
  md5: ['text', 'bytea'],
  sha224: ['bytea'],
  sha256: ['bytea'],
  sha384: ['bytea'],
  sha512: ['bytea'],
  starts_with: ['text'],
  isfinite: ['date', 'timestamp', 'timestamptz', 'interval'],
  extract: ['date', 'time', 'timestamp', 'timestamptz', 'interval'],
  date_part: ['time', 'timestamp', 'timestamptz', 'interval'],
};

function isTotalCall(e: Extract<Expr, { kind: 'call' }>): boolean {
  const { name } = e.definition;
  if (['now', 'transaction_timestamp', 'statement_timestamp'].includes(name)) return e.args.length === 0;
  const [first, last] = [e.args[0], e.args.at(-1)];
  if (name === 'timezone' && e.args.length === 2 && first?.kind === 'structural' && first.text === 'UTC')
    return last?.type === 'timestamp' || last?.type === 'timestamptz';
  const units = name === 'extract' || name === 'date_part';
  if (units && (e.args.length !== 2 || first?.kind !== 'structural')) return false;
  return last !== undefined && (TOTAL_CALLS[name]?.includes(last.type) ?? false);
}

/** True for `left`, `right` and `substring` of a text, with a literal length that is not negative. */
function isCutOut({ definition, args }: Extract<Expr, { kind: 'call' }>, literals: ProofLiterals): boolean {
  const form = /^(?:left|right|substr(?:ing)?)$/.exec(definition.name)?.[0];
  if (form === undefined || args[0]?.type !== 'text') return false;
  const lengthAt = form === 'left' || form === 'right' ? 1 : 2;
  if (args.length < 2 || args.length > lengthAt + 1) return false;
  return args
    .slice(1)
    .every((arg, i) => arg.type === 'int4' && literals.has(arg, i + 1 === lengthAt ? 'count' : 'small'));
}

/** True for `array_position(array[…], text)`: a list written out in the query has one dimension. */
function isLookUp({ definition, args }: Extract<Expr, { kind: 'call' }>): boolean {
  const [list, sought] = args;
  if (definition.name !== 'array_position' || args.length !== 2) return false;
  return list?.kind === 'array' && list.items.every((i) => i.type === 'text') && sought?.type === 'text';
}

function isTotalOperation(e: Extract<Expr, { kind: 'operation' }>, literals: ProofLiterals): boolean {
  const { name } = e.definition;
  if (e.left === null) return false;
  if (isOrder(name)) return areOrdered(e.left.type, e.right.type);
  if (name === '~~' || name === '!~~') return e.left.type === 'text' && literals.has(e.right, 'pattern');
  if (name === '@>' && e.left.type === 'jsonb')
    return e.right.type === 'jsonb' && literals.has(e.right, 'contained');
  if (name === '^@') return e.left.type === 'text';
  if (e.left.type === 'inet' && e.right.type === 'inet') return /^(?:<<=?|>>=?|&&)$/.test(name);
  if (e.left.type === 'tsvector')
    return name === '@@' && e.right.kind === 'call' && isShortSearch(e.right, literals);
  if (comparesRanges(e.left.type, name, e.right.type)) return true;
  if (['&&', '@>', '<@'].includes(name)) return isArray(e.left.type) && e.left.type === e.right.type;
  return e.left.type === 'jsonb' && ['->', '?', '?|', '?&'].includes(name);
}

/** True if `name` compares two ranges of one type, or tests whether a range contains an element. */
function comparesRanges(left: TypeName, name: string, right: TypeName): boolean {
  const span = /^(int4|int8|num|date|ts|tstz)(?:multi)?range$/;
  const [one, other] = [span.exec(left)?.[1], span.exec(right)?.[1]];
  if (one !== undefined && other !== undefined)
    return one === other && /^(?:&&|@>|<@|<<|>>|&<|&>)$/.test(name);
  const [of, value] = name === '@>' ? [one, right] : name === '<@' ? [other, left] : [undefined, left];
  return of !== undefined && SPANNED[of] === value;
}

const SPANNED: Readonly<Record<string, TypeName>> = {
  int4: 'int4',
  int8: 'int8',
  num: 'numeric',
  date: 'date',
  ts: 'timestamp',
  tstz: 'timestamptz',
};

/** True for a search for the words of a short literal, by a function that never reports a syntax error. */
function isShortSearch(
  { definition, args }: Extract<Expr, { kind: 'call' }>,
  literals: ProofLiterals,
): boolean {
  if (!/^(?:plainto|phraseto|websearch_to)_tsquery$/.test(definition.name)) return false;
  const [first, ...more] = args;
  // A configuration is structural, from a closed set.
  const [words, ...rest] = first?.kind === 'structural' ? more : args;
  return rest.length === 0 && literals.has(words, 'words');
}

/**
 * True if a timestamp, number or text is computed from literals or the clock alone, by operations that cannot fail for
 * any value. False for a bare literal, which needs no proof.
 */
export function isFixed(e: Expr, literals: ProofLiterals): boolean {
  if ((e.kind !== 'call' && e.kind !== 'operation' && e.kind !== 'cast') || e.type === 'bool') return false;
  const isComputed = e.type === 'text' ? isText : isSmallNumber;
  return (
    literals.ifProved((within) => isNear(e, within)) || literals.ifProved((within) => isComputed(e, within))
  );
}

/** True for a number whose size is bounded, computed from at most 16 nodes. */
function isSmallNumber(e: Expr, literals: ProofLiterals): boolean {
  let nodes = 16;
  /** Returns an upper bound for a number; null if unknown. */
  const size = (x: Expr): number | null => {
    const most = LARGEST[x.type];
    if (nodes-- <= 0 || most === undefined) return null;
    if (x.kind === 'parameter') return literals.has(x, 'small') ? SMALL : null;
    if (x.kind === 'cast')
      return x.modifiers.length === 0 && TOTAL_CASTS[x.arg.type]?.includes(x.type) === true
        ? size(x.arg)
        : x.arg.type === 'numeric' && x.type === 'float8'
          ? size(x.arg)
          : null;
    if (x.kind === 'call') {
      const [arg, ...more] = x.args;
      if (arg === undefined || more.length > 0 || !TO_WHOLE.test(x.definition.name)) return null;
      const given = size(arg);
      return given === null || given + 1 >= most ? null : given + 1;
    }
    if (x.kind !== 'operation' || x.left === null) return null;
    const [left, right] = [size(x.left), size(x.right)];
    if (left === null || right === null) return null;
    const { name } = x.definition;
    const sum = name === '*' ? left * right : name === '+' || name === '-' ? left + right : Infinity;
    return sum < most ? sum : null;
  };
  return size(e) !== null;
}

/** True for a text expression of at most 16 nodes over short literals. */
function isText(e: Expr, literals: ProofLiterals): boolean {
  let nodes = 16;
  const text = (x: Expr | null): boolean => {
    if (nodes-- <= 0 || x?.type !== 'text') return false;
    if (x.kind === 'call') return /^(?:lower|upper|[blr]trim)$/.test(x.definition.name) && x.args.every(text);
    if (x.kind === 'operation') return x.definition.name === '||' && text(x.left) && text(x.right);
    return literals.has(x, 'short');
  };
  return text(e);
}

const TO_WHOLE = /^(?:abs|sign|ceil|ceiling|floor|round|trunc)$/;

const LARGEST: Readonly<Partial<Record<TypeName, number>>> = {
  int4: 2e9,
  int8: 9e18,
  numeric: 1e30,
  float8: 1e30,
};

/** True if a value is a timestamp near the present: from the clock or literals, shifted at most twice. */
function isNear(e: Expr, literals: ProofLiterals): boolean {
  let [nodes, steps] = [16, 2];
  const near = (x: Expr): boolean => {
    if (nodes-- <= 0) return false;
    if (x.kind === 'structural') return true;
    if (x.kind === 'parameter') return literals.has(x, 'moment');
    if (x.kind === 'cast')
      return isMoment(x.type) && isMoment(x.arg.type) && x.modifiers.length === 0 && near(x.arg);
    if (x.kind === 'call' && x.definition.name === 'make_date') {
      const [year, month, day, ...more] = x.args;
      return (
        more.length === 0 &&
        literals.has(year, 'year') &&
        literals.has(month, 'month') &&
        literals.has(day, 'day')
      );
    }
    if (x.kind === 'call')
      return ['now', 'date_trunc'].includes(x.definition.name) && x.args.length < 3 && x.args.every(near);
    if (x.kind !== 'operation' || x.left === null || !['+', '-'].includes(x.definition.name)) return false;
    return isMoment(x.type) && steps-- > 0 && near(x.left) && near(x.right);
  };
  return near(e);
}

function isMoment(type: TypeName): boolean {
  return type === 'date' || type === 'timestamp' || type === 'timestamptz';
}

/**
 * True if `e` is a CASE that yields NULL for those values of a column on which its ELSE would fail: texts that are too
 * long, timestamps too far away. Tests with extreme values show which sizes fail.
 */
export function isBounded(e: Expr): boolean {
  if (e.kind !== 'case' || e.arms.length !== 1) return false;
  const [arm] = e.arms;
  const column = handedOn(e.otherwise, 6);
  return arm?.result.kind === 'null' && column !== null && sizeOf(arm.when, column);
}

/** Returns the column that at most `links` conversions are applied to; null for any other expression. */
function handedOn(e: Expr, links: number): Expr | null {
  if (e.kind === 'column') return e;
  if (links === 0) return null;
  if (e.kind === 'cast')
    return isMoment(e.type) && isMoment(e.arg.type) && e.modifiers.length === 0
      ? handedOn(e.arg, links - 1)
      : null;
  if (e.kind !== 'call') return null;
  const [first, second] = e.args;
  switch (e.definition.name) {
    case 'lower':
    case 'upper':
      return first?.type === 'text' ? handedOn(first, links - 1) : null;
    case 'timezone':
      if (first?.kind !== 'structural' || first.text !== 'UTC') return null;
      return second === undefined ? null : handedOn(second, links - 1);
    case 'date_trunc':
    case 'date_part':
      if (e.args.length !== 2 || first?.kind !== 'structural' || second === undefined) return null;
      return isMoment(second.type) ? handedOn(second, links - 1) : null;
    default:
      return null;
  }
}

function sizeOf(test: Expr, subject: Expr): boolean {
  if (test.kind === 'or') return test.args.every((t) => sizeOf(t, subject));
  if (test.kind === 'and') {
    const [finite, beyond] = test.args;
    return finite?.kind === 'call' && beyond !== undefined && sizeOf(beyond, subject);
  }
  if (test.kind !== 'operation' || !['<', '>'].includes(test.definition.name)) return false;
  const measured = test.left?.kind === 'call' ? test.left.args[0] : test.left;
  return test.right.kind === 'parameter' && measured === subject;
}

/** True if `e` is a CASE that replaces a number with NaN if it is too large to be summed or multiplied. */
export function isSized(e: Expr): boolean {
  if (e.kind !== 'case' || e.arms.length !== 1) return false;
  const [arm] = e.arms;
  return arm?.result.kind === 'parameter' && arm.when.kind === 'or' && sizeOf(arm.when, e.otherwise);
}

/** Returns the number of factors or terms of a product or sum; null if one of them is not bounded. */
export function sizedNumbers(e: Expr): number | null {
  if (isSized(e)) return 1;
  if (e.kind !== 'operation' || e.left === null || !['+', '-', '*'].includes(e.definition.name)) return null;
  if (!needsSize(e.type) || e.left.type !== e.type || e.right.type !== e.type) return null;
  const [left, right] = [sizedNumbers(e.left), sizedNumbers(e.right)];
  return left === null || right === null ? null : left + right;
}

/** True if a number of this type may need a bound. */
export function needsSize(type: TypeName): boolean {
  return type === 'numeric' || type === 'float4' || type === 'float8';
}
