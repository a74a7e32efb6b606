import type { A_Const } from '@pgsql/types';
import type { ErrorName, ErrorParameters, QueryError } from '../errors/errors.js';
import type { LiteralValue, Parameter, Slot } from '../plan/plan.js';
import type { DeclaredType } from '../types/declared-types.js';
import { oidOf, type ScalarType, type TypeName } from '../types/types.js';
import { type Location, wasRead } from './ast.js';

/** A test of a literal's text. If only tests are applied to a literal, the plan depends only on their outcomes. */
export type LiteralTest = (text: string) => boolean;

/**
 * Returns a literal's text without recording the read; used to fill slots. INVARIANT: no decision about the plan may
 * use this text.
 */
export let carriedText: (literal: WrittenLiteral) => string;

/**
 * A literal during binding. Code whose decisions depend on the text must use `read` or `holds`, which record the
 * dependency. A literal that was not read can be replaced by any other of its lexical class for which the recorded tests
 * have the same outcomes, without changing the plan.
 */
export class WrittenLiteral {
  readonly #text: string;
  readonly #node: A_Const | null;
  readonly #tests: { readonly holds: LiteralTest; readonly outcome: boolean }[] = [];
  #read = false;

  /** @param node the constant in the caller's text; null for values that the compiler adds */
  constructor(text: string, node: A_Const | null) {
    this.#text = text;
    this.#node = node;
  }

  /** Returns the text, which makes the plan depend on it. */
  read(): string {
    this.#read = true;
    return this.#text;
  }

  /** Returns the outcome of `test`, which makes the plan depend on the outcome but not on the text itself. */
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

  get isRead(): boolean {
    return this.#read || (this.#node !== null && wasRead(this.#node));
  }

  static {
    carriedText = (literal) => literal.#text;
  }
}

/** The content of a slot: one literal, or the items of an IN list. */
export type CarriedLiterals = WrittenLiteral | readonly (WrittenLiteral | null)[];

function isWritten(value: CarriedLiterals): boolean {
  const parts = value instanceof WrittenLiteral ? [value] : value;
  return parts.every((part) => part === null || part.node !== null);
}

/** Slots of literals, with the origin of each literal. Equal literals of the same type share a slot. */
export class LiteralSlots {
  readonly #slots: Slot[];
  /** Slots by type and value, separately for single values and for lists, which are keyed by their JSON. */
  readonly #singles = new Map<TypeName, Map<string, number>>();
  readonly #lists = new Map<TypeName, Map<string, number>>();
  readonly #carried = new Map<number, CarriedLiterals[]>();
  readonly #written: WrittenLiteral[] = [];

  /** @param slots the statement's slots, to which literals are appended */
  constructor(slots: Slot[]) {
    this.#slots = slots;
  }

  written(text: string, node: A_Const): WrittenLiteral {
    const literal = new WrittenLiteral(text, node);
    this.#written.push(literal);
    return literal;
  }

  slotOf(value: CarriedLiterals, type: TypeName): number {
    const plain: LiteralValue =
      value instanceof WrittenLiteral
        ? carriedText(value)
        : Object.freeze(value.map((v) => (v === null ? null : carriedText(v))));
    const [byType, key] =
      typeof plain === 'string' ? [this.#singles, plain] : [this.#lists, JSON.stringify(plain)];
    const byValue = byType.get(type) ?? new Map<string, number>();
    if (byValue.size === 0) byType.set(type, byValue);
    const known = byValue.get(key);
    const slot = (): Slot =>
      Object.freeze({ kind: 'literal', type, value: plain, written: isWritten(value) });
    const index = known ?? this.#slots.push(slot()) - 1;
    if (known === undefined) byValue.set(key, index);
    const sources = this.#carried.get(index);
    if (sources === undefined) this.#carried.set(index, [value]);
    else sources.push(value);
    return index;
  }

  literalIn(index: number): WrittenLiteral | null {
    const first = this.#carried.get(index)?.[0];
    return first instanceof WrittenLiteral ? first : null;
  }

  itemsIn(index: number): readonly WrittenLiteral[] {
    const first = this.#carried.get(index)?.[0];
    return first === undefined || first instanceof WrittenLiteral ? [] : first.filter((l) => l !== null);
  }

  /** Returns the value of slot `index` and marks it as read; null if the slot holds no literal. */
  valueOf(index: number): LiteralValue | null {
    const slot = this.#slots[index];
    if (slot?.kind !== 'literal') return null;
    for (const from of this.#carried.get(index) ?? []) {
      for (const literal of from instanceof WrittenLiteral ? [from] : from) literal?.read();
    }
    return slot.value;
  }

  /** All literals in the caller's text. A constant that is bound twice appears twice. */
  get bound(): readonly WrittenLiteral[] {
    return this.#written;
  }

  /** Literals by slot. All entries of a slot have the same value. */
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
  // IntervalStyle decides whether a leading minus applies to the first field only or to all fields.
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

function spans(ends: string): RegExp {
  return new RegExp(`^(?:empty|[[(](?:${ends})?,(?:${ends})?[\\])])$`, 'i');
}

const DAY_ONLY = new RegExp(`^${DAY}$`);
const NO_OFFSET = new RegExp(`^${DAY}[t ]${CLOCK}$`, 'i');

/**
 * True if Postgres parses `text` to the same value of `type` under all settings of DateStyle and IntervalStyle, and in
 * all time zones (except for a timestamptz without an offset). False for `today` and `now`.
 */
export function isSettingsFree(text: string, type: ScalarType): boolean {
  return FORMS.get(type)?.test(text.trim()) ?? true;
}

/** Adds the UTC offset to a timestamptz literal without one. Requires `isSettingsFree`. */
export function withOffset(text: string): string {
  const trimmed = text.trim();
  if (DAY_ONLY.test(trimmed)) return `${trimmed} 00:00:00+00`;
  return NO_OFFSET.test(trimmed) ? `${trimmed}+00` : text;
}

const ISO_DAY = /^\s*(\d{4,})-(\d{1,2})-(\d{1,2})(?=[t\s]|$)/i;
const CLOCK_FIELDS = /(?:^|[t\s])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d*)?)?(?![\d:])/i;

/** False for an ISO 8601 date that does not exist. Other date formats are left to the database. */
export function isPossibleDay(text: string): boolean {
  if (/bc/i.test(text)) return true; // years before 1 have a different leap year rule
  const [, year, month, day] = (ISO_DAY.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return true;
  return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** False if hours, minutes or seconds are out of range. */
export function isPossibleTime(text: string): boolean {
  const [, hour, minute, second] = (CLOCK_FIELDS.exec(text) ?? []).map(Number);
  if (hour === undefined || minute === undefined) return true;
  return hour <= 24 && minute <= 59 && !(second !== undefined && second > 60);
}

export function isPossibleMoment(text: string): boolean {
  return isPossibleDay(text) && isPossibleTime(text);
}

type MakeError = <N extends ErrorName>(name: N, parameters: ErrorParameters<N>, at: Location) => QueryError;

/** Types and slots of the client's `$1 … $n`. Each type is either declared or determined by the first use. */
export class ClientParameters {
  readonly #declared: readonly (DeclaredType | null)[];
  readonly #slots: Slot[];
  readonly #error: MakeError;
  readonly #types: (TypeName | null)[];
  readonly #slotOf = new Map<number, number>();
  readonly #places = new Map<number, Location>();

  constructor(declared: readonly (DeclaredType | null)[], slots: Slot[], error: MakeError) {
    this.#declared = declared;
    this.#slots = slots;
    this.#error = error;
    this.#types = declared.map((d) => (d === null || d.kind === 'foreign' ? null : d.type));
  }

  /** Returns parameter `$n`, counted from 1. The first use determines its type. */
  parameter(number: number, type: TypeName, location: Location): Parameter {
    const index = number - 1;
    if (number < 1) throw this.#error('syntax', { detail: 'parameters are numbered from $1' }, location);
    if (number > 65_535)
      throw this.#error('tooLarge', { what: 'the parameter number', limit: 65_535 }, location);
    while (this.#types.length < number) this.#types.push(null);
    const known = this.#types[index] ?? type;
    this.#types[index] = known;
    return this.#slotFor(index, known);
  }

  /**
   * Returns the type of `$n`; null if not known yet. @throws QueryError E0511 if the declared type is only allowed in a
   * cast
   */
  typeOf(number: number, location: Location): TypeName | null {
    if (!this.#places.has(number)) this.#places.set(number, location);
    const foreign = this.#foreign(number);
    if (foreign !== null) throw this.#declaredAs(foreign, number, location);
    return this.#types[number - 1] ?? null;
  }

  /**
   * Returns the parameter for `$n::type` if the declared type of `$n` is only allowed in a cast; otherwise null.
   *
   * @throws QueryError E0511 if the cast is not allowed
   */
  castOfForeign(number: number, type: TypeName, location: Location): Parameter | null {
    const foreign = this.#foreign(number);
    if (foreign === null) return null;
    if (!foreign.casts.includes(type)) throw this.#declaredAs(foreign, number, location);
    return this.#slotFor(number - 1, type);
  }

  #foreign(number: number) {
    const declared = this.#declared[number - 1] ?? null;
    return declared?.kind === 'foreign' ? declared : null;
  }

  #declaredAs({ sql, casts }: { sql: string; casts: readonly TypeName[] }, index: number, at: Location) {
    const type = sql.replace('"bit"', 'bit'); // the quotes are for the grammar only
    return this.#error('declaredType', { index, type, cast: casts[0] ?? null }, at);
  }

  #slotFor(index: number, type: TypeName): Parameter {
    const as = this.#declared[index] ?? null;
    const declared = as === null || as.kind === 'model' ? null : as;
    const slot =
      this.#slotOf.get(index) ??
      this.#slots.push(Object.freeze({ kind: 'client', type, index, declared })) - 1;
    this.#slotOf.set(index, slot);
    return Object.freeze({ kind: 'parameter', slot, type });
  }

  /** Returns the type OIDs of `$1 … $n`. @throws QueryError E0511 if a type is undetermined */
  oids(): readonly number[] {
    const oids = this.#types.map((type, i) => {
      const declared = this.#declared[i] ?? null;
      if (declared !== null) return declared.oid;
      if (type === null) throw this.#error('parameterType', { index: i + 1 }, this.#places.get(i + 1));
      return oidOf(type);
    });
    return Object.freeze(oids);
  }
}
