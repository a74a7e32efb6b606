import type { A_Const } from '@pgsql/types';
import type { LiteralValue, Slot } from '../plan/plan.js';
import type { ScalarType, TypeName } from '../types/types.js';
import { wasRead } from './ast.js';

/** A question about a literal's text, whose outcome is all that the plan depends on. */
export type LiteralTest = (text: string) => boolean;

/** The text on its way into a slot. INVARIANT: nothing that makes a plan decides by it. */
export let carriedText: (literal: WrittenLiteral) => string;

/**
 * A literal as binding sees it. Its text goes into a slot unseen; who looks at it says so, by `read` or by `holds`.
 * What nobody has looked at may be another value of the same class, and the plan stays the same.
 */
export class WrittenLiteral {
  readonly #text: string;
  readonly #node: A_Const | null;
  readonly #tests: { readonly holds: LiteralTest; readonly outcome: boolean }[] = [];
  #read = false;

  /** `node` is the constant of the caller's text; null for a value of our own making. */
  constructor(text: string, node: A_Const | null) {
    this.#text = text;
    this.#node = node;
  }

  /** The text. The plan depends on it from now on. */
  read(): string {
    this.#read = true;
    return this.#text;
  }

  /** The result of `test`. The plan depends on it from now on, and on nothing else of the text. */
  holds(test: LiteralTest): boolean {
    const outcome = test(this.#text);
    this.#tests.push({ holds: test, outcome });
    return outcome;
  }

  get node(): A_Const | null {
    return this.#node;
  }

  get tests(): readonly { readonly holds: LiteralTest; readonly outcome: boolean }[] {
    return this.#tests;
  }

  /** True if the plan depends on the exact text. */
  get isRead(): boolean {
    return this.#read || (this.#node !== null && wasRead(this.#node));
  }

  static {
    carriedText = (literal) => literal.#text;
  }
}

/** The content of a slot: one literal, or the items of an IN list. */
export type CarriedLiterals = WrittenLiteral | readonly (WrittenLiteral | null)[];

/** True if all of it is in the caller's text. */
function isWritten(value: CarriedLiterals): boolean {
  const parts = value instanceof WrittenLiteral ? [value] : value;
  return parts.every((part) => part === null || part.node !== null);
}

/** The slots that carry literals, with where their values come from. Equal literals of one type share a slot. */
export class LiteralSlots {
  readonly #slots: Slot[];
  readonly #byValue = new Map<string, number>();
  readonly #carried = new Map<number, CarriedLiterals[]>();
  readonly #written: WrittenLiteral[] = [];

  /** `slots` are those of the statement; literals are added to them. */
  constructor(slots: Slot[]) {
    this.#slots = slots;
  }

  /** A literal of the caller's text, at constant `node`. */
  written(text: string, node: A_Const): WrittenLiteral {
    const literal = new WrittenLiteral(text, node);
    this.#written.push(literal);
    return literal;
  }

  /** The slot of `value` as `type`. */
  slotOf(value: CarriedLiterals, type: TypeName): number {
    const plain: LiteralValue =
      value instanceof WrittenLiteral
        ? carriedText(value)
        : Object.freeze(value.map((v) => (v === null ? null : carriedText(v))));
    const key = typeof plain === 'string' ? `${type}:s${plain}` : `${type}:a${JSON.stringify(plain)}`;
    const known = this.#byValue.get(key);
    const slot: Slot = { kind: 'literal', type, value: plain, written: isWritten(value) };
    const index = known ?? this.#slots.push(Object.freeze(slot)) - 1;
    if (known === undefined) this.#byValue.set(key, index);
    const sources = this.#carried.get(index);
    if (sources === undefined) this.#carried.set(index, [value]);
    else sources.push(value);
    return index;
  }

  /** The one literal in slot `index`; null where it carries anything else. */
  literalIn(index: number): WrittenLiteral | null {
    const first = this.#carried.get(index)?.[0];
    return first instanceof WrittenLiteral ? first : null;
  }

  /** The literals in slot `index`, if it carries several. */
  itemsIn(index: number): readonly WrittenLiteral[] {
    const first = this.#carried.get(index)?.[0];
    return first === undefined || first instanceof WrittenLiteral ? [] : first.filter((l) => l !== null);
  }

  /** The value of slot `index`, read; null where it carries no literal. */
  valueOf(index: number): LiteralValue | null {
    const slot = this.#slots[index];
    if (slot?.kind !== 'literal') return null;
    for (const from of this.#carried.get(index) ?? []) {
      for (const literal of from instanceof WrittenLiteral ? [from] : from) literal?.read();
    }
    return slot.value;
  }

  /** Every literal of the caller's text that was bound, a constant that was bound twice twice. */
  get bound(): readonly WrittenLiteral[] {
    return this.#written;
  }

  /** By slot; each entry of one slot has the same value. */
  get carried(): ReadonlyMap<number, readonly CarriedLiterals[]> {
    return this.#carried;
  }
}

const DAY = String.raw`\d{4,6}-\d{2}-\d{2}`;
const CLOCK = String.raw`\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?`;
const OFFSET = String.raw` ?(?:z|utc|gmt|[+-]\d{2}(?::?\d{2})?)`;
const FAR = '[+-]?infinity';

const FORMS: ReadonlyMap<ScalarType, RegExp> = new Map<ScalarType, RegExp>([
  ['date', new RegExp(`^(?:${DAY}|${FAR})$`, 'i')],
  ['time', new RegExp(`^${CLOCK}$`)],
  ['timestamp', new RegExp(`^(?:${DAY}(?:[t ]${CLOCK})?|${FAR})$`, 'i')],
  ['timestamptz', new RegExp(`^(?:${DAY}(?:[t ]${CLOCK}(?:${OFFSET})?)?|${FAR})$`, 'i')],
  // With a minus in front, IntervalStyle decides whether it is that of the first part or of all.
  ['interval', /^(?:[^-]*|[+-]?\d+(?:\.\d+)? *[a-z]+)$/i],
  ['timetz', new RegExp(`^${CLOCK}${OFFSET}$`, 'i')],
  ['money', /^-?\d+(?:\.\d{1,2})?$/],
  ['daterange', spans(DAY)],
  ['tsrange', spans(`"?${DAY}(?:[t ]${CLOCK})?"?`)],
  ['tstzrange', spans(`"?${DAY}[t ]${CLOCK}${OFFSET}"?`)],
  ['datemultirange', /^\{\}$/],
  ['tsmultirange', /^\{\}$/],
  ['tstzmultirange', /^\{\}$/],
]);

/** A range of `ends`, of which either may be missing. */
function spans(ends: string): RegExp {
  return new RegExp(`^(?:empty|[[(](?:${ends})?,(?:${ends})?[\\])])$`, 'i');
}

const DAY_ONLY = new RegExp(`^${DAY}$`);
const NO_OFFSET = new RegExp(`^${DAY}[t ]${CLOCK}$`, 'i');

/**
 * True if Postgres reads `text` as the same value of `type` under every DateStyle and IntervalStyle and, except for a
 * timestamptz without an offset, in every time zone. False for `today` and `now`.
 */
export function isSettingsFree(text: string, type: ScalarType): boolean {
  return FORMS.get(type)?.test(text.trim()) ?? true;
}

/** A literal of type timestamptz that `isSettingsFree`, with UTC's offset where it says none. */
export function withOffset(text: string): string {
  const trimmed = text.trim();
  if (DAY_ONLY.test(trimmed)) return `${trimmed} 00:00:00+00`;
  return NO_OFFSET.test(trimmed) ? `${trimmed}+00` : text;
}

const ISO_DAY = /^\s*(\d{4,})-(\d{1,2})-(\d{1,2})(?=[t\s]|$)/i;
const CLOCK_FIELDS = /(?:^|[t\s])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d*)?)?(?![\d:])/i;

/** False for a date in the order of ISO 8601 that no calendar has. Of other spellings only the database knows. */
export function isPossibleDay(text: string): boolean {
  if (/bc/i.test(text)) return true; // the leap years before our era are counted otherwise
  const [, year, month, day] = (ISO_DAY.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return true;
  return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** False for a text whose hours, minutes or seconds no clock shows. */
export function isPossibleTime(text: string): boolean {
  const [, hour, minute, second] = (CLOCK_FIELDS.exec(text) ?? []).map(Number);
  if (hour === undefined || minute === undefined) return true;
  return hour <= 24 && minute <= 59 && !(second !== undefined && second > 60);
}

export function isPossibleMoment(text: string): boolean {
  return isPossibleDay(text) && isPossibleTime(text);
}
