import { encodingName } from '../../../wire/index.js';
import { isTask } from '../../ask/index.js';

/** Error for an invalid value, with Postgres' message if it differs from the usual one. */
export class ValueFault extends Error {
  /** Postgres' message; null for the usual `invalid value for parameter …`. */
  readonly postgresMessage: string | null;
  readonly detail: string | undefined;
  readonly hint: string | undefined;

  constructor(
    postgresMessage: string | null,
    fields: { readonly detail?: string; readonly hint?: string } = {},
  ) {
    super(postgresMessage ?? 'invalid value');
    this.postgresMessage = postgresMessage;
    this.detail = fields.detail;
    this.hint = fields.hint;
  }
}

/** Defines which values a setting accepts. */
export interface SettingKind {
  readonly accept: (text: string, previous: string, name: string) => string;
  /**
   * True for free text. For such settings Postgres reports errors under the setting's own name, for others under the
   * client's spelling.
   */
  readonly text?: true;
  readonly display?: (value: string) => string;
}

export const anyText: SettingKind = { accept: (text) => text, text: true };

const BOOLEANS: readonly (readonly [word: string, least: number, value: 'on' | 'off'])[] = [
  ['true', 1, 'on'],
  ['false', 1, 'off'],
  ['yes', 1, 'on'],
  ['no', 1, 'off'],
  ['on', 2, 'on'],
  ['off', 2, 'off'],
  ['1', 1, 'on'],
  ['0', 1, 'off'],
];

/** Accepts Boolean words and their unambiguous prefixes, like Postgres. */
export const bool: SettingKind = {
  accept: (text, _previous, name) => {
    const lowerText = text.toLowerCase();
    const match = BOOLEANS.find(
      ([word, minLength]) => lowerText.length >= minLength && word.startsWith(lowerText),
    );
    if (match === undefined) throw new ValueFault(`parameter "${name}" requires a Boolean value`);
    return match[2];
  },
};

/** Accepts one of `values`, ignoring case; the hint of the error lists them all. */
export function oneOf(...values: readonly string[]): SettingKind {
  return {
    accept: (text) => {
      const match = values.find((v) => v.toLowerCase() === text.toLowerCase());
      if (match === undefined)
        throw new ValueFault(null, { hint: `Available values: ${values.join(', ')}.` });
      return match;
    },
  };
}

/** Accepts one of `values`, with Boolean words as aliases for `on` and `off`. */
export function oneOfOrBool(...values: readonly string[]): SettingKind {
  const kind = oneOf(...values);
  const alias = new Map(BOOLEANS.map(([word, , value]) => [word, value]));
  return {
    accept: (text, previous, name) => kind.accept(alias.get(text.toLowerCase()) ?? text, previous, name),
  };
}

/** Restricts a kind to the values that this server can honour; other values are refused rather than ignored. */
export function onlyValues(kind: SettingKind, ...allowed: readonly string[]): SettingKind {
  return {
    ...kind,
    accept: (text, previous, name) => {
      const value = kind.accept(text, previous, name);
      if (!allowed.includes(value))
        throw new ValueFault(`parameter "${name}" cannot be "${value}" on this server`, {
          hint: `Available values: ${allowed.join(', ')}.`,
        });
      return value;
    },
  };
}

type Unit = 'us' | 'ms' | 's' | 'min' | 'h' | 'd' | 'B' | 'kB' | '8kB' | 'MB' | 'GB' | 'TB';

const TIME: ReadonlyMap<string, number> = new Map([
  ['us', 1e-3],
  ['ms', 1],
  ['s', 1e3],
  ['min', 60e3],
  ['h', 3_600e3],
  ['d', 86_400e3],
]);
const MEMORY: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['kB', 1_024],
  ['8kB', 8_192],
  ['MB', 1_024 ** 2],
  ['GB', 1_024 ** 3],
  ['TB', 1_024 ** 4],
]);
const TIME_HINT = 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".';
const MEMORY_HINT = 'Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".';

interface SettingRange {
  readonly unit?: Unit;
  readonly min: number;
  readonly max: number;
}

const MAX_INT = 2_147_483_647;

/** Accepts integers such as `16`, `0x10` or `1.5GB`, rounded to the setting's unit. */
export function integer({ unit, min, max }: SettingRange): SettingKind {
  return {
    accept: (text, _previous, name) => {
      const value = roundEven(parseNumber(text, unit, true));
      if (Math.abs(value) > MAX_INT) throw new ValueFault(null, { hint: 'Value exceeds integer range.' });
      const displayed = unit === undefined ? `${value}` : `${value} ${unit}`;
      if (value < min || value > max)
        throw new ValueFault(
          `${displayed} is outside the valid range for parameter "${name}" (${min} .. ${max})`,
        );
      return String(value);
    },
    display: (value) => withUnit(Number(value), unit),
  };
}

export function real({ unit, min, max }: SettingRange): SettingKind {
  return {
    accept: (text, _previous, name) => {
      const value = parseNumber(text, unit);
      const displayed = unit === undefined ? `${formatNumber(value)}` : `${formatNumber(value)} ${unit}`;
      if (value < min || value > max)
        throw new ValueFault(
          `${displayed} is outside the valid range for parameter "${name}" (${formatNumber(min)} .. ${formatNumber(max)})`,
        );
      return formatNumber(value);
    },
    display: (value) => withUnit(Number(value), unit),
  };
}

/** Converts `text` to a number in `unit`. Integers may be octal, as in C. @throws ValueFault */
function parseNumber(text: string, unit: Unit | undefined, allowOctal = false): number {
  const parts =
    /^\s*([+-]?(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))(.*)$/s.exec(text);
  const [, digits = '', rest = ''] = parts ?? [];
  if (parts === null) throw new ValueFault(null);
  const suffix = rest.trim();
  const number = numberOf(digits, allowOctal);
  if (suffix === '') return number;
  if (unit === undefined) throw new ValueFault(null);
  const units = TIME.has(unit) ? TIME : MEMORY;
  const factor = suffix === '8kB' ? undefined : units.get(suffix);
  if (factor === undefined) throw new ValueFault(null, { hint: units === TIME ? TIME_HINT : MEMORY_HINT });
  return (number * factor) / (units.get(unit) ?? 1);
}

function numberOf(digits: string, allowOctal: boolean): number {
  const unsigned = digits.replace(/^[+-]/, '');
  const value = allowOctal && /^0[0-7]+$/.test(unsigned) ? Number.parseInt(unsigned, 8) : Number(unsigned);
  return digits.startsWith('-') ? -value : value;
}

/** Rounds half to even, like C's `rint`. */
function roundEven(value: number): number {
  const rounded = Math.round(value);
  return (Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded) + 0;
}

/** Formats a value in the largest unit that keeps it an integer: `5000` ms becomes `5s`. */
function withUnit(value: number, unit: Unit | undefined): string {
  if (unit === undefined || value <= 0) return formatNumber(value);
  const units = TIME.has(unit) ? TIME : MEMORY;
  const base = value * (units.get(unit) ?? 1);
  const fittingUnits = [...units].filter(([name, size]) => name !== '8kB' && Number.isInteger(base / size));
  const [name, size] = fittingUnits.at(-1) ?? [unit, units.get(unit) ?? 1];
  return `${formatNumber(base / size)}${name}`;
}

/** Formats a number like C's `%g`. */
function formatNumber(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) <= MAX_INT) return String(value);
  const digits = Math.abs(value) < 1e-4 ? value.toExponential(5) : value.toPrecision(6);
  return digits
    .replace(/(\.\d*?)0+(?=e|$)/, '$1')
    .replace(/\.(?=e|$)/, '')
    .replace(/e([+-])(\d)$/, 'e$10$2');
}

const STYLES: readonly (readonly [RegExp, style: string])[] = [
  [/^iso$/, 'ISO'],
  [/^sql$/, 'SQL'],
  [/^postgres/, 'Postgres'],
  [/^german$/, 'German'],
];
const ORDERS: readonly (readonly [RegExp, order: string])[] = [
  [/^ymd$/, 'YMD'],
  [/^(dmy$|euro)/, 'DMY'],
  [/^(mdy$|us$|noneuro)/, 'MDY'],
];

/**
 * Returns the canonical DateStyle after SET to `text`, where `previous` is the previous value: `German` gives `German,
 * DMY`; `dmy` keeps the style.
 *
 * @throws ValueFault
 */
export function dateStyle(text: string, previous: string, defaultStyle: string): string {
  const [style = '', order = ''] = previous.split(', ');
  const chosen = { style: null as string | null, order: null as string | null };
  // Repeated words are allowed.
  for (const part of new Set(text.split(','))) {
    const word = part
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .toLowerCase();
    if (word === 'default') {
      const [s = '', o = ''] = defaultStyle.split(', ');
      chosen.style ??= s;
      chosen.order ??= o;
      continue;
    }
    const namedStyle = STYLES.find(([form]) => form.test(word))?.[1] ?? null;
    const namedOrder = ORDERS.find(([form]) => form.test(word))?.[1] ?? null;
    if (namedStyle === null && namedOrder === null)
      throw new ValueFault(null, { detail: `Unrecognized key word: "${word}".` });
    if (conflicts(chosen.style, namedStyle) || conflicts(chosen.order, namedOrder))
      throw new ValueFault(null, { detail: 'Conflicting "datestyle" specifications.' });
    chosen.style ??= namedStyle;
    chosen.order ??= namedOrder;
  }
  return `${chosen.style ?? style}, ${chosen.order ?? (chosen.style === 'German' ? 'DMY' : order)}`;
}

function conflicts(previous: string | null, current: string | null): boolean {
  return previous !== null && current !== null && previous !== current;
}

/** Schemas that do not exist here but are accepted, since Postgres ignores missing schemas in the path. */
const ABSENT_SCHEMAS: ReadonlySet<string> = new Set(['public', '$user']);
const MAX_PATH_LENGTH = 1_000;
const SCHEMA_LIST = /^\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*(?:,\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*)*$/;

/**
 * Accepts schema lists in which `entities` is the only existing schema; any other list would change the meaning of
 * names.
 */
export const searchPath: SettingKind = {
  accept: (text) => {
    const schemas =
      text.length <= MAX_PATH_LENGTH && SCHEMA_LIST.test(text)
        ? (text.match(/"(?:[^"]|"")+"|[^\s",]+/g) ?? []).map((n) =>
            n.startsWith('"') ? n.slice(1, -1).replaceAll('""', '"') : n.toLowerCase(),
          )
        : [];
    if (!schemas.includes('entities') || schemas.some((n) => n !== 'entities' && !ABSENT_SCHEMAS.has(n)))
      throw new ValueFault('parameter "search_path" must be "entities" on this server', {
        hint: 'Available values: entities, beside it "$user" and public.',
      });
    return text;
  },
};

/** Accepts an encoding and stores it under Postgres' name; the wire protocol converts the text. */
export const encoding: SettingKind = {
  accept: (text) => {
    const canonicalName = encodingName(text);
    if (canonicalName === null) throw new ValueFault(null);
    return canonicalName;
  },
  text: true,
};

const MAX_TEXT_LENGTH = 256;

/** Checks only the form: the policy decides for each query which purposes the caller may use. */
export const purpose: SettingKind = {
  accept: (text) => {
    if (text.length > MAX_TEXT_LENGTH || /[\p{Cc}\p{Cs}]/u.test(text)) throw new ValueFault(null);
    return text;
  },
  text: true,
};

export const task: SettingKind = {
  accept: (text) => {
    if (text !== '' && !isTask(text)) throw new ValueFault(null);
    return text;
  },
  text: true,
};

/** READ WRITE is accepted without effect: many clients send it by default, and writes are refused anyway. */
export const readOnly: SettingKind = {
  accept: (text, previous, name) => {
    bool.accept(text, previous, name);
    return 'on';
  },
};
