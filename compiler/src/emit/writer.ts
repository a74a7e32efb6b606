import { InternalError, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import type { AttributeMatch, Literal, Slot } from '../plan/plan.js';
import { identifier } from '../text/sql-text.js';

/** Collects SQL text and numbers parameters in the order of their first use. */
export class Writer {
  readonly #slots: readonly Slot[];
  readonly #used = new Map<number, number>();
  #text = '';

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  /** @throws QueryError E0511, 54000, if the text is too large to be sent */
  write(text: string): void {
    this.#text += text;
    if (this.#text.length > LIMITS.sql)
      throw queryError('tooLarge', { what: 'the SQL that the statement becomes', limit: LIMITS.sql });
  }

  /** Returns the `$n` of slot `index`, cast to the type that the client declared, if any. */
  parameter(index: number): string {
    const number = this.#used.get(index) ?? this.#used.size + 1;
    this.#used.set(index, number);
    const slot = this.#slots[index];
    const declared = slot?.kind === 'client' ? slot.declared : null;
    return declared === null ? `$${number}` : `$${number}::${declared.sql}`;
  }

  /** Writes a base column of a scan. */
  base(column: string): void {
    this.write(`t.${identifier(column)}`);
  }

  /** Writes nodes that occur only in policy predicates; `govern` leaves none of them in a statement. */
  ofPolicy(expr: Literal | AttributeMatch): void {
    throw new InternalError(`${expr.kind} was not grounded`);
  }

  list<T>(items: readonly T[], separator: string, each: (item: T) => void): void {
    let before = '';
    for (const item of items) {
      this.#text += before;
      each(item);
      before = separator;
    }
  }

  text(): string {
    return this.#text;
  }

  /** Returns the indices of slots in the order of their parameter numbers. */
  slotsUsed(): readonly number[] {
    return Object.freeze([...this.#used.keys()]);
  }
}

/** Returns a quoted literal. Use it only for texts from closed sets and masks. */
export function quoteStructural(text: string): string {
  if (!/^[\w \-:.+/[\]*,]*$/.test(text))
    throw new InternalError('a structural literal has an unexpected character');
  return `'${text}'`;
}
