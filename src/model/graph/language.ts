import {
  FUNCTIONS,
  type FunctionDefinition,
  OPERATORS,
  type OperatorArgument,
  type OperatorDefinition,
  type OperatorSignature,
  SQL_OPERATORS,
} from 'osl-compiler';

/** One function of the language, with all its overloads: `(text, int4) → text`. */
export interface FunctionEntry {
  readonly name: string;
  readonly kind: FunctionDefinition['kind'];
  readonly signatures: readonly string[];
  /** Allowed literals of the first argument, if it is a closed set (the unit of `date_trunc`). */
  readonly units: readonly string[] | null;
}

/** An operator between values (`infix`, `prefix`), or one over the passages of RETRIEVE. */
export interface OperatorEntry {
  readonly name: string;
  readonly class: 'infix' | 'prefix' | 'encoder' | 'decoder';
  readonly signatures: readonly string[];
  /** False for a decoder if no language model is configured. */
  readonly available: boolean;
}

/** All functions of OSL-SQL. COUNT(*), MEASURE, COALESCE, CASE and the like are grammar. */
export function functionEntries(): readonly FunctionEntry[] {
  return grouped(FUNCTIONS, (f) => `${f.kind} ${f.name}`, functionSignature).map(([first, signatures]) => {
    const units = first.structural.get(0);
    return { name: first.name, kind: first.kind, signatures, units: units === undefined ? null : [...units] };
  });
}

function functionSignature(f: FunctionDefinition): string {
  const args: string[] = [...f.arguments];
  if (f.variadic !== null) args.push(`${f.variadic}…`);
  return `(${args.join(', ')}) → ${f.result}`;
}

/** Operators between values, then those over passages. */
export function operatorEntries(hasDecoder: boolean): readonly OperatorEntry[] {
  const values = grouped(SQL_OPERATORS, (o) => `${o.left === null} ${o.name}`, operatorSignature);
  return [
    ...values.map(([first, signatures]): OperatorEntry => {
      const kind = first.left === null ? 'prefix' : 'infix';
      return { name: first.name, class: kind, signatures, available: true };
    }),
    ...Object.entries(OPERATORS).map(([name, signature]): OperatorEntry => {
      const available = signature.class === 'encoder' || hasDecoder;
      return { name, class: signature.class, signatures: [passageSignature(signature)], available };
    }),
  ];
}

function operatorSignature({ left, right, result }: OperatorDefinition): string {
  return left === null ? `(${right}) → ${result}` : `(${left}, ${right}) → ${result}`;
}

function passageSignature({ arguments: args, result, resultWith, nullable }: OperatorSignature): string {
  const list = ['text', ...args.map(argumentText)].join(', ');
  const other = resultWith === null ? '' : `, ${resultWith.type} with ${resultWith.argument}`;
  return `(${list}) → ${result}${other}${nullable ? ' or NULL' : ''}`;
}

/** `[reference text]`, `[threshold => float8 from -1 to 1 = 0.2]`. */
function argumentText(a: OperatorArgument): string {
  const bounds = a.min === null || a.max === null ? '' : ` from ${a.min} to ${a.max}`;
  const preset = a.default === null ? '' : ` = ${a.default}`;
  const name = a.positional ? a.name : `${a.name} =>`;
  return `[${name} ${a.type}${bounds}${preset}]`;
}

/** `all` grouped by key, in order of first occurrence, each with the texts of its members. */
function grouped<T>(
  all: readonly T[],
  key: (one: T) => string,
  text: (one: T) => string,
): readonly (readonly [T, readonly string[]])[] {
  const groups = new Map<string, [T, string[]]>();
  for (const one of all) {
    const known = groups.get(key(one));
    if (known === undefined) groups.set(key(one), [one, [text(one)]]);
    else known[1].push(text(one));
  }
  return [...groups.values()];
}
