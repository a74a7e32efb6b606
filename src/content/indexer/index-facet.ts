import { sql } from '../../base/sql.js';
import type { SystemEngine, SystemQueries } from '../../engine/index.js';
import { STORE_SCHEMA } from '../../model/facets/store-names.js';
import type { DeclaredFacetVersion, Facet, Manifest } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import type { Embedder } from '../embed/embedder.js';
import type { Exception } from '../redact/matcher.js';
import { type ProbableWord, ProbableWords } from '../redact/probable-words.js';
import { openRedactors, type Redactors, type SkippedColumn } from '../redact/redactors.js';
import {
  DEFAULT_MIN_LENGTH,
  prepareContent,
  settingsHash,
  storeState,
  versionNamed,
} from '../store/control.js';
import {
  createIndexes,
  fillWords,
  forgetWords,
  STORES,
  storeName,
  storeTables,
  WIDEST_INDEXED,
} from '../store/ddl.js';
import { beginRun, bumpEpoch, type IndexRun } from '../store/run.js';
import { type IndexContext, indexBatch, removeDocuments } from './batch.js';
import { derivationsOf, lengthOf } from './chunks.js';
import { serveDocument } from './served-document.js';
import { countDocuments, documentPages, someDocuments, type UnreadableDocument } from './source.js';

export interface IndexProgress {
  readonly facet: string;
  readonly version: string;
  readonly done: number;
  readonly total: number;
  readonly chunks: number;
  readonly documentsPerSecond: number;
  /** Estimated remaining time; null until a rate is known. */
  readonly secondsLeft: number | null;
}

export type OnIndexProgress = (progress: IndexProgress) => void;

/** Computes the progress of a run. The rate is averaged over the whole run, so that the estimate does not jump. */
function progressOf(
  place: Pick<IndexProgress, 'facet' | 'version' | 'total'>,
  done: number,
  chunks: number,
  elapsedMs: number,
): IndexProgress {
  const rate = elapsedMs > 0 ? (done * 1_000) / elapsedMs : 0;
  const total = Math.max(place.total, done);
  return {
    ...place,
    total,
    done,
    chunks,
    documentsPerSecond: Math.round(rate * 10) / 10,
    secondsLeft: rate > 0 ? Math.round((total - done) / rate) : null,
  };
}

export interface IndexOptions {
  readonly embedder: Embedder;
  /** Versions to index. Default: all declared versions, in order. */
  readonly versions?: readonly string[];
  /** Number of documents per transaction. Default: 50. */
  readonly batch?: number;
  /** Declared values that are shorter than this after folding are not searched for. Default: 3. */
  readonly minLength?: number;
  readonly signal?: AbortSignal;
  /**
   * Start of the indexing round, recorded in the stores. Default: now. Null keeps the recorded time, for a round caused
   * by a changed row.
   */
  readonly readAt?: Date | null;
}

export interface IndexSummary {
  readonly facet: string;
  readonly version: string;
  readonly documents: number;
  readonly chunks: number;
  /** Number of documents added in this run. */
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly unreadable: readonly UnreadableDocument[];
  readonly redactions: {
    /** Number of replacements in this run, by sensitivity label or detector. */
    readonly byKind: Readonly<Record<string, number>>;
    /** Number of distinct declared values that were searched for. */
    readonly values: number;
    readonly exceptions: Readonly<Partial<Record<Exception, number>>>;
    readonly skippedColumns: readonly SkippedColumn[];
    readonly words: readonly ProbableWord[];
    /** Number of documents whose entity key contains a value to redact. It stays visible: keys are not redacted. */
    readonly keysWithValues: number;
  };
  readonly tookMs: number;
}

const DEFAULT_BATCH = 50;

/**
 * Brings a facet's stores up to date with its source, one store after another, with one transaction per batch of
 * documents. If a run is killed, the next run continues it. A ready store stays readable meanwhile; if its settings
 * changed, a new store is built next to it.
 *
 * @throws ContentError `unknownVersion`, `unknownDetector`, `documentIds`, `vectorExtension`, `tooWide`, `overtaken`,
 * and those of the embedder; UpstreamFailure; the reason of `signal` if aborted
 */
export async function indexFacet(
  system: SystemEngine,
  manifest: Manifest,
  facet: Facet,
  options: IndexOptions,
  onProgress: OnIndexProgress = () => {},
): Promise<readonly IndexSummary[]> {
  checkWidth(facet, options.embedder);
  await prepareContent(system);
  const { readAt = new Date() } = options;
  const versions = (options.versions ?? [...facet.versions.keys()]).map((name) => versionNamed(facet, name));
  const summaries: IndexSummary[] = [];
  for (const version of versions) {
    summaries.push(await indexVersion(system, manifest, facet, version, { ...options, readAt }, onProgress));
  }
  await system.grantRead(STORE_SCHEMA);
  return summaries;
}

function checkWidth(facet: Facet, { layout }: Embedder): void {
  if (!facet.approximate || layout.kind === 'lexical') return;
  const widest = WIDEST_INDEXED[layout.type];
  if (layout.dimensions <= widest) return;
  throw new ContentError(
    'tooWide',
    `an approximate index takes vectors of ${widest} numbers at most, and those of \`${facet.embeddingModel}\` have ${layout.dimensions}`,
    `leave \`approximate\` out of facet \`${facet.name}\``,
  );
}

async function indexVersion(
  system: SystemEngine,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  options: IndexOptions,
  onProgress: OnIndexProgress,
): Promise<IndexSummary> {
  const start = performance.now();
  const { embedder, signal, minLength = DEFAULT_MIN_LENGTH } = options;
  const redactors = await openRedactors(system, manifest, facet, version, minLength);
  const derivations = derivationsOf(facet, embedder, signal);
  const total = await countDocuments(system, facet);
  const settings = settingsHash(facet, version, minLength);
  const average = await firstLength(system, facet, version, embedder, settings, redactors);
  const run = await beginRun(system, facet, version, embedder, settings, average);
  const redactions = new Map<string, number>();
  const words = new ProbableWords();
  const of = { system, facet, run, redactors, embedder, derivations, signal };
  const context: IndexContext = { ...of, redactions, words };
  const place = { facet: facet.name, version: version.name, total };
  const pass = await indexPages(context, options.batch ?? DEFAULT_BATCH, (done, chunks) =>
    onProgress(progressOf(place, done, chunks, performance.now() - start)),
  );
  const end = await finish(context, pass.seen, options.readAt ?? null);
  return {
    facet: facet.name,
    version: version.name,
    ...end,
    added: pass.added,
    changed: pass.changed,
    unreadable: pass.unreadable,
    redactions: {
      byKind: Object.fromEntries([...context.redactions].sort()),
      ...redactors.counted(),
      skippedColumns: redactors.skipped,
      words: pass.added + pass.changed === 0 ? [] : words.words(),
      keysWithValues: pass.keysWithValues,
    },
    tookMs: Math.round(performance.now() - start),
  };
}

const MEASURED = 2_000;

/** Estimates the average document length for BM25 in a new store; returns an unused 1 for dense and existing stores. */
async function firstLength(
  system: SystemEngine,
  facet: Facet,
  version: DeclaredFacetVersion,
  { layout, fingerprint }: Embedder,
  settings: string,
  redactors: Redactors,
): Promise<number> {
  const known = await storeState(system, facet.name, version.name);
  if (layout.kind === 'dense' || (known?.fingerprint === fingerprint && known.settings === settings))
    return 1;
  const sources = await someDocuments(system, facet, MEASURED);
  const rules = await redactors.forKeys(sources.map((d) => d.key));
  const documents = sources.map((source) => {
    const redactor = rules(source.key);
    // Pseudonyms and redaction counts have no effect on the length.
    return { document: serveDocument(facet, source, redactor, '', new Map()), redactor };
  });
  return lengthOf(facet, documents);
}

interface IndexPass {
  readonly seen: ReadonlySet<string>;
  readonly added: number;
  readonly changed: number;
  readonly keysWithValues: number;
  readonly unreadable: readonly UnreadableDocument[];
}

async function indexPages(
  context: IndexContext,
  size: number,
  onBatch: (done: number, chunks: number) => void,
): Promise<IndexPass> {
  const seen = new Set<string>();
  const unreadable: UnreadableDocument[] = [];
  let [added, changed, chunks, keysWithValues] = [0, 0, 0, 0];
  for await (const page of documentPages(context.system, context.facet, size, (one) =>
    unreadable.push(one),
  )) {
    context.signal?.throwIfAborted();
    const result = await indexBatch(context, page);
    for (const id of result.ids) seen.add(id);
    keysWithValues += result.keysWithValues;
    added += result.added;
    changed += result.changed;
    chunks += result.chunks;
    onBatch(seen.size, chunks);
  }
  return { seen, added, changed, keysWithValues, unreadable };
}

/** Removes documents that are no longer in the source and marks the store as ready, in one transaction. */
async function finish(
  context: IndexContext,
  seen: ReadonlySet<string>,
  readAt: Date | null,
): Promise<{ documents: number; chunks: number; removed: number }> {
  const { system, facet, run, embedder } = context;
  // Must precede the change to `ready`, after which a gateway may use the store immediately.
  await system.grantRead(STORE_SCHEMA);
  return system.transaction(async (tx) => {
    const gone = await goneDocuments(tx, run, seen);
    if (gone.length > 0 || run.building) await bumpEpoch(tx, run);
    if (gone.length > 0) await removeDocuments(tx, context, gone);
    const ofWords = run.building ? fillWords : forgetWords;
    await tx.script(ofWords(facet.name, run.version, embedder.layout) ?? sql``);
    if (run.building) await tx.script(createIndexes(facet, run.version, embedder.layout));
    const { documents, chunks } = await countHeld(tx, run);
    const ended = await tx.query(
      sql`update ${STORES}.facet set state = 'ready', documents = $4, chunks = $5,
              indexed_at = coalesce($6::timestamptz, indexed_at, pg_catalog.now())
        where facet = $1 and version = $2 and run = $3 returning 1 as y`,
      [run.facet, run.version, run.id, documents, chunks, readAt?.toISOString() ?? null],
    );
    if (ended.length === 0) {
      throw new ContentError('overtaken', `another indexing of \`${run.facet}\` took over`);
    }
    for (const table of storeTables(facet.name, run.version, embedder.layout))
      await tx.script(sql`analyze ${storeName(table)}`);
    return { documents, chunks, removed: gone.length };
  });
}

async function goneDocuments(
  tx: SystemQueries,
  run: IndexRun,
  seen: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { documents } = await countHeld(tx, run);
  if (documents === seen.size) return [];
  const held = await tx.query(sql`select doc_id from ${STORES}.document where facet = $1 and version = $2`, [
    run.facet,
    run.version,
  ]);
  return held.map((r) => String(r['doc_id'])).filter((id) => !seen.has(id));
}

async function countHeld(tx: SystemQueries, run: IndexRun): Promise<{ documents: number; chunks: number }> {
  const [row] = await tx.query(
    sql`select pg_catalog.count(*) as n, coalesce(pg_catalog.sum(chunks), 0) as c
       from ${STORES}.document where facet = $1 and version = $2`,
    [run.facet, run.version],
  );
  return { documents: Number(row?.['n']), chunks: Number(row?.['c']) };
}
