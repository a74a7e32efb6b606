import {
  type Access,
  type Catalog,
  type Column,
  type ColumnForm,
  labelsOf,
  type Relation,
  type RelationAccess,
  type Rollup,
} from 'osl-compiler';
import type { Language } from '../facets/retrieval-options.js';
import type { Composition, EmbeddingProtocol, ManifestDocument, RerankProtocol } from './document.js';

/** A compiled manifest: frozen, and equal if compiled from equal documents. */
export interface Manifest {
  /**
   * Hash of the document's content, 32 hex digits. It depends on the order of names, but not on comments and layout.
   */
  readonly version: string;
  readonly tenant: string | null;
  readonly connectors: ReadonlyMap<string, Connector>;
  readonly catalog: Catalog;
  readonly entities: ReadonlyMap<string, EntityFacts>;
  readonly bridges: ReadonlyMap<string, Bridge>;
  readonly relationships: ReadonlyMap<string, Relationship>;
  readonly rerankers: ReadonlyMap<string, RerankerSettings>;
  readonly rollups: ReadonlyMap<string, RollupFacts>;
  readonly facets: ReadonlyMap<string, Facet>;
  readonly lexicon: ReadonlyMap<string, GlossaryTerm>;
  /** Reasons for the deprecation of members, by `section.name`. */
  readonly deprecated: ReadonlyMap<string, string>;
  /** The document from which the manifest was compiled, for authoring. */
  readonly document: ManifestDocument;
}

export interface Connector {
  readonly name: string;
  readonly kind: 'pglite' | 'postgres';
  /** Environment variable that holds the URL; null for the embedded engine. */
  readonly urlEnv: string | null;
  /** Standbys of the database; null if none are declared. */
  readonly standbys: ConnectorStandbys | null;
  /** True if the database enforces row security too, so that each statement carries its caller's rights. */
  readonly rowSecurity: boolean;
  /** Tables by `schema.table`. */
  readonly tables: ReadonlyMap<string, Table>;
}

export interface ConnectorStandbys {
  /** Environment variables that hold the URLs, without duplicates. */
  readonly urlEnvs: readonly string[];
  /** Maximum lag of the data in an answer from a standby, in ms. */
  readonly maxLagMs: number;
}

export interface Table {
  readonly schema: string;
  readonly table: string;
  readonly columns: ReadonlyMap<string, DeclaredTableColumn>;
}

export type DeclaredTableColumn = Pick<Column, 'type' | 'sensitivity'> & {
  readonly name: string;
  /** The database type if the column is read as text; otherwise null. */
  readonly stored: string | null;
  readonly labels: readonly string[] | null;
  /** Details of the upstream type that `type` does not include, such as `varchar(20)`; otherwise null. */
  readonly form: ColumnForm | null;
  /** True if the column may be NULL; null if not declared, which means true except for primary keys. */
  readonly nullable: boolean | null;
};

/** Properties of an entity besides its columns. */
export interface EntityFacts {
  readonly name: string;
  readonly composition: Composition;
  readonly legs: readonly string[];
  /** Cache settings for answers that read the entity; null if they are not cached. */
  readonly cache: CacheRule | null;
}

export interface CacheRule {
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  readonly maxAgeMs: number;
  /** Column whose maximum value changes with every change of the table; null if none is declared. */
  readonly watermark: string | null;
  /** True if the database announces changes by `notify osl_data`. */
  readonly notify: boolean;
}

/** A derived attribute of an entity: the result of an operator on a facet's text, computed when the text is indexed. */
export interface DerivedAttributeSettings {
  readonly name: string;
  readonly description: string | null;
  readonly facet: string;
  readonly operator: 'CLASSIFY' | 'TAG';
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface RollupFacts {
  readonly rollup: Rollup;
  readonly connector: string;
  readonly maxAgeMs: number;
  /** Hash of the query and of how it is built, in hex. Rows built with another fingerprint are not used. */
  readonly fingerprint: string;
  readonly query: string;
}

export interface Bridge {
  readonly name: string;
  readonly left: BridgeSide;
  readonly right: BridgeSide;
}

/** The bridge's `columns[i]` holds the entity's `keys[i]`. */
export interface BridgeSide {
  readonly entity: string;
  readonly columns: readonly string[];
  readonly keys: readonly string[];
}

export interface Relationship {
  readonly name: string;
  readonly description: string | null;
  /** `from.columns[i]` refers to `to.columns[i]`. */
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  readonly kind: 'many_to_one' | 'one_to_one';
}

export interface LinkEnd {
  readonly entity: string;
  readonly columns: readonly string[];
}

/** Texts about the rows of an entity, split into passages and indexed. Sizes are in UTF-16 code units. */
export interface Facet {
  readonly name: string;
  readonly description: string | null;
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  readonly entity: string;
  readonly entityKey: Column;
  readonly documentId: Column;
  readonly text: Column;
  readonly metadata: readonly Column[];
  readonly scalarIndexed: readonly string[];
  readonly format: 'text' | 'markdown' | 'html' | 'pdf';
  readonly chunking: {
    readonly maxChars: number;
    readonly overlapChars: number;
    readonly by: 'structure' | 'heading' | 'page' | 'sentence' | 'fixed';
  };
  readonly embeddingModel: string;
  readonly embedding: FacetEmbedding;
  readonly versions: ReadonlyMap<string, DeclaredFacetVersion>;
  readonly maxTopK: number;
  /** Language for word search; null if the manifest does not declare one. */
  readonly language: Language | null;
  readonly approximate: boolean;
  /** Rows whose labelled values are redacted: all of the tenant's rows, or the rows related to the document's key. */
  readonly dictionary: 'tenant' | 'key';
  /** Labelled values that are ordinary words and are not redacted. */
  readonly exceptions: readonly string[];
  /** Default labels for CLASSIFY and TAG, as declared; empty if there are none. */
  readonly labels: readonly unknown[];
  /** Rerankers to which the facet's passages may be sent; the first is the default. */
  readonly rerankers: readonly string[];
  /** Attributes of the entity that are derived from this facet's text. */
  readonly derived: readonly DerivedAttributeSettings[];
  /** The lexical leg of a hybrid facet: this facet with the lexical model and its own stores; null if not hybrid. */
  readonly lexicalLeg: Facet | null;
  /** For a lexical leg, the name of its facet; otherwise null. A leg's own name has a dot, unlike declared names. */
  readonly legOf: string | null;
}

export interface FacetEmbedding {
  /** Server of the embedding model; null means the server in the settings. */
  readonly endpoint: { readonly protocol: EmbeddingProtocol; readonly urlEnv: string } | null;
  /** Number of dimensions; null means as many as the model returns. */
  readonly dimensions: number | null;
  /** Prefixes for queries and passages, for models that were trained with them. */
  readonly prefixes: { readonly query: string; readonly passage: string } | null;
  /** True if vectors are stored as 16-bit floats. */
  readonly half: boolean;
}

/** An external model that scores how well passages answer a query, and the limits of its use. */
export interface RerankerSettings {
  readonly name: string;
  readonly protocol: RerankProtocol;
  /**
   * Environment variable that holds the URL of the model server. An API key, if needed, is in the variable of the same
   * name with the suffix `_KEY`.
   */
  readonly urlEnv: string;
  readonly model: string;
  /** Maximum number of passages that are sent per query. */
  readonly candidates: number;
  readonly timeoutMs: number;
  readonly concurrency: number;
  /** Maximum size of the score cache, in bytes; 0 disables the cache. */
  readonly cacheBytes: number;
  /** Number of passages that a subject may send per day; null if unlimited. */
  readonly perDay: number | null;
}

export interface DeclaredFacetVersion {
  readonly name: string;
  /** Sensitivity labels whose values are redacted. */
  readonly redact: readonly string[];
  readonly detectors: readonly string[];
  /** ISO 3166-1 alpha-2 codes. The `phone` detector finds numbers in the national format of each of these countries. */
  readonly phoneCountries: readonly string[];
}

export interface GlossaryTerm {
  readonly term: string;
  /** Name of the object that the term refers to: `entity`, `entity.column`, a metric or a facet. */
  readonly refersTo: string;
  readonly kind: 'entity' | 'column' | 'metric' | 'facet';
  readonly synonyms: readonly string[];
}

/** Returns all facets that have stores: each facet, followed by its lexical leg if it has one. */
export function indexedFacets({ facets }: Pick<Manifest, 'facets'>): readonly Facet[] {
  return [...facets.values()].flatMap((f) => (f.lexicalLeg === null ? [f] : [f, f.lexicalLeg]));
}

export function indexedFacet(manifest: Pick<Manifest, 'facets'>, name: string): Facet | null {
  return manifest.facets.get(name) ?? indexedFacets(manifest).find((f) => f.name === name) ?? null;
}

const MOST_NAMED = 10;

/** Returns a warning that names the entities without a primary key; null if all entities have one. */
export function keylessEntities({ catalog }: Pick<Manifest, 'catalog'>): string | null {
  const names = [...catalog.relations.values()]
    .filter((r) => r.kind === 'entity' && r.primaryKey.length === 0)
    .map((r) => `\`${r.name}\``);
  if (names.length === 0) return null;
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  const listed = names.slice(0, MOST_NAMED).join(', ');
  return `no primary key: ${listed}${more}; no TRAVERSE, no evidence, no order among equal rows`;
}

export const DEPRECABLE = ['entities', 'relationships', 'bridges', 'facets', 'metrics'] as const;

/** Returns the reasons for deprecation in a document, by `section.name`. */
export function deprecatedIn(document: ManifestDocument): ReadonlyMap<string, string> {
  return frozenMap(
    DEPRECABLE.flatMap((section) =>
      Object.entries(document[section] ?? {}).flatMap(
        ([name, { deprecated }]): readonly [string, string][] =>
          deprecated === undefined ? [] : [[`${section}.${name}`, deprecated]],
      ),
    ),
  );
}

/** Returns the reason why a member is deprecated; null if it is not deprecated. */
export function deprecationOf(
  { deprecated }: Manifest,
  section: (typeof DEPRECABLE)[number],
  name: string,
): string | null {
  return deprecated.get(`${section}.${name}`) ?? null;
}

/** A map that cannot be changed: `Object.freeze` does not protect the entries of a `Map`. */
class FrozenMap<K, V> extends Map<K, V> {
  readonly #sealed: boolean;

  constructor(entries: Iterable<readonly [K, V]>) {
    super(entries);
    this.#sealed = true;
  }

  override set(key: K, value: V): this {
    // The constructor of `Map` calls this before the field exists.
    if (#sealed in this && this.#sealed) throw new TypeError('this map is frozen');
    return super.set(key, value);
  }

  override delete(): boolean {
    throw new TypeError('this map is frozen');
  }

  override clear(): void {
    throw new TypeError('this map is frozen');
  }
}

export function frozenMap<K, V>(entries: Iterable<readonly [K, V]>): ReadonlyMap<K, V> {
  return Object.freeze(new FrozenMap(entries));
}

const EVERYTHING = new WeakMap<Catalog, Access>();

/** Returns unmasked access to every row and column of `catalog`, for administrators and checks, not for queries. */
export function everythingIn(catalog: Catalog): Access {
  const known = EVERYTHING.get(catalog);
  if (known !== undefined) return known;
  const relations = new Map([...catalog.relations].map(([name, r]) => [name, allOf(r)] as const));
  const access = Object.freeze({ signature: 'everything', policyVersion: '', chainLength: 1, relations });
  EVERYTHING.set(catalog, access);
  return access;
}

function allOf(relation: Relation): RelationAccess {
  const columns = new Set(relation.columns.map((c) => c.name));
  const grants = [{ id: 'everything', columns, unmask: labelsOf(relation), filter: null }];
  return Object.freeze({ grants, masks: new Map(), denied: new Set<string>() });
}
