export interface CatalogContents {
  readonly enums: readonly EnumModel[];
  readonly tables: readonly TableModel[];
  readonly foreignKeys: readonly CatalogForeignKey[];
  readonly metrics: readonly MetricsModel[];
  readonly facets: readonly FacetModel[];
}

export interface EnumModel {
  readonly name: string;
  readonly labels: readonly string[];
}

export interface TableModel {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly ColumnModel[];
  /** Primary key columns; empty unless the caller sees all of them unmasked. */
  readonly primaryKey: readonly string[];
}

export interface ColumnModel {
  readonly name: string;
  readonly type: string;
  readonly notNull: boolean;
  readonly comment: string | null;
}

export interface CatalogForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  /** All columns of the target's primary key, in the order of `columns`. */
  readonly targetColumns: readonly string[];
  readonly comment: string | null;
}

export interface MetricsModel {
  readonly entity: string;
  readonly metrics: readonly MetricModel[];
}

export interface MetricModel {
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
}

export interface FacetModel {
  readonly name: string;
  readonly description: string | null;
  readonly columns: readonly (readonly [name: string, type: string])[];
}

type ContentsKind = keyof CatalogContents;
type ContentsItem = {
  readonly [K in ContentsKind]: readonly [kind: K, item: CatalogContents[K][number]];
}[ContentsKind];

/** Approximate size of a part in UTF-16 code units: small enough to be written, sent and read in a millisecond. */
const PART = 65_536;

/** Serializes contents in parts, so that no thread handles tens of thousands of columns at once. */
export class ContentsWriter {
  readonly #parts: Uint8Array[] = [];
  #items: string[] = [];
  #units = 0;

  add(...item: ContentsItem): void {
    const text = JSON.stringify(item);
    this.#items.push(text);
    this.#units += text.length;
    if (this.#units >= PART) this.#end();
  }

  parts(): readonly Uint8Array[] {
    if (this.#items.length > 0) this.#end();
    return this.#parts;
  }

  #end(): void {
    this.#parts.push(new TextEncoder().encode(`[${this.#items.join(',')}]`));
    this.#items = [];
    this.#units = 0;
  }
}

export function contentsOf(parts: Iterable<Uint8Array>): CatalogContents {
  const contents: { readonly [K in ContentsKind]: CatalogContents[K][number][] } = {
    enums: [],
    tables: [],
    foreignKeys: [],
    metrics: [],
    facets: [],
  };
  const decoder = new TextDecoder();
  for (const part of parts) {
    // `ContentsWriter` wrote each kind with items of the matching type.
    for (const [kind, item] of JSON.parse(decoder.decode(part)) as ContentsItem[])
      (contents[kind] as unknown[]).push(item);
  }
  return contents;
}
