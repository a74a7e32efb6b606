import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';
import { generatedSql, sql } from '../../src/base/sql.js';
import {
  lexicalEmbedder,
  lexicalQuery,
  prepareContent,
  storeColumns,
  termsOf,
  vectorText,
} from '../../src/content/index.js';
import { lexicalWeights, measuredLength } from '../../src/content/lexical/bm25.js';
import { dropStore } from '../../src/content/store/control.js';
import { createIndexes, fillWords, storeName } from '../../src/content/store/ddl.js';
import { beginRun } from '../../src/content/store/run.js';
import { openEngine, type SystemEngine } from '../../src/engine/index.js';
import { STORE_SCHEMA, storeTable } from '../../src/model/facets/store-names.js';
import { type Facet, parseManifest } from '../../src/model/manifest/index.js';
import { residentMib } from '../support/child.js';
import { connected } from '../support/client.js';
import { startGateway } from '../support/gateway.js';
import type { PgvectorServer } from '../support/pgvector.js';
import { withClient } from '../support/postgres.js';
import { type Outcome, outcomeOf, pairedOutcomes, type Search, TOP_K } from './ask.js';
import { CHUNKS_PER_ENTITY, mulberry32, PARTS } from './corpus.js';
import { PERMITTED, type Permitted } from './grants.js';
import { type Neighbour, neighbour } from './neighbour.js';
import { makeEntities, settleStore, storeBytes } from './store.js';

/** Results of the lexical lane for one share of a corpus. */
export interface LexicalResult {
  readonly size: number;
  readonly permitted: Permitted['permitted'];
  /** First run of each query: its words are counted. */
  readonly first: Outcome;
  /** The same queries again, with no writes in between. */
  readonly again: Outcome;
  /** The statement that finds the passages, sent directly, with the weights of the words as parameters. */
  readonly direct: Outcome;
  /** The same queries, each alternating with its counterpart in `textSearch`. */
  readonly beside: Outcome;
  /** Postgres text search over the same texts with the same filter: the best by `ts_rank` that contain any word. */
  readonly textSearch: Outcome;
}

const STORE = storeName(storeTable('note', 'raw'));
const VOCABULARY = 20_000;
const WORDS = 90;
const WORDS_ASKED = 4;
const COMMON_WORDS = 'w1x w2x';

/** The lexical lane under row filters, over texts with the word frequencies of natural language. */
export async function lexicalLane(
  server: PgvectorServer,
  size: number,
  queries: number,
): Promise<{
  readonly results: readonly LexicalResult[];
  readonly store: Awaited<ReturnType<typeof storeBytes>>;
  readonly neighbour: Neighbour;
  /** Resident memory of the gateway after all queries. */
  readonly rssMib: number;
}> {
  const { url, readerUrl } = server.postgres;
  const engine = await openEngine({ kind: 'postgres', url: readerUrl, systemUrl: url, poolSize: 1 });
  const dir = mkdtempSync(join(tmpdir(), 'osl-lexical-'));
  const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(manifestFile, MANIFEST);
  writeFileSync(policyFile, POLICY);
  try {
    const words = wordsOf(mulberry32(1));
    await load(engine.system, words, size);
    const gateway = await startGateway({ manifestFile, policyFile, postgres: server.postgres });
    try {
      const results: LexicalResult[] = [];
      for (const { permitted, below } of PERMITTED) {
        const texts = Array.from({ length: queries }, () => words(WORDS_ASKED));
        const { direct, truth } = await withClient(url, (client) => directly(client, texts, below));
        const client = await connected(gateway, `user:shard${below}`, `shard${below}`);
        // Warm up: the gateway's very first queries must not count.
        await client.query(TEXT, [words(WORDS_ASKED)]);
        const first = await outcomeOf(governed(client, texts), truth, 0);
        const again = await outcomeOf(governed(client, texts), truth, 0);
        const [beside, textSearch] = await withClient(url, (plain) =>
          pairedOutcomes(governed(client, texts), byTextSearch(plain, texts, below), truth),
        );
        await client.end();
        results.push({ size, permitted, first, again, direct, beside, textSearch });
      }
      const store = await storeBytes(engine.system, 'note', lexicalEmbedder);
      const beside = await neighbour(gateway, COMMON_WORDS, [`user:shard${PARTS}`, `shard${PARTS}`]);
      return { results, store, neighbour: beside, rssMib: residentMib(gateway.child.pid) };
    } finally {
      await gateway.stop();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
    await engine.close();
  }
}

const TEXT = `select cite from RETRIEVE(facet => 'note', query => $1, top_k => ${TOP_K})`;

function governed(client: Client, texts: readonly string[]): Search {
  return async (i) => {
    const { rows } = await client.query<{ cite: { chunk_id: string } }>(TEXT, [texts[i]]);
    return rows.map((r) => r.cite.chunk_id);
  };
}

/** pgvector alone: the same nearest-neighbour search over the same rows, comparing each. */
async function directly(client: Client, texts: readonly string[], below: number) {
  const among = `from ${STORE} where shard < ${below}`;
  const counted = await client.query<{ n: string }>(`select count(*) as n ${among}`);
  const asked: { readonly vector: string; readonly terms: readonly number[] }[] = [];
  for (const text of texts) {
    const terms = termsOf(text);
    const { rows } = await client.query<{ term: number; n: string }>(
      `select term, (select count(*) ${among} and terms @> array[term]) as n from unnest($1::int4[]) as term`,
      [terms.ids],
    );
    const frequencies = new Map(rows.map((r) => [r.term, Number(r.n)]));
    const query = lexicalQuery(terms, {
      documents: Number(counted.rows[0]?.n ?? 0),
      documentFrequency: (id) => frequencies.get(id) ?? 0,
    });
    asked.push({ vector: query?.vector ?? '{}/1048576', terms: query?.termIds ?? [] });
  }
  const search: Search = async (i) => {
    const { rows } = await client.query<{ chunk_id: string }>(
      `select chunk_id, text ${among} and terms && $2::int4[] order by lex <#> $1::sparsevec, chunk_id limit ${TOP_K}`,
      [asked[i]?.vector, asked[i]?.terms],
    );
    return rows.map((r) => r.chunk_id);
  };
  const truth: (readonly string[])[] = [];
  for (const i of texts.keys()) truth.push(await search(i));
  return { truth, direct: await outcomeOf(search, truth, 0) };
}

/** A table of the same passages, laid out for Postgres text search. */
const PLAIN_NOTES = `
  drop table if exists bench.plain_note;
  create table bench.plain_note as
    select chunk_id as id, entity_key as entity_id, shard, text as body, to_tsvector('english', text) as words from ${STORE};
  create index on bench.plain_note using gin (words);
  create index on bench.plain_note (shard);
  alter table bench.plain_note add primary key (id);
`;

/** A query as written without a gateway: rows of a share, with an existing entity, that contain any of the words. */
function byTextSearch(client: Client, texts: readonly string[], below: number): Search {
  const sql = `
    select n.id, n.body from bench.plain_note n, to_tsquery('english', $1) as q
     where n.shard < ${below} and n.words @@ q and exists (select from bench.entity e where e.id = n.entity_id)
     order by ts_rank(n.words, q) desc, n.id limit ${TOP_K}`;
  return async (i) => {
    const any = (texts[i] ?? '').split(' ').join(' | ');
    const { rows } = await client.query<{ id: string }>(sql, [any]);
    return rows.map((r) => r.id);
  };
}

/** Random words with frequencies that follow Zipf's law by position in the vocabulary. */
function wordsOf(random: () => number): (count: number) => string {
  const word = (): string => `w${Math.floor(VOCABULARY ** random())}x`;
  return (count) => Array.from({ length: count }, word).join(' ');
}

function facet(): Facet {
  const found = parseManifest(MANIFEST, 'bench.yaml').facets.get('note');
  if (found === undefined) throw new Error('the bench has one facet');
  return found;
}

/** Loads the product's own store: copies rows straight into it and creates the indexes as the indexer does. */
async function load(system: SystemEngine, words: (count: number) => string, size: number): Promise<void> {
  const note = facet();
  const version = note.versions.get('raw');
  if (version === undefined) throw new Error('the facet has one version');
  await prepareContent(system);
  await dropStore(system, note.name, version.name);
  await makeEntities(system, size);
  const average = measuredLength([termsOf(words(WORDS)).length], note.chunking.maxChars);
  const run = await beginRun(system, note, version, lexicalEmbedder, 'loading', average);
  const columns = storeColumns(note, lexicalEmbedder.layout).map((c) => c.name);
  // The operators' input is not measured here, so every passage has the same.
  const [ngrams] = await lexicalEmbedder.embed(['a note'], 'document');
  const dense = vectorText(ngrams ?? new Float32Array());
  const random = mulberry32(2);
  const rows = function* (): Generator<readonly (string | null)[]> {
    for (let i = 0; i < size; i++) {
      const id = `d${String(i).padStart(8, '0')}`;
      const text = words(WORDS);
      const terms = termsOf(text);
      const entity = String(Math.floor(i / CHUNKS_PER_ENTITY));
      const shard = String(Math.floor(random() * PARTS));
      const own = [
        `${id}#00000`,
        id,
        'main',
        entity,
        '0',
        '0',
        `${text.length}`,
        text,
        id.repeat(7),
        shard,
        '{}',
      ];
      yield [...own, `${terms.length}`, `{${terms.ids.join(',')}}`, lexicalWeights(terms, average), dense];
    }
  };
  await system.copyIn({ schema: STORE_SCHEMA, table: run.table, columns }, rows());
  await system.script(fillWords(note.name, version.name, lexicalEmbedder.layout) ?? sql``);
  await system.script(createIndexes(note, version.name, lexicalEmbedder.layout));
  await settleStore(system, note, lexicalEmbedder, size);
  await system.script(generatedSql(PLAIN_NOTES));
  await system.script(sql`vacuum analyze bench.plain_note`);
}

const MANIFEST = `version: 1
tenant: bench
connectors:
  main:
    kind: postgres
    url_env: BENCH_DATABASE_URL
    tables:
      bench.entity: { columns: { id: { type: int4, nullable: false } } }
      bench.note:
        columns:
          id: { type: text, nullable: false }
          entity_id: { type: int4, nullable: false }
          shard: { type: int4, nullable: false }
          body: { type: text, nullable: false }
entities:
  entity: { source: main.bench.entity, primary_key: [id], columns: [id] }
facets:
  note:
    source: main.bench.note
    entity: entity
    entity_key: entity_id
    document_id: id
    text: body
    metadata: [shard]
    scalar_indexed: [shard]
    versions: { raw: {} }
    retrieval: { max_top_k: 1000 }
`;

const POLICY = `version: 1
tenant: bench
subjects:
${PERMITTED.map(({ below }) => `  user:shard${below}: { ceiling: [shard${below}] }`).join('\n')}
roles:
${PERMITTED.map(
  ({ below }) => `  shard${below}:
    grants:
      - { on: entity, columns: "*" }
      - { on: note, columns: "*"${below === PARTS ? '' : `, rows: "shard < ${below}"`} }`,
).join('\n')}
masks: {}
limits: { query: 1000000, catalog: 1000000 }
`;
