import { sql } from '../../base/sql.js';
import type { SystemEngine, SystemQueries } from '../../engine/index.js';
import { derivedTable, STORE_SCHEMA } from '../../model/facets/store-names.js';
import type { Facet } from '../../model/manifest/index.js';
import type { Embedder } from '../embed/embedder.js';
import type { ProbableWords } from '../redact/probable-words.js';
import type { RedactionCounts, Redactor, Redactors } from '../redact/redactors.js';
import {
  countWords,
  DERIVED_COLUMNS,
  fillBits,
  STORES,
  storeColumns,
  storeName,
  storeTables,
} from '../store/ddl.js';
import { bumpEpoch, type IndexRun } from '../store/run.js';
import { type ChunkedDocument, chunkRows, type Derivation, derivedRows } from './chunks.js';
import { contentHash, type ServedDocument, serveDocument, servedHash, servedId } from './served-document.js';
import type { SourceRow } from './source.js';

/** State shared by all batches of a run. */
export interface IndexContext {
  readonly system: SystemEngine;
  readonly facet: Facet;
  readonly run: IndexRun;
  readonly redactors: Redactors;
  readonly embedder: Embedder;
  readonly derivations: () => Promise<readonly Derivation[]>;
  readonly signal: AbortSignal | undefined;
  readonly redactions: RedactionCounts;
  readonly words: ProbableWords;
}

export interface BatchResult {
  readonly ids: readonly string[];
  readonly added: number;
  readonly changed: number;
  readonly chunks: number;
  /** Number of documents whose key contains a declared value; keys are not redacted. */
  readonly keysWithValues: number;
}

interface IndexedDocument {
  readonly content: string;
  readonly served: string;
}

interface ChangedDocument {
  readonly document: ServedDocument;
  readonly content: string;
  readonly served: string;
  readonly known: IndexedDocument | null;
  readonly redactor: Redactor;
}

/** Indexes new and changed documents in one transaction; does nothing if there are none. */
export async function indexBatch(
  context: IndexContext,
  documents: readonly SourceRow[],
): Promise<BatchResult> {
  const { facet, run } = context;
  const rules = await context.redactors.forKeys(documents.map((d) => d.key));
  for (const document of documents) context.words.add(document, rules(document.key).matcher);
  const ids = documents.map((d) => servedId(facet, d.id, rules(d.key), run.pseudonymKey));
  const keysWithValues = documents.filter(
    ({ key }) => key !== null && rules(key).matcher.find(key).length > 0,
  ).length;
  const known = await knownDocuments(context, ids);
  const work = documents.flatMap((document, i) => {
    const before = known.get(ids[i] ?? '') ?? null;
    const redactor = rules(document.key);
    const content = contentHash(document, redactor);
    return before?.content === content ? [] : [workOf(context, document, redactor, content, before)];
  });
  if (work.length === 0) return { ids, added: 0, changed: 0, chunks: 0, keysWithValues };
  const rewritten = work.filter((w) => w.known?.served !== w.served);
  const chunked = await chunkRows(facet, rewritten, context.embedder, run.averageLength, context.signal);
  const derivations = rewritten.length === 0 ? [] : await context.derivations();
  context.signal?.throwIfAborted();
  await context.system.transaction((tx) => writeBatch(tx, context, work, rewritten, chunked, derivations));
  return {
    ids,
    added: rewritten.filter((w) => w.known === null).length,
    changed: rewritten.filter((w) => w.known !== null).length,
    chunks: chunked.reduce((sum, c) => sum + c.rows.length, 0),
    keysWithValues,
  };
}

function workOf(
  context: IndexContext,
  source: SourceRow,
  redactor: Redactor,
  content: string,
  known: IndexedDocument | null,
): ChangedDocument {
  const { facet, run, redactions } = context;
  const document = serveDocument(facet, source, redactor, run.pseudonymKey, redactions);
  return { document, content, served: servedHash(document), known, redactor };
}

async function knownDocuments(
  { system, run }: IndexContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, IndexedDocument>> {
  const rows = await system.query(
    sql`select doc_id, content_hash, served_hash from ${STORES}.document
      where facet = $1 and version = $2 and doc_id = any($3::text[])`,
    [run.facet, run.version, ids],
  );
  return new Map(
    rows.map((r): [string, IndexedDocument] => [
      String(r['doc_id']),
      { content: String(r['content_hash']), served: String(r['served_hash']) },
    ]),
  );
}

async function writeBatch(
  tx: SystemQueries,
  context: IndexContext,
  work: readonly ChangedDocument[],
  rewritten: readonly ChangedDocument[],
  chunked: readonly ChunkedDocument[],
  derivations: readonly Derivation[],
): Promise<void> {
  const { run, facet, embedder } = context;
  await bumpEpoch(tx, run);
  const old = rewritten.filter((w) => w.known !== null).map((w) => w.document.id);
  if (old.length > 0) await deleteChunks(tx, context, old);
  const columns = storeColumns(facet, embedder.layout).map((c) => c.name);
  const rows = chunked.flatMap((c) => c.rows);
  await tx.copyIn({ schema: STORE_SCHEMA, table: run.table, columns }, rows);
  const written = rewritten.map((w) => w.document.id);
  await countWordsOf(tx, context, written, 1);
  const fill = fillBits(facet, run.version, embedder.layout);
  if (fill !== null) {
    await tx.query(sql`${fill} where doc_id = any($1::text[])`, [written]);
  }
  const derived = rewritten.flatMap((w, i) =>
    derivedRows(w.document, chunked[i]?.vectors ?? [], derivations),
  );
  if (derived.length > 0) {
    const table = derivedTable(run.facet, run.version);
    await tx.copyIn({ schema: STORE_SCHEMA, table, columns: [...DERIVED_COLUMNS] }, derived);
  }
  const counts = new Map(
    rewritten.map((w, i): [string, number] => [w.document.id, chunked[i]?.rows.length ?? 0]),
  );
  await tx.query(
    sql`insert into ${STORES}.document as d (facet, version, doc_id, content_hash, served_hash, chunks)
     select $1, $2, u.* from unnest($3::text[], $4::text[], $5::text[], $6::int4[]) as u
     on conflict (facet, version, doc_id) do update set content_hash = excluded.content_hash,
       served_hash = excluded.served_hash, chunks = case when excluded.chunks < 0 then d.chunks else excluded.chunks end`,
    [
      run.facet,
      run.version,
      work.map((w) => w.document.id),
      work.map((w) => w.content),
      work.map((w) => w.served),
      work.map((w) => counts.get(w.document.id) ?? -1),
    ],
  );
}

/** Removes documents that are no longer in the source. */
export async function removeDocuments(
  tx: SystemQueries,
  context: IndexContext,
  ids: readonly string[],
): Promise<void> {
  const { run } = context;
  await deleteChunks(tx, context, ids);
  await tx.query(
    sql`delete from ${STORES}.document where facet = $1 and version = $2 and doc_id = any($3::text[])`,
    [run.facet, run.version, ids],
  );
}

/** Updates word counts. Does nothing while a store is being built, whose words are counted once, at the end. */
async function countWordsOf(
  tx: SystemQueries,
  { run, embedder }: IndexContext,
  ids: readonly string[],
  by: 1 | -1,
): Promise<void> {
  const count = countWords(run.facet, run.version, embedder.layout, by);
  if (count !== null && !run.building) await tx.query(count, [ids]);
}

async function deleteChunks(tx: SystemQueries, context: IndexContext, ids: readonly string[]): Promise<void> {
  const { run, embedder } = context;
  await countWordsOf(tx, context, ids, -1);
  for (const table of storeTables(run.facet, run.version, embedder.layout)) {
    await tx.query(sql`delete from ${storeName(table)} where doc_id = any($1::text[])`, [ids]);
  }
}
