import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { inTurns, mapInSteps } from '../../base/in-turns.js';
import {
  chooseObjects,
  domainMapSteps,
  fullViewSteps,
  type GraphView,
  governedViewSteps,
  objectsIn,
  type SchemaChoice,
  type SchemaSelection,
  schemaIndex,
  schemaPart,
  schemaSteps,
} from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Caller } from '../request/caller.js';

/** A serialized document about the graph. */
export interface GraphDocument {
  readonly body: Buffer;
  /** Hash of the content: 43 characters, without quotes. */
  readonly etag: string;
}

/**
 * Documents for one set of rights, built on demand and in steps: for ten thousand entities, this takes a second of
 * CPU.
 */
export class GraphDocuments {
  readonly view: GraphView;
  readonly #version: string | null;
  readonly #hasDecoder: boolean;
  #objects: readonly string[] | null = null;
  #schema: { readonly times: string; readonly reading: Promise<GraphDocument> } | null = null;
  #map: Promise<GraphDocument> | null = null;

  /** @param version manifest version for the full view; null for a governed view, which is versioned by its content */
  constructor(view: GraphView, version: string | null, hasDecoder: boolean) {
    this.view = view;
    this.#version = version;
    this.#hasDecoder = hasDecoder;
  }

  get objects(): readonly string[] {
    this.#objects ??= objectsIn(this.view);
    return this.#objects;
  }

  /** @param indexed time at which the texts of each facet were last read */
  schemaAt(indexed: ReadonlyMap<string, string>): Promise<GraphDocument> {
    const times = JSON.stringify([...indexed]);
    if (this.#schema?.times !== times) this.#schema = { times, reading: inTurns(this.#schemaSteps(indexed)) };
    return this.#schema.reading;
  }

  partAt(chosen: SchemaChoice, indexed: ReadonlyMap<string, string>): Promise<GraphDocument> {
    return inTurns(serializeSteps(schemaPart(this.view, chosen, this.#version !== null, indexed)));
  }

  chosen(wish: Extract<SchemaSelection, { kind: 'part' }>): SchemaChoice {
    return chooseObjects(this.view, wish, this.#hasDecoder);
  }

  /** Returns a page of the schema's index, starting at object number `from`. */
  index(from: number): Promise<GraphDocument> {
    return inTurns(serializeSteps(schemaIndex(this.view, from)));
  }

  get domainMap(): Promise<GraphDocument> {
    this.#map ??= inTurns(this.#mapSteps());
    return this.#map;
  }

  *#mapSteps(): Generator<void, GraphDocument> {
    return yield* serializeSteps(yield* domainMapSteps(this.view));
  }

  /**
   * INVARIANT: the bytes depend only on the view. The manifest's version would reveal changes to hidden objects, so a
   * governed schema is versioned by its own content. Index times are excluded, so that versions held by clients stay
   * valid.
   */
  *#schemaSteps(indexed: ReadonlyMap<string, string>): Generator<void, GraphDocument> {
    const members = yield* this.#members(indexed);
    const version = this.#version ?? (yield* this.#ownVersion(indexed, members));
    const start = Buffer.from(`{"version":"${version}",`);
    const etag = (yield* digestSteps([start, ...members])).toString('base64url');
    const startWithEtag = Buffer.from(`{"version":"${version}","etag":"${etag}",`);
    return { etag, body: Buffer.concat([startWithEtag, ...members]) };
  }

  *#ownVersion(indexed: ReadonlyMap<string, string>, members: readonly Buffer[]): Generator<void, string> {
    const timeless = indexed.size === 0 ? members : yield* this.#members(new Map());
    return (yield* digestSteps(timeless)).toString('hex').slice(0, 32);
  }

  *#members(indexed: ReadonlyMap<string, string>): Generator<void, readonly Buffer[]> {
    const full = this.#version !== null;
    const schema = yield* schemaSteps(this.view, full, this.#hasDecoder, indexed);
    const [first = Buffer.alloc(0), ...others] = yield* jsonSteps(schema);
    return [first.subarray(1), ...others];
  }
}

export function* serializeSteps(document: object): Generator<void, GraphDocument> {
  const pieces = yield* jsonSteps(document);
  const etag = (yield* digestSteps(pieces)).toString('base64url');
  return { body: Buffer.concat(pieces), etag };
}

const PIECE = 65_536;

/** Encodes `document` as JSON in UTF-8, in pieces; its lists may be long. */
function* jsonSteps(document: object): Generator<void, readonly Buffer[]> {
  const pieces: Buffer[] = [];
  let text = '{';
  const write = (more: string): void => {
    text += more;
    if (text.length < PIECE) return;
    pieces.push(Buffer.from(text));
    text = '';
  };
  let separator = '';
  for (const [name, value] of Object.entries(document)) {
    if (value === undefined) continue;
    write(`${separator}${JSON.stringify(name)}:`);
    separator = ',';
    if (!Array.isArray(value)) {
      write(JSON.stringify(value));
      continue;
    }
    write('[');
    let isFirst = true;
    yield* mapInSteps(value, (member) => {
      write(isFirst ? JSON.stringify(member) : `,${JSON.stringify(member)}`);
      isFirst = false;
    });
    write(']');
  }
  pieces.push(Buffer.from(`${text}}`));
  return pieces;
}

function* digestSteps(pieces: readonly Buffer[]): Generator<void, Buffer> {
  const hash = createHash('sha256');
  yield* mapInSteps(pieces, (piece) => hash.update(piece));
  return hash.digest();
}

/** Maximum number of columns (or their equivalent) cached per manifest; each takes about 1 KiB across all documents. */
const MAX_WEIGHT = 100_000;

function weightOf({ entities, facets, metrics, links }: GraphView): number {
  const columns = [...entities, ...facets].reduce((sum, one) => sum + 1 + one.columns.length, 0);
  return columns + metrics.length + links.length;
}

/** Documents per manifest, shared by callers with the same rights; LRU. */
interface DocumentCache {
  readonly made: LRUCache<string, GraphDocuments>;
  readonly inTheMaking: Map<string, Promise<GraphDocuments>>;
}

const documentCaches = new WeakMap<Manifest, DocumentCache>();

function documentCacheOf(manifest: Manifest): DocumentCache {
  const known = documentCaches.get(manifest);
  if (known !== undefined) return known;
  const made = new LRUCache<string, GraphDocuments>({
    maxSize: MAX_WEIGHT,
    sizeCalculation: ({ view }) => 1 + weightOf(view),
  });
  const shelf = { made, inTheMaking: new Map<string, Promise<GraphDocuments>>() };
  documentCaches.set(manifest, shelf);
  return shelf;
}

/** Returns the documents for `caller`: of the full graph, or only of the objects visible through its grants. */
export async function graphDocumentsFor(
  caller: Caller,
  extent: 'full' | 'governed',
  hasDecoder: boolean,
): Promise<GraphDocuments> {
  const { manifest, access } = caller;
  const { made, inTheMaking } = documentCacheOf(manifest);
  const key = extent === 'full' ? 'full' : `governed ${access.signature}`;
  const known = made.get(key) ?? inTheMaking.get(key);
  if (known !== undefined) return known;
  const isFull = extent === 'full';
  const view = inTurns(isFull ? fullViewSteps(manifest) : governedViewSteps(manifest, access));
  const readings = view.then((v) => new GraphDocuments(v, isFull ? manifest.version : null, hasDecoder));
  inTheMaking.set(key, readings);
  try {
    made.set(key, await readings);
    return await readings;
  } finally {
    inTheMaking.delete(key);
  }
}
