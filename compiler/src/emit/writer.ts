import { InternalError } from '../errors.js';
import type { AttributeMatch, Literal, Slot } from '../plan.js';

/** Collects SQL text, and numbers parameters in the order in which the text uses them. */
export class Writer {
  readonly #slots: readonly Slot[];
  readonly #used = new Map<number, number>();
  #text = '';

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  write(text: string): void {
    this.#text += text;
  }

  /** `$n` of slot `index`, in the type that its value comes as where that is not the model's. */
  parameter(index: number): string {
    const number = this.#used.get(index) ?? this.#used.size + 1;
    this.#used.set(index, number);
    const slot = this.#slots[index];
    const declared = slot?.kind === 'client' ? slot.declared : null;
    return declared === null ? `$${number}` : `$${number}::${declared.sql}`;
  }

  /** A column of the table that a scan reads. */
  base(column: string): void {
    this.write(`t.${identifier(column)}`);
  }

  /** What policy predicates alone are made of: `govern` leaves none in a statement. */
  ofPolicy(expr: Literal | AttributeMatch): void {
    throw new InternalError(`${expr.kind} was not grounded`);
  }

  /** Writes `items` with `separator` between them. */
  list<T>(items: readonly T[], separator: string, each: (item: T) => void): void {
    for (const [i, item] of items.entries()) {
      if (i > 0) this.#text += separator;
      each(item);
    }
  }

  text(): string {
    return this.#text;
  }

  /** Slots by the number that the text has for them. */
  slotsUsed(): readonly number[] {
    return Object.freeze([...this.#used.keys()]);
  }
}

/** The one quoter of identifiers. Those that get here come from the manifest or are made by the compiler. */
export function identifier(name: string): string {
  if (name.includes('\0')) throw new InternalError('an identifier holds a NUL');
  return PLAIN.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** Words that Postgres does not take as a bare column or table name. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast ' +
    'char character check coalesce collate collation column concurrently constraint create cross current_catalog ' +
    'current_date current_role current_schema current_time current_timestamp current_user dec decimal default ' +
    'deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant ' +
    'greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join ' +
    'json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize ' +
    'json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national natural ' +
    'nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay placing ' +
    'position precision primary real references returning right row select session_user setof similar smallint some ' +
    'substring symmetric system_user table tablesample then time timestamp to trailing treat trim true union unique ' +
    'user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists ' +
    'xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable'
  ).split(' '),
);

/** A quoted literal; only texts of closed sets and masks get here. */
export function quoted(text: string): string {
  if (!/^[\w \-:.+/[\]*,]*$/.test(text))
    throw new InternalError('a structural literal has an unexpected character');
  return `'${text}'`;
}
