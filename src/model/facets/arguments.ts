import { OPERATORS, type OperatorArgument, type OperatorName } from 'osl-compiler';

/** A label with its description and examples. */
export interface Label {
  readonly label: string;
  readonly description: string | null;
  readonly examples: readonly string[];
}

/** Argument values by name: numbers, texts, arrays, parsed jsonb; null if absent. */
export type ArgumentValues = Readonly<Record<string, unknown>>;

/** Checked values by argument name, with defaults filled in. */
export type CheckedArguments = ReadonlyMap<string, unknown>;

const MOST_LABELS = 1_000;
const MOST_EXAMPLES = 1_000;
const LONGEST_TEXT = 20_000;
const LARGEST_SCHEMA = 16_384;

/** An invalid operator argument. `message` is one sentence for the caller and contains no row data. */
export class InvalidArgument extends Error {
  override readonly name = 'InvalidArgument';

  constructor(operator: string, what: string) {
    super(`${operator} ${what}`);
  }
}

/** @throws InvalidArgument if an argument is unknown, missing, of the wrong type, or out of bounds */
export function checkArguments(operator: OperatorName, values: ArgumentValues): CheckedArguments {
  const declared = OPERATORS[operator].arguments;
  for (const name of Object.keys(values)) {
    if (!declared.some((a) => a.name === name))
      throw new InvalidArgument(operator, `has no argument \`${name}\``);
  }
  const checked = new Map<string, unknown>();
  for (const a of declared) {
    const value = values[a.name] ?? null;
    if (value === null && a.worked) throw new InvalidArgument(operator, `needs \`${a.name}\``);
    checked.set(a.name, value === null ? a.default : checkValue(operator, a, value));
  }
  if (operator === 'SCORE' && !(number(checked, 'min') < number(checked, 'max'))) {
    throw new InvalidArgument(operator, 'needs a `min` below its `max`');
  }
  if (operator === 'COMPLETE' && !String(checked.get('prompt')).includes('{text}')) {
    throw new InvalidArgument(operator, 'needs `{text}` in its prompt, where the passage goes');
  }
  return checked;
}

function checkValue(operator: OperatorName, a: OperatorArgument, value: unknown): unknown {
  switch (a.type) {
    case 'text':
      if (typeof value !== 'string' || value.trim() === '')
        throw new InvalidArgument(operator, `needs a text as \`${a.name}\``);
      if (value.length > LONGEST_TEXT) {
        throw new InvalidArgument(operator, `takes ${LONGEST_TEXT} characters at most as \`${a.name}\``);
      }
      return value;
    case 'int4':
    case 'float8':
      return checkNumber(operator, a, value);
    case 'labels':
      return checkLabels(operator, value);
    case 'schema':
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        throw new InvalidArgument(operator, `needs a JSON object as \`${a.name}\``);
      }
      if (JSON.stringify(value).length > LARGEST_SCHEMA)
        throw new InvalidArgument(operator, `got too large a \`${a.name}\``);
      return value;
  }
}

function checkNumber(operator: OperatorName, a: OperatorArgument, value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new InvalidArgument(operator, `needs a number as \`${a.name}\``);
  if (a.type === 'int4' && !Number.isInteger(value))
    throw new InvalidArgument(operator, `needs a whole number as \`${a.name}\``);
  if ((a.min !== null && value < a.min) || (a.max !== null && value > a.max)) {
    throw new InvalidArgument(operator, `needs a \`${a.name}\` from ${a.min} to ${a.max}`);
  }
  return value;
}

function checkLabels(operator: OperatorName, value: unknown): readonly Label[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new InvalidArgument(operator, 'needs a list of labels');
  if (value.length > MOST_LABELS) throw new InvalidArgument(operator, `takes ${MOST_LABELS} labels at most`);
  const labels = value.map((item) => labelOf(operator, item));
  const seen = new Set<string>();
  for (const { label } of labels) {
    if (seen.has(label)) throw new InvalidArgument(operator, `has label \`${label}\` twice`);
    seen.add(label);
  }
  return labels;
}

function labelOf(operator: OperatorName, item: unknown): Label {
  if (typeof item === 'string') return { label: labelText(operator, item), description: null, examples: [] };
  if (typeof item !== 'object' || item === null)
    throw new InvalidArgument(operator, 'needs labels that are texts or objects');
  const fields = new Map<string, unknown>(Object.entries(item));
  for (const name of fields.keys()) {
    if (!['label', 'description', 'examples'].includes(name))
      throw new InvalidArgument(operator, `knows no \`${name}\` of a label`);
  }
  const label = labelText(operator, fields.get('label'));
  const description = fields.get('description') ?? null;
  const examples = fields.get('examples') ?? [];
  if (description !== null && !isShort(description))
    throw new InvalidArgument(operator, 'needs a text as `description`');
  if (!Array.isArray(examples) || examples.length > MOST_EXAMPLES || !examples.every(isShort)) {
    throw new InvalidArgument(operator, 'needs a list of texts as `examples`');
  }
  return { label, description, examples };
}

function labelText(operator: OperatorName, value: unknown): string {
  if (isShort(value) && value.trim() !== '') return value;
  throw new InvalidArgument(operator, 'needs labels that are texts, and not empty');
}

function isShort(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_TEXT;
}

/** Returns a numeric argument set by `checkArguments`; NaN if it is absent. */
export function number(checked: CheckedArguments, name: string): number {
  const value = checked.get(name);
  return typeof value === 'number' ? value : Number.NaN;
}

/** Returns a text argument set by `checkArguments`; null if it is absent. */
export function text(checked: CheckedArguments, name: string): string | null {
  const value = checked.get(name);
  return typeof value === 'string' ? value : null;
}

export function labels(checked: CheckedArguments): readonly Label[] {
  return checked.get('labels') as readonly Label[]; // cast: set by `checkArguments`
}
