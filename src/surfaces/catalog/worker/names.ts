const MAX_BYTES = 63;

/**
 * Names of a schema's relations, types and constraints, including those that Postgres generates depending on existing
 * names. A test compares them with Postgres.
 */
export class SchemaNames {
  readonly #relations: Set<string>;
  readonly #constraints = new Set<string>();
  /** Type names. Array types map to objects, since Postgres renames them if another type needs their name. */
  readonly #types: Map<string, ArrayTypeName | null>;

  /** @param types existing types, which are never renamed */
  constructor(relations: Iterable<string>, types: Iterable<string>) {
    this.#relations = new Set(relations);
    this.#types = new Map([...types].map((name) => [name, null]));
  }

  table(name: string): ArrayTypeName {
    this.#relations.add(name);
    const before = this.#types.get(name) ?? null;
    if (before !== null) this.#nameArrayType(before, name);
    this.#types.set(name, null);
    const array = { name: '' };
    this.#nameArrayType(array, name);
    return array;
  }

  primaryKey(table: string): string {
    const name = this.#free(table, '', 'pkey', (n) => this.#relations.has(n) || this.#constraints.has(n));
    this.#relations.add(name);
    this.#constraints.add(name);
    return name;
  }

  foreignKey(table: string, columns: readonly string[]): string {
    const name = this.#free(table, joined(columns), 'fkey', (n) => this.#constraints.has(n));
    this.#constraints.add(name);
    return name;
  }

  #nameArrayType(array: ArrayTypeName, element: string): void {
    array.name = objectName('', element, null);
    for (let pass = 1; this.#types.has(array.name); pass++) array.name = objectName('', element, `${pass}`);
    this.#types.set(array.name, array);
  }

  #free(table: string, columns: string, label: string, isTaken: (name: string) => boolean): string {
    const second = columns === '' ? null : columns;
    let name = objectName(table, second, label);
    for (let pass = 1; isTaken(name); pass++) name = objectName(table, second, `${label}${pass}`);
    return name;
  }
}

export interface ArrayTypeName {
  name: string;
}

function joined(columns: readonly string[]): string {
  let text = '';
  for (const column of columns) {
    text += `${text === '' ? '' : '_'}${column}`;
    if (Buffer.byteLength(text) > MAX_BYTES) break;
  }
  return text;
}

/**
 * Returns `first_second_label`, shortening the longer of the first two until it fits, like Postgres' `makeObjectName`.
 */
function objectName(first: string, second: string | null, label: string | null): string {
  const room = MAX_BYTES - (second === null ? 0 : 1) - (label === null ? 0 : Buffer.byteLength(label) + 1);
  let [a, b] = [Buffer.byteLength(first), Buffer.byteLength(second ?? '')];
  while (a + b > room) {
    if (a > b) a -= 1;
    else b -= 1;
  }
  return [
    clipped(first, a),
    ...(second === null ? [] : [clipped(second, b)]),
    ...(label === null ? [] : [label]),
  ].join('_');
}

function clipped(text: string, bytes: number): string {
  let room = bytes;
  let end = 0;
  for (const character of text) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}
