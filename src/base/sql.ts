import { InternalError, quoteIdentifier, quoteLiteral, type TypeName } from 'osl-compiler';

let make: (text: string) => Sql;

/**
 * SQL that the gateway runs with its own credentials. It can only be built here: from templates (`sql`), quoted names
 * and literals, and the output of registered generators (`generatedSql`).
 */
export class Sql {
  readonly #text: string;

  private constructor(text: string, key: symbol) {
    // INVARIANT: a cast can forge the type, but neither the key nor the private field.
    if (key !== KEY) throw new InternalError('SQL of an unknown maker');
    this.#text = text;
    Object.freeze(this);
  }

  static {
    make = (text) => new Sql(text, KEY);
  }

  /** Returns the text for the driver. Throws TypeError if `statement` is not a genuine `Sql`. */
  static textOf(statement: Sql): string {
    return statement.#text;
  }

  /** Returns the text for a message or a file. */
  toString(): string {
    return this.#text;
  }
}

const KEY = Symbol('sql');

/** Builds static SQL from a template literal. Only other `Sql` can be interpolated; values are passed as parameters. */
export function sql(parts: TemplateStringsArray, ...holes: readonly Sql[]): Sql {
  // Arrays of template literals are frozen; any other array could hold any text.
  if (!Object.isFrozen(parts) || !Object.isFrozen(parts.raw)) throw new InternalError('no template of SQL');
  return make(parts.reduce((text, part, i) => `${text}${holeText(holes[i - 1])}${part}`));
}

function holeText(hole: Sql | undefined): string {
  if (hole === undefined) throw new InternalError('a hole without SQL');
  return Sql.textOf(hole);
}

export function sqlName(name: string): Sql {
  return make(quoteIdentifier(name));
}

export function sqlTable({ schema, table }: { readonly schema: string; readonly table: string }): Sql {
  return make(`${quoteIdentifier(schema)}.${quoteIdentifier(table)}`);
}

/** Returns a quoted literal, for statements that take no parameters. */
export function sqlText(text: string): Sql {
  return make(quoteLiteral(text));
}

export function sqlType(type: TypeName): Sql {
  return make(type);
}

export function sqlNumber(value: number): Sql {
  if (!Number.isSafeInteger(value)) throw new InternalError('no whole number');
  return make(String(value));
}

export function sqlJoin(parts: readonly Sql[], separator: Sql = COMMA): Sql {
  return make(parts.map(Sql.textOf).join(Sql.textOf(separator)));
}

/** Wraps SQL from a generator that quotes its inputs; `test/ask/one-way` lists the permitted callers. */
export function generatedSql(text: string): Sql {
  return make(text);
}

const COMMA = sql`, `;
