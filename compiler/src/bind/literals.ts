import type { A_Const } from '@pgsql/types';
import type { LiteralValue, Slot } from '../plan/plan.js';
import type { TypeName } from '../types/types.js';
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

  /** Whether `test` holds. The plan depends on that from now on, and on no more. */
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

  /** Whether anything depends on the very text. */
  get isRead(): boolean {
    return this.#read || (this.#node !== null && wasRead(this.#node));
  }

  static {
    carriedText = (literal) => literal.#text;
  }
}

/** What a slot carries: one literal, or the items of an IN list. */
export type Carried = WrittenLiteral | readonly (WrittenLiteral | null)[];

/** Whether all of it stands in the caller's text. */
function isWritten(value: Carried): boolean {
  const parts = value instanceof WrittenLiteral ? [value] : value;
  return parts.every((part) => part === null || part.node !== null);
}

/** The slots that carry literals, with where their values come from. Equal literals of one type share a slot. */
export class LiteralSlots {
  readonly #slots: Slot[];
  readonly #byValue = new Map<string, number>();
  readonly #carried = new Map<number, Carried[]>();
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
  slotOf(value: Carried, type: TypeName): number {
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
  get carried(): ReadonlyMap<number, readonly Carried[]> {
    return this.#carried;
  }
}
