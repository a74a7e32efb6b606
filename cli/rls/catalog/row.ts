import type { Grant } from './catalog.js';

/** A row of a catalog query, as the driver decodes it. */
export type CatalogRow = Readonly<Record<string, unknown>>;

export function textIn(row: CatalogRow, name: string): string {
  const value = row[name];
  if (typeof value !== 'string') throw new TypeError(`column ${name} of the catalog is not text`);
  return value;
}

export function textOrNull(row: CatalogRow, name: string): string | null {
  return row[name] === null ? null : textIn(row, name);
}

/** Decodes integers and OIDs, which the driver returns as numbers or, if 64 bits wide, as text. */
export function numberIn(row: CatalogRow, name: string): number {
  const value = row[name];
  if (value === null || value === '' || !Number.isFinite(Number(value)))
    throw new TypeError(`column ${name} of the catalog is not a number`);
  return Number(value);
}

export function numberOrNull(row: CatalogRow, name: string): number | null {
  return row[name] === null ? null : numberIn(row, name);
}

export function flagIn(row: CatalogRow, name: string): boolean {
  const value = row[name];
  if (typeof value !== 'boolean') throw new TypeError(`column ${name} of the catalog is not boolean`);
  return value;
}

/** Decodes an array, or JSON array, of texts. */
export function textsIn(row: CatalogRow, name: string): readonly string[] {
  return listIn(row, name).map(String);
}

/** Decodes an array, or JSON array, of numbers. */
export function numbersIn(row: CatalogRow, name: string): readonly number[] {
  return listIn(row, name).map(Number);
}

/** Decodes a JSON array of objects. */
export function rowsIn(row: CatalogRow, name: string): readonly CatalogRow[] {
  return listIn(row, name).map((item) => ({ ...(item as CatalogRow) })); // our own JSON
}

/** Decodes a JSON array of grants. */
export function grantsIn(row: CatalogRow, name: string): readonly Grant[] {
  return rowsIn(row, name).map((grant) => ({
    grantee: numberIn(grant, 'grantee'),
    privilege: textIn(grant, 'privilege'),
  }));
}

function listIn(row: CatalogRow, name: string): readonly unknown[] {
  const value = row[name];
  if (!Array.isArray(value)) throw new TypeError(`column ${name} of the catalog is not a list`);
  return value;
}

/** Groups items by a key. */
export function groupBy<T, K>(items: readonly T[], key: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}
