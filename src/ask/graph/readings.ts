import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  chosenOf,
  domainMapOf,
  fullView,
  type GraphView,
  governedView,
  objectsIn,
  type SchemaChoice,
  type SchemaWish,
  schemaIndex,
  schemaOf,
  schemaPart,
} from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Caller } from '../request/caller.js';

/** A document about the graph as it is sent. */
export interface Reading {
  readonly body: Buffer;
  /** Over the bytes: 43 characters, without quotes. */
  readonly etag: string;
}

/** What one reader's documents are made of; each is made when first asked for. */
export class Readings {
  readonly view: GraphView;
  readonly #version: string | null;
  readonly #hasDecoder: boolean;
  #objects: readonly string[] | null = null;
  #schema: { readonly times: string; readonly reading: Reading } | null = null;
  #own: string | null = null;
  #map: Reading | null = null;

  /** @param version the manifest's, for the full view; null for a governed one, which has a version of its own */
  constructor(view: GraphView, version: string | null, hasDecoder: boolean) {
    this.view = view;
    this.#version = version;
    this.#hasDecoder = hasDecoder;
  }

  /** Full names of what the view shows. */
  get objects(): readonly string[] {
    this.#objects ??= objectsIn(this.view);
    return this.#objects;
  }

  /** @param indexed when the texts of its facets were last read, by facet */
  schemaAt(indexed: ReadonlyMap<string, string>): Reading {
    const times = JSON.stringify([...indexed]);
    if (this.#schema?.times !== times) this.#schema = { times, reading: this.#makeSchema(indexed) };
    return this.#schema.reading;
  }

  /** A part of the schema: what `chosen` has of the view. */
  partAt(chosen: SchemaChoice, indexed: ReadonlyMap<string, string>): Reading {
    return reading(JSON.stringify(schemaPart(this.view, chosen, this.#version !== null, indexed)));
  }

  chosen(wish: Extract<SchemaWish, { kind: 'part' }>): SchemaChoice {
    return chosenOf(this.view, wish, this.#hasDecoder);
  }

  /** A page of the index of the schema, from its `from`th object on. */
  index(from: number): Reading {
    return reading(JSON.stringify(schemaIndex(this.view, from)));
  }

  get domainMap(): Reading {
    this.#map ??= reading(JSON.stringify(domainMapOf(this.view)));
    return this.#map;
  }

  /**
   * INVARIANT: nothing outside the view goes into these bytes. The manifest's version would tell a caller that
   * something changed which it may not see, so a governed schema's version is that of its own content. When texts were
   * read is no part of the version: questions that were written for it stay good.
   */
  #makeSchema(indexed: ReadonlyMap<string, string>): Reading {
    const members = this.#members(indexed);
    this.#own ??= createHash('sha256').update(this.#members(new Map())).digest('hex').slice(0, 32);
    const version = this.#version ?? this.#own;
    const { etag } = reading(`{"version":"${version}",${members}`);
    return { etag, body: Buffer.from(`{"version":"${version}","etag":"${etag}",${members}`) };
  }

  #members(indexed: ReadonlyMap<string, string>): string {
    const schema = schemaOf(this.view, this.#version !== null, this.#hasDecoder, indexed);
    return JSON.stringify(schema).slice(1);
  }
}

/** A text as it is sent. */
export function reading(text: string): Reading {
  const body = Buffer.from(text);
  return { body, etag: createHash('sha256').update(body).digest('base64url') };
}

/** Columns, or what weighs like one, that are kept for one manifest: each is about 1 KiB in all documents. */
const MAX_WEIGHT = 100_000;

function weightOf({ entities, facets, metrics, links }: GraphView): number {
  const columns = [...entities, ...facets].reduce((sum, one) => sum + 1 + one.columns.length, 0);
  return columns + metrics.length + links.length;
}

/** The readings of each manifest, least recently used out first; callers with the same rights share them. */
const shelves = new WeakMap<Manifest, LRUCache<string, Readings>>();

/** What `caller` may read of the graph: all of it, or what its grants show. */
export function readingsOf(caller: Caller, extent: 'full' | 'governed', hasDecoder: boolean): Readings {
  const { manifest, access } = caller;
  let shelf = shelves.get(manifest);
  if (shelf === undefined) {
    shelf = new LRUCache({ maxSize: MAX_WEIGHT, sizeCalculation: ({ view }) => 1 + weightOf(view) });
    shelves.set(manifest, shelf);
  }
  const key = extent === 'full' ? 'full' : `governed ${access.signature}`;
  const known = shelf.get(key);
  if (known !== undefined) return known;
  const made =
    extent === 'full'
      ? new Readings(fullView(manifest), manifest.version, hasDecoder)
      : new Readings(governedView(manifest, access), null, hasDecoder);
  shelf.set(key, made);
  return made;
}
