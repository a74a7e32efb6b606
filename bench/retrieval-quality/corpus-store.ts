import { ready } from 'osl-compiler';
import { sql } from '../../src/base/sql.js';
import {
  type IndexSummary,
  indexFacet,
  lexicalEmbedder,
  lexicalQuery,
  termsOf,
} from '../../src/content/index.js';
import { openEngine, type SystemEngine } from '../../src/engine/index.js';
import { parseManifest } from '../../src/model/manifest/index.js';

const MANIFEST = `version: 1
connectors:
  db:
    kind: pglite
    tables:
      corpus.text: { columns: { id: { type: text }, body: { type: text } } }
entities:
  text: { source: db.corpus.text, primary_key: [id], columns: [id] }
facets:
  body:
    source: db.corpus.text
    entity: text
    entity_key: id
    document_id: id
    text: body
    versions: { raw: {} }
    retrieval: { max_top_k: 100 }
`;

export interface StoredChunk {
  readonly documentId: string;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Texts in a real store with default chunking, on the embedded engine. */
export interface CorpusStore {
  readonly summary: IndexSummary;
  readonly chunks: readonly StoredChunk[];
  /** Indexes in `chunks` of the best `k`, using the default lane. */
  retrieve(query: string, k: number): Promise<readonly number[]>;
  close(): Promise<void>;
}

export async function openCorpusStore(corpora: ReadonlyMap<string, string>): Promise<CorpusStore> {
  await ready();
  const manifest = parseManifest(MANIFEST, 'bench.yaml');
  const facet = manifest.facets.get('body');
  if (facet === undefined) throw new Error('the bench has one facet');
  const engine = await openEngine({ kind: 'pglite', dataDir: null });
  const { system } = engine;
  await system.script(sql`create schema corpus; create table corpus.text (id text primary key, body text)`);
  for (const row of corpora) await system.query(sql`insert into corpus.text values ($1, $2)`, row);
  const [summary] = await indexFacet(system, manifest, facet, { embedder: lexicalEmbedder, batch: 1 });
  if (summary === undefined) throw new Error('the facet has one version');
  const rows = await system.query(
    sql`select chunk_id, doc_id, start_char, end_char, text from osl_content.body__raw order by chunk_id`,
  );
  const places = new Map(rows.map((r, i) => [String(r['chunk_id']), i]));
  return {
    summary,
    chunks: rows.map((r) => ({
      documentId: String(r['doc_id']),
      start: Number(r['start_char']),
      end: Number(r['end_char']),
      text: String(r['text']),
    })),
    retrieve: async (query, k) =>
      (await best(system, query, k, rows.length)).map((id) => places.get(id) ?? -1),
    close: () => engine.close(),
  };
}

async function best(
  system: SystemEngine,
  text: string,
  k: number,
  documents: number,
): Promise<readonly string[]> {
  const terms = termsOf(text);
  const found = await system.query(
    sql`select q.id, count(*) as n from unnest($1::int4[]) q(id)
       join osl_content.body__raw c on c.terms @> array[q.id] group by q.id`,
    [terms.ids],
  );
  const frequencies = new Map(found.map((r) => [Number(r['id']), Number(r['n'])]));
  const query = lexicalQuery(terms, { documents, documentFrequency: (id) => frequencies.get(id) ?? 0 });
  if (query === null) return [];
  const rows = await system.query(
    sql`select chunk_id from osl_content.body__raw where terms && $2::int4[]
      order by lex operator(public.<#>) $1::public.sparsevec, chunk_id limit $3::int4`,
    [query.vector, query.termIds, k],
  );
  return rows.map((r) => String(r['chunk_id']));
}
