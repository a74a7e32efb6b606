import { assertNever, InternalError, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import type { AttributeMatch, Literal, LiteralValue, Slot } from '../plan/plan.js';
import { arrayText, identifier } from '../text/sql-text.js';
import { isArray } from '../types/types.js';

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

  /** Writes a node that only policy predicates contain. Throws if not overridden: statements contain no such node. */
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

/** Sources of the values of a statement's slots. */
export interface ValueSources<V> {
  /** A value in Postgres' text format. */
  readonly text: (value: string) => V;
  /** The caller's `$n`, with `index` counted from 0; undefined if the caller gave no such value. */
  readonly client: (index: number) => V | undefined;
  /** All values of an attribute of a subject in the delegation chain. */
  readonly attribute: (subject: number, name: string) => readonly string[];
  /** The rows of runtime relation `index`, as a JSON array of objects. */
  readonly runtime: (index: number) => string;
  /** The values of one column of runtime relation `index`, each in text format. */
  readonly keys: (index: number, column: string) => readonly (string | null)[];
  /** The value passed as `name` to a step of a runtime relation, in text format. */
  readonly given: (name: string) => string;
  /** The HMAC pad of a key domain: 64 bytes, in hex. */
  readonly pad: (pad: 'inner' | 'outer', domain: string) => string;
}

/** Returns the values of `slots`, in order. */
export function valuesOf<V>(slots: readonly Slot[], sources: ValueSources<V>): readonly V[] {
  return slots.map((slot) => {
    switch (slot.kind) {
      case 'literal':
        return sources.text(literalText(slot.value));
      case 'client': {
        const value = sources.client(slot.index);
        if (value === undefined)
          throw queryError('parameterCount', { given: slot.index, needed: slot.index + 1 });
        return value;
      }
      case 'attribute':
        return sources.text(attributeText(slot, sources.attribute(slot.subject, slot.name)));
      case 'runtime':
        return sources.text(sources.runtime(slot.index));
      case 'keys':
        return sources.text(arrayText(sources.keys(slot.index, slot.column)));
      case 'given':
        return sources.text(sources.given(slot.name));
      case 'pad':
        return sources.text(`\\x${sources.pad(slot.pad, slot.domain)}`);
      default:
        return assertNever(slot);
    }
  });
}

function attributeText({ type, name }: Slot & { kind: 'attribute' }, values: readonly string[]): string {
  if (isArray(type)) return arrayText(values);
  const [only] = values;
  // INVARIANT: a plan that was made for a single value of an attribute never runs for a caller with several values.
  if (only === undefined || values.length !== 1)
    throw new InternalError(`attribute ${name} has ${values.length} values in a plan for one`);
  return only;
}

/** Returns a literal in Postgres' text format. */
export function literalText(value: LiteralValue): string {
  return typeof value === 'string' ? value : arrayText(value);
}
