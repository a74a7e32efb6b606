import { InternalError, quoteIdentifier, quoteLiteral, type TypeName } from 'osl-compiler';

let make: (text: string) => Sql;

/**
 * SQL that the gateway runs under credentials of its own. It is made here alone: of static texts (`sql`), of names and
 * literals in their quotes, and of what a named generator wrote (`generatedSql`).
 */
export class Sql {
  readonly #text: string;

  private constructor(text: string, key: symbol) {
    // INVARIANT: the type can be cast away; the key and the private field cannot.
    if (key !== KEY) throw new InternalError('SQL of an unknown maker');
    this.#text = text;
    Object.freeze(this);
  }

  static {
    make = (text) => new Sql(text, KEY);
  }

  /** The text, for a driver. Throws TypeError for a look-alike. */
  static textOf(statement: Sql): string {
    return statement.#text;
  }

  /** The text, for a message or a file. */
  toString(): string {
    return this.#text;
  }
}

const KEY = Symbol('sql');

/** Static SQL. A hole takes other SQL alone: values go as parameters. */
export function sql(parts: TemplateStringsArray, ...holes: readonly Sql[]): Sql {
  // An array that is no template could be of any text.
  if (!Object.isFrozen(parts) || !Object.isFrozen(parts.raw)) throw new InternalError('no template of SQL');
  return make(parts.reduce((text, part, i) => `${text}${holeText(holes[i - 1])}${part}`));
}

function holeText(hole: Sql | undefined): string {
  if (hole === undefined) throw new InternalError('a hole without SQL');
  return Sql.textOf(hole);
}

/** A name in quotes. */
export function sqlName(name: string): Sql {
  return make(quoteIdentifier(name));
}

/** A table with its schema, both in quotes. */
export function sqlTable({ schema, table }: { readonly schema: string; readonly table: string }): Sql {
  return make(`${quoteIdentifier(schema)}.${quoteIdentifier(table)}`);
}

/** A text in the quotes of a literal, for statements that take no parameters. */
export function sqlText(text: string): Sql {
  return make(quoteLiteral(text));
}

export function sqlType(type: TypeName): Sql {
  return make(type);
}

/** A whole number. */
export function sqlNumber(value: number): Sql {
  if (!Number.isSafeInteger(value)) throw new InternalError('no whole number');
  return make(String(value));
}

export function sqlJoin(parts: readonly Sql[], separator: Sql = COMMA): Sql {
  return make(parts.map(Sql.textOf).join(Sql.textOf(separator)));
}

/** SQL of a named generator, which quotes what it puts in: `test/ask/one-way` names those who may. */
export function generatedSql(text: string): Sql {
  return make(text);
}

const COMMA = sql`, `;
