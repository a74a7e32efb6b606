import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';
import { openEmbeddingEndpoint } from '../../src/content/index.js';
import { openEngine, type SystemEngine } from '../../src/engine/index.js';
import { type Findings, type Measure, measure, quantile, type Table } from '../report.js';
import { cpuSeconds } from '../support/child.js';
import { connected } from '../support/client.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { type PgvectorServer, startPgvector } from '../support/pgvector.js';
import { withClient } from '../support/postgres.js';
import {
  governed,
  type Outcome,
  outcomeOf,
  PLAIN_NAME,
  pairedOutcomes,
  plainExact,
  plainHnsw,
  type Search,
  TOP_K,
  truthOf,
} from './ask.js';
import { CHUNKS_PER_ENTITY, Corpus, DIMENSIONS } from './corpus.js';
import { type Embeddings, startEmbeddings } from './embeddings.js';
import { bandOf, CELLS, type Cell, manifestYaml, policyYaml, roleOf } from './grants.js';
import { type LexicalResult, lexicalLane } from './lexical.js';
import type { Neighbour } from './neighbour.js';
import { type LoadTimes, loadStore, serveAs, storeBytes } from './store.js';

/** Results of one cell at one corpus size. */
interface Result {
  readonly size: number;
  readonly cell: Cell;
  /** The default lanes, first run of each query: includes the call that embeds the query. */
  readonly exact: Outcome;
  /** The same queries again: their vectors are cached, as they are given in the statement sent directly. */
  readonly again: Outcome;
  /** Processor time of the gateway per query in `again`, all threads, in ms. */
  readonly cpuMs: number;
  /** The same facet with `approximate: true`. */
  readonly approximate: Outcome;
  readonly plain: Outcome;
  /** The statement behind the exact lanes, sent directly, each alternating with its query of `again`. */
  readonly direct: Outcome;
}

/** Size in bytes of a store of this corpus size. */
interface Size {
  readonly rows: number;
  readonly indexes: number;
}

/**
 * Recall and latency of RETRIEVE under row filters, on growing corpora of synthetic vectors, compared with pgvector
 * alone over the same rows in the same run. Measures whose id names no size are those of the largest corpus.
 */
export async function retrieveBench(quick: boolean): Promise<Findings> {
  const server = await startPgvector();
  if (typeof server === 'string') {
    process.stderr.write(`${server}\n`);
    return { measures: [], tables: [] };
  }
  const embeddings = await startEmbeddings();
  const results: Result[] = [];
  const lexical: LexicalResult[] = [];
  const loads: (LoadTimes & { readonly size: number })[] = [];
  const stores = new Map<string, Size>();
  let beside: readonly Measure[] = [];
  try {
    for (const size of sizes(quick)) {
      const queries = quick ? 20 : 40;
      const { load, found, store } = await atSize(server, embeddings, size, queries);
      loads.push({ size, ...load });
      results.push(...found);
      stores.set('dense', store);
      // The texts are generated here word by word: a million would take longer than everything else.
      if (size > MOST_TEXTS) continue;
      const words = await lexicalLane(server, size, queries);
      lexical.push(...words.results);
      stores.set('lexical', words.store);
      beside = neighbourMeasures(words.neighbour, words.rssMib);
    }
  } finally {
    await embeddings.close();
    await server.postgres.stop();
  }
  return {
    measures: [...measuresOf(results), ...lexicalMeasures(lexical), ...sizeMeasures(stores), ...beside],
    tables: [tableOf(results, loads, server.version)],
  };
}

const MOST_TEXTS = 130_000;

/** Corpus sizes; OSL_BENCH_CHUNKS overrides them, separated by commas. */
function sizes(quick: boolean): readonly number[] {
  const given = process.env['OSL_BENCH_CHUNKS'];
  if (given !== undefined && given !== '') return given.split(',').map(Number);
  return quick ? [10_000] : [10_000, 100_000, 1_000_000];
}

async function atSize(
  server: PgvectorServer,
  embeddings: Embeddings,
  size: number,
  queries: number,
): Promise<{ readonly load: LoadTimes; readonly found: readonly Result[]; readonly store: Size }> {
  const { url, readerUrl } = server.postgres;
  const embedder = await openEmbeddingEndpoint({ url: embeddings.url, model: 'synthetic', keyEnv: null });
  const engine = await openEngine({ kind: 'postgres', url: readerUrl, systemUrl: url, poolSize: 1 });
  try {
    const corpus = new Corpus(1);
    const load = await loadStore(engine.system, corpus, embedder, size);
    say(`${size} chunks: rows ${load.rows.toFixed(1)} s, indexes ${load.indexes.toFixed(1)} s`);
    const asked = CELLS.map((cell) => {
      const vectors = Array.from({ length: queries }, (_, i) => corpus.near(bandOf(cell, i)));
      return { cell, vectors, texts: vectors.map((v) => embeddings.textOf(v)) };
    });
    const exact = await ours(engine.system, server, embeddings, asked, false, size);
    const approximate = await ours(engine.system, server, embeddings, asked, true, size);
    const plain = await theirs(server, asked, plainHnsw);
    const found = asked.map(({ cell }, i): Result => {
      const [a, b, c] = [exact[i], approximate[i], plain[i]];
      if (a === undefined || b === undefined || c === undefined) throw new Error('a cell was not asked');
      const { first, again, direct, cpuMs } = a;
      return { size, cell, exact: first, again, direct, cpuMs, approximate: b.first, plain: c };
    });
    return { load, found, store: await storeBytes(engine.system, 'chunk', embedder) };
  } finally {
    await engine.close();
    await embedder.close();
  }
}

interface Asked {
  readonly cell: Cell;
  readonly vectors: readonly string[];
  readonly texts: readonly string[];
}

/** Results of the gateway for one cell. */
interface Ours {
  readonly first: Outcome;
  readonly again: Outcome;
  readonly direct: Outcome;
  readonly cpuMs: number;
}

/** Runs the gateway as a user does and queries it over the wire. */
async function ours(
  system: SystemEngine,
  server: PgvectorServer,
  embeddings: Embeddings,
  asked: readonly Asked[],
  approximate: boolean,
  size: number,
): Promise<readonly Ours[]> {
  await serveAs(system, approximate);
  const dir = mkdtempSync(join(tmpdir(), 'osl-retrieve-'));
  const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(manifestFile, manifestYaml(approximate));
  writeFileSync(policyFile, policyYaml());
  const environment = { OSL_EMBEDDINGS_URL: embeddings.url };
  const gateway = await startGateway({ manifestFile, policyFile, postgres: server.postgres, environment });
  try {
    const outcomes: Ours[] = [];
    for (const { cell, vectors, texts } of asked) {
      const found = await withClient(server.postgres.url, async (plain) => {
        const truth = await truthOf(plain, cell, vectors);
        return withGateway(gateway, cell, async (client) => {
          const search = governed(client, texts);
          const first = await outcomeOf(search, truth);
          const before = cpuSeconds(gateway.child.pid);
          const [again, direct] = await pairedOutcomes(search, plainExact(plain, cell, vectors), truth);
          const cpuMs = ((cpuSeconds(gateway.child.pid) - before) * 1_000) / truth.length;
          return { first, again, direct, cpuMs };
        });
      });
      say(
        `${size} ${cell.permitted} % ${cell.relation}, ${approximate ? 'approximate' : 'exact'}: ${brief(found.first)}`,
      );
      outcomes.push(found);
    }
    return outcomes;
  } finally {
    await gateway.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function withGateway<T>(
  gateway: Gateway,
  cell: Cell,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connected(gateway, `user:${roleOf(cell)}`, roleOf(cell));
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function theirs(
  server: PgvectorServer,
  asked: readonly Asked[],
  way: (client: Client, cell: Cell, vectors: readonly string[]) => Promise<Search>,
): Promise<readonly Outcome[]> {
  return withClient(server.postgres.url, async (client) => {
    const outcomes: Outcome[] = [];
    for (const { cell, vectors } of asked) {
      await client.query('reset all');
      const truth = await truthOf(client, cell, vectors);
      const outcome = await outcomeOf(await way(client, cell, vectors), truth);
      say(`${cell.permitted} % ${cell.relation}, pgvector by itself: ${brief(outcome)}`);
      outcomes.push(outcome);
    }
    return outcomes;
  });
}

/** Prints progress, because a run takes many minutes. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function brief({ recalls, times, short }: Outcome): string {
  return `recall ${mean(recalls).toFixed(3)}, p95 ${p95(times).toFixed(1)} ms, ${short} short`;
}

function measuresOf(results: readonly Result[]): readonly Measure[] {
  const largest = Math.max(...results.map((r) => r.size));
  const all = results.map((r) => ({ ...r, id: idOf(r, largest) }));
  const short = (of: (r: Result) => Outcome): number => results.reduce((sum, r) => sum + of(r).short, 0);
  const asked = results.reduce((sum, r) => sum + r.exact.times.length, 0);
  const [ours, plain] = [short((r) => r.exact) + short((r) => r.approximate), short((r) => r.plain)];
  return [
    value('retrieve.chunks', 'chunks of the plain ids', largest, [largest, largest], 1, null, null),
    ...all.map(({ id, exact, plain: p }) =>
      against(`retrieve.recall.${id}`, '', exact.recalls, p.recalls, mean),
    ),
    ...all.map(({ id, exact, plain: p }) =>
      against(`retrieve.p95_ms.${id}`, 'ms', exact.times, p.times, p95),
    ),
    ...all.map(({ id, again, direct }) =>
      compared(`retrieve.p50_ms.${id}`, again.times, 'the same search sent directly', direct.times),
    ),
    ...all.map(({ id, exact, direct }) =>
      compared(
        `retrieve.first.p50_ms.${id}`,
        exact.times,
        'the search alone, its vector given, sent directly',
        direct.times,
      ),
    ),
    ...fixedCosts(results, largest),
    value(
      'retrieve.short',
      'queries',
      ours,
      [ours, ours],
      2 * asked,
      `${PLAIN_NAME}: ${plain} of ${asked}`,
      null,
    ),
  ];
}

/** Overhead of a query compared with its statement sent directly, for statements fast enough for it to show. */
function fixedCosts(results: readonly Result[], largest: number): readonly Measure[] {
  const small = results.filter((r) => r.size === largest && p50(r.direct.times) < SMALL_MS);
  if (small.length === 0) return [];
  const beside = small.flatMap((r) => r.again.times.map((ms, i) => ms - (r.direct.times[i] ?? 0)));
  const text = `medians of pairs whose statement alone takes less than ${SMALL_MS} ms`;
  return [
    measure('retrieve.fixed_ms', 'ms', beside, text),
    measure(
      'retrieve.fixed_cpu_ms',
      'ms',
      small.map((r) => r.cpuMs),
      'of the gateway, all threads',
    ),
  ];
}

const SMALL_MS = 3;

/** Measures of the largest text corpus. `first` includes counting the words of a query; the others reuse the counts. */
function lexicalMeasures(results: readonly LexicalResult[]): readonly Measure[] {
  const largest = Math.max(...results.map((r) => r.size));
  return results
    .filter((r) => r.size === largest)
    .flatMap(({ permitted, first, again, direct, beside, textSearch }) => [
      compared(`retrieve.lexical.p50_ms.${permitted}`, again.times, LEXICAL_DIRECT, direct.times),
      compared(`retrieve.lexical.vs_text_search.${permitted}`, beside.times, TEXT_SEARCH, textSearch.times),
      compared(`retrieve.lexical.first.p50_ms.${permitted}`, first.times, LEXICAL_DIRECT, direct.times),
      value(
        `retrieve.lexical.recall.${permitted}`,
        '',
        mean(again.recalls),
        [Math.min(...again.recalls), Math.max(...again.recalls)],
        again.recalls.length,
        `${largest} chunks`,
        null,
      ),
    ]);
}

const TEXT_SEARCH = 'tsvector, GIN and ts_rank over any of the words, under the same filter';
const LEXICAL_DIRECT = 'the same search sent directly, its words counted before';

/**
 * Ratio of a point query's p99 alongside OUTLIER over 1,000 passages to its p99 alone: 1 is undisturbed. The floor is
 * the effect of a busy thread unrelated to the gateway.
 */
function neighbourMeasures({ alone, beside, besideSpin }: Neighbour, rssMib: number): readonly Measure[] {
  const [own, shared, floor] = [p99(alone), p99(beside), p99(besideSpin)];
  const aloneText = `alone: ${Number(own.toPrecision(4))} ms`;
  const ratio = (id: string, mine: number, their: number, text: string): Measure => {
    const times = mine / their;
    return value(id, 'times', times, [times, times], beside.length, text, their / mine);
  };
  return [
    ratio('operators.neighbour_p99', shared, own, aloneText),
    ratio('operators.neighbour_floor_p99', floor, own, `${aloneText}; beside a thread that spins`),
    ratio(
      'operators.neighbour_vs_floor',
      shared,
      floor,
      `beside a thread that spins: ${Number(floor.toPrecision(4))} ms`,
    ),
    value('retrieve.gateway.rss_mib', 'MiB', rssMib, [rssMib, rssMib], 1, null, null),
  ];
}

function sizeMeasures(stores: ReadonlyMap<string, Size>): readonly Measure[] {
  const mib = (id: string, bytes: number): Measure => {
    const size = bytes / 2 ** 20;
    return value(id, 'MiB', size, [size, size], 1, null, null);
  };
  return [...stores].flatMap(([lane, { rows, indexes }]) => [
    mib(`retrieve.${lane}.rows_mib`, rows),
    mib(`retrieve.${lane}.indexes_mib`, indexes),
  ]);
}

/** Median times, ours and theirs. */
function compared(id: string, ours: readonly number[], name: string, theirs: readonly number[]): Measure {
  const [mine, their] = [p50(ours), p50(theirs)];
  const text = `${name}: ${Number(their.toPrecision(4))}`;
  return value(id, 'ms', mine, [Math.min(...ours), Math.max(...ours)], ours.length, text, their / mine);
}

/** Suffix of a measure's id: `10`, `10.anticorrelated`, `10.at_100k.correlated`. */
function idOf({ size, cell }: Result, largest: number): string {
  const at = size === largest ? '' : `.at_${size / 1_000}k`;
  return `${cell.permitted}${at}${cell.relation === 'uncorrelated' ? '' : `.${cell.relation}`}`;
}

function against(
  id: string,
  unit: string,
  ours: readonly number[],
  theirs: readonly number[],
  of: (values: readonly number[]) => number,
): Measure {
  const [mine, their] = [of(ours), of(theirs)];
  const ratio = unit === 'ms' ? their / mine : mine / their;
  const text = `${PLAIN_NAME}: ${Number(their.toPrecision(4))}`;
  return value(id, unit, mine, [Math.min(...ours), Math.max(...ours)], ours.length, text, ratio);
}

function value(
  id: string,
  unit: string,
  number: number,
  spread: readonly [number, number],
  n: number,
  againstText: string | null,
  ratio: number | null,
): Measure {
  const short = (x: number): number => Number(x.toPrecision(4));
  return {
    id,
    value: short(number),
    unit,
    against: againstText,
    ratio: ratio === null || !Number.isFinite(ratio) ? null : short(ratio),
    spread: [short(spread[0]), short(spread[1])],
    n,
  };
}

function tableOf(
  results: readonly Result[],
  loads: readonly (LoadTimes & { readonly size: number })[],
  version: string,
): Table {
  const loaded = loads.map(
    (l) => `${l.size}: rows ${l.rows.toFixed(0)} s, indexes ${l.indexes.toFixed(0)} s`,
  );
  const about =
    `Recall at ${TOP_K} against every permitted row compared, 95th percentile of the time in ms, and queries that ` +
    `returned too few, on ${version}. ${DIMENSIONS}-d vectors in 1,000 clusters, ${CHUNKS_PER_ENTITY} chunks an ` +
    'entity. Ours: over the wire, with policy, audit, the embedding call to a local endpoint, and the check that ' +
    `the entity is visible. Plain: ${PLAIN_NAME}, in one session, with neither. Loading: ${loaded.join('; ')}.`;
  const cells = ({ recalls, times, short }: Outcome): string[] => [
    mean(recalls).toFixed(3),
    p95(times).toFixed(1),
    String(short),
  ];
  const ways = ['exact', 'approximate', 'plain'].flatMap((w) => [`${w}: recall`, 'p95', 'short']);
  return {
    name: 'retrieve: by lane',
    about,
    head: ['chunks', 'permitted', 'query and grant', ...ways],
    rows: results.map(({ size, cell, exact, approximate, plain }) => [
      String(size),
      `${cell.permitted} %`,
      cell.relation,
      ...cells(exact),
      ...cells(approximate),
      ...cells(plain),
    ]),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, v) => sum + v, 0) / Math.max(1, values.length);
}

function p50(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

function p99(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.99,
  );
}

function p95(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.95,
  );
}
