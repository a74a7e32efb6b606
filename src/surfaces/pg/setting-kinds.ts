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
    more: { readonly detail?: string; readonly hint?: string } = {},
  ) {
    super(postgresMessage ?? 'invalid value');
    this.postgresMessage = postgresMessage;
    this.detail = more.detail;
    this.hint = more.hint;
  }
}

/** Defines which values a setting accepts. */
export interface SettingKind {
  readonly accept: (text: string, before: string, name: string) => string;
  /**
   * True for free text. For such settings Postgres reports errors under the setting's own name, for others under the
   * client's spelling.
   */
  readonly text?: true;
  readonly shown?: (value: string) => string;
}

export const anything: SettingKind = { accept: (text) => text, text: true };

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
  accept: (text, _before, name) => {
    const given = text.toLowerCase();
    const found = BOOLEANS.find(([word, least]) => given.length >= least && word.startsWith(given));
    if (found === undefined) throw new ValueFault(`parameter "${name}" requires a Boolean value`);
    return found[2];
  },
};

/** Accepts one of `values`, ignoring case; the hint of the error lists them all. */
export function oneOf(...values: readonly string[]): SettingKind {
  return {
    accept: (text) => {
      const found = values.find((v) => v.toLowerCase() === text.toLowerCase());
      if (found === undefined)
        throw new ValueFault(null, { hint: `Available values: ${values.join(', ')}.` });
      return found;
    },
  };
}

/** Accepts one of `values`, with Boolean words as aliases for `on` and `off`. */
export function oneOfOrBool(...values: readonly string[]): SettingKind {
  const named = oneOf(...values);
  const alias = new Map(BOOLEANS.map(([word, , value]) => [word, value]));
  return {
    accept: (text, before, name) => named.accept(alias.get(text.toLowerCase()) ?? text, before, name),
  };
}

/** Restricts a kind to the values that this server can honour; other values are refused rather than ignored. */
export function only(kind: SettingKind, ...kept: readonly string[]): SettingKind {
  return {
    ...kind,
    accept: (text, before, name) => {
      const value = kind.accept(text, before, name);
      if (!kept.includes(value))
        throw new ValueFault(`parameter "${name}" cannot be "${value}" on this server`, {
          hint: `Available values: ${kept.join(', ')}.`,
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
    accept: (text, _before, name) => {
      const value = roundEven(measured(text, unit, true));
      if (Math.abs(value) > MAX_INT) throw new ValueFault(null, { hint: 'Value exceeds integer range.' });
      const shown = unit === undefined ? `${value}` : `${value} ${unit}`;
      if (value < min || value > max)
        throw new ValueFault(
          `${shown} is outside the valid range for parameter "${name}" (${min} .. ${max})`,
        );
      return String(value);
    },
    shown: (value) => withUnit(Number(value), unit),
  };
}

export function real({ unit, min, max }: SettingRange): SettingKind {
  return {
    accept: (text, _before, name) => {
      const value = measured(text, unit);
      const shown = unit === undefined ? `${brief(value)}` : `${brief(value)} ${unit}`;
      if (value < min || value > max)
        throw new ValueFault(
          `${shown} is outside the valid range for parameter "${name}" (${brief(min)} .. ${brief(max)})`,
        );
      return brief(value);
    },
    shown: (value) => withUnit(Number(value), unit),
  };
}

/** Converts `text` to a number in `unit`. Integers may be octal, as in C. @throws ValueFault */
function measured(text: string, unit: Unit | undefined, whole = false): number {
  const parts =
    /^\s*([+-]?(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))(.*)$/s.exec(text);
  const [, digits = '', rest = ''] = parts ?? [];
  if (parts === null) throw new ValueFault(null);
  const suffix = rest.trim();
  const number = numberOf(digits, whole);
  if (suffix === '') return number;
  if (unit === undefined) throw new ValueFault(null);
  const units = TIME.has(unit) ? TIME : MEMORY;
  const factor = suffix === '8kB' ? undefined : units.get(suffix);
  if (factor === undefined) throw new ValueFault(null, { hint: units === TIME ? TIME_HINT : MEMORY_HINT });
  return (number * factor) / (units.get(unit) ?? 1);
}

function numberOf(digits: string, whole: boolean): number {
  const bare = digits.replace(/^[+-]/, '');
  const value = whole && /^0[0-7]+$/.test(bare) ? Number.parseInt(bare, 8) : Number(bare);
  return digits.startsWith('-') ? -value : value;
}

/** Rounds half to even, like C's `rint`. */
function roundEven(value: number): number {
  const rounded = Math.round(value);
  return (Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded) + 0;
}

/** Formats a value in the largest unit that keeps it an integer: `5000` ms becomes `5s`. */
function withUnit(value: number, unit: Unit | undefined): string {
  if (unit === undefined || value <= 0) return brief(value);
  const units = TIME.has(unit) ? TIME : MEMORY;
  const base = value * (units.get(unit) ?? 1);
  const fitting = [...units].filter(([name, size]) => name !== '8kB' && Number.isInteger(base / size));
  const [name, size] = fitting.at(-1) ?? [unit, units.get(unit) ?? 1];
  return `${brief(base / size)}${name}`;
}

/** Formats a number like C's `%g`. */
function brief(value: number): string {
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
 * Returns the canonical DateStyle after SET to `text`, where `before` is the previous value: `German` gives `German,
 * DMY`; `dmy` keeps the style.
 *
 * @throws ValueFault
 */
export function dateStyle(text: string, before: string, byDefault: string): string {
  const [style = '', order = ''] = before.split(', ');
  const chosen = { style: null as string | null, order: null as string | null };
  // Repeated words are allowed.
  for (const part of new Set(text.split(','))) {
    const word = part
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .toLowerCase();
    if (word === 'default') {
      const [s = '', o = ''] = byDefault.split(', ');
      chosen.style ??= s;
      chosen.order ??= o;
      continue;
    }
    const named = STYLES.find(([form]) => form.test(word))?.[1] ?? null;
    const ordered = ORDERS.find(([form]) => form.test(word))?.[1] ?? null;
    if (named === null && ordered === null)
      throw new ValueFault(null, { detail: `Unrecognized key word: "${word}".` });
    if (conflicts(chosen.style, named) || conflicts(chosen.order, ordered))
      throw new ValueFault(null, { detail: 'Conflicting "datestyle" specifications.' });
    chosen.style ??= named;
    chosen.order ??= ordered;
  }
  return `${chosen.style ?? style}, ${chosen.order ?? (chosen.style === 'German' ? 'DMY' : order)}`;
}

function conflicts(before: string | null, now: string | null): boolean {
  return before !== null && now !== null && before !== now;
}

/** Schemas that do not exist here but are accepted, since Postgres ignores missing schemas in the path. */
const ABSENT_SCHEMAS: ReadonlySet<string> = new Set(['public', '$user']);
const LONGEST_PATH = 1_000;
const SCHEMA_LIST = /^\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*(?:,\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*)*$/;

/**
 * Accepts schema lists in which `entities` is the only existing schema; any other list would change the meaning of
 * names.
 */
export const searchPath: SettingKind = {
  accept: (text) => {
    const named =
      text.length <= LONGEST_PATH && SCHEMA_LIST.test(text)
        ? (text.match(/"(?:[^"]|"")+"|[^\s",]+/g) ?? []).map((n) =>
            n.startsWith('"') ? n.slice(1, -1).replaceAll('""', '"') : n.toLowerCase(),
          )
        : [];
    if (!named.includes('entities') || named.some((n) => n !== 'entities' && !ABSENT_SCHEMAS.has(n)))
      throw new ValueFault('parameter "search_path" cannot be another than "entities" on this server', {
        hint: 'Available values: entities, beside it "$user" and public.',
      });
    return text;
  },
};

/** Accepts an encoding and stores it under Postgres' name; the wire protocol converts the text. */
export const encoding: SettingKind = {
  accept: (text) => {
    const known = encodingName(text);
    if (known === null) throw new ValueFault(null);
    return known;
  },
  text: true,
};

const LONGEST_TEXT = 256;

/** Checks only the form: the policy decides for each query which purposes the caller may use. */
export const purpose: SettingKind = {
  accept: (text) => {
    if (text.length > LONGEST_TEXT || /[\p{Cc}\p{Cs}]/u.test(text)) throw new ValueFault(null);
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
  accept: (text, before, name) => {
    bool.accept(text, before, name);
    return 'on';
  },
};
