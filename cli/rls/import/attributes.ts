import type { TableAttributeDocument } from '../../../policy/document.js';
import { nameFrom } from '../../../src/model/manifest/index.js';
import { type CallerSource, type CallerValue, sameSource } from './caller-value.js';

/** An attribute that each subject must have, and what it stands for. */
export interface CallerAttribute {
  readonly name: string;
  readonly source: CallerSource;
  readonly list: boolean;
}

/** The attributes of an imported policy: values of callers, and values that are read from entities. */
export class ImportedAttributes {
  readonly #callers: CallerAttribute[] = [];
  readonly #tables = new Map<string, TableAttributeDocument>();

  get callers(): readonly CallerAttribute[] {
    return this.#callers;
  }

  get tables(): ReadonlyMap<string, TableAttributeDocument> {
    return this.#tables;
  }

  /** The attributes that a filter names, and those that these need. */
  needsOf(filter: string): ReadonlySet<string> {
    return attributesNamed([filter], (name) => this.#tables.get(name)?.rows);
  }

  /** The name of the attribute with this value. */
  caller({ source, list }: CallerValue): string {
    const known = this.#callers.findIndex((one) => sameSource(one.source, source));
    const found = this.#callers[known];
    if (found !== undefined) {
      if (list && !found.list) this.#callers[known] = { ...found, list };
      return found.name;
    }
    const name = this.#unused(nameOfSource(source));
    this.#callers.push({ name, source, list });
    return name;
  }

  /** The name of the attribute that is read in this way. */
  table(document: TableAttributeDocument): string {
    for (const [name, known] of this.#tables) if (sameReading(known, document)) return name;
    const { on, column } = document;
    const name = this.#unused(column === undefined ? `has_${on}` : `${on}_${column}`);
    this.#tables.set(name, document);
    return name;
  }

  #unused(wanted: string): string {
    const taken = new Set([...this.#callers.map(({ name }) => name), ...this.#tables.keys()]);
    const base = nameFrom(wanted);
    for (let n = 1; ; n++) {
      const name = n === 1 ? base : `${base}_${n}`;
      if (!taken.has(name)) return name;
    }
  }
}

/** The attributes that filters name, and those that these need. @param rowsOf the filter by which one is read */
export function attributesNamed(
  filters: Iterable<string | undefined>,
  rowsOf: (name: string) => string | undefined,
): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (text: string | undefined): void => {
    for (const [, name = ''] of text?.matchAll(/attribute\('([^']+)'\)/g) ?? []) {
      if (found.has(name)) continue;
      found.add(name);
      add(rowsOf(name));
    }
  };
  for (const text of filters) add(text);
  return found;
}

function nameOfSource(source: CallerSource): string {
  switch (source.kind) {
    case 'setting':
      return source.name.split('.').at(-1) ?? source.name;
    case 'claim':
      return source.path.at(-1) ?? 'claim';
    case 'database user':
      return 'database_user';
  }
}

function sameReading(a: TableAttributeDocument, b: TableAttributeDocument): boolean {
  return a.on === b.on && a.column === b.column && a.rows === b.rows;
}
