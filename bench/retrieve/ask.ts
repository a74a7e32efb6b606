import type { Client } from 'pg';
import { type Cell, roleOf } from './grants.js';
import { STORE } from './store.js';

/** Number of passages that each query requests. */
export const TOP_K = 10;

/** Result of one search method for one cell. */
export interface Outcome {
  /** Recall of each query: share of the true best that it found. */
  readonly recalls: readonly number[];
  /** Time of each query in ms. */
  readonly times: readonly number[];
  /** Number of queries that returned fewer rows than min(k, permitted). */
  readonly short: number;
}

/** Returns the ids of the passages for query `i`, best first. */
export type Search = (i: number) => Promise<readonly string[]>;

/** Runs every query, some of them first as uncounted warm-up. */
export async function outcomeOf(
  search: Search,
  truth: readonly (readonly string[])[],
  warmUp = WARM_UP,
): Promise<Outcome> {
  for (let i = 0; i < Math.min(warmUp, truth.length); i++) await search(i);
  const outcome = nothing();
  for (const [i, best] of truth.entries()) {
    const start = performance.now();
    const found = await search(i);
    note(outcome, found, best, performance.now() - start);
  }
  return outcome;
}

const WARM_UP = 5;

/**
 * Runs every query with both methods, one right after the other in alternating order, so that other activity on the
 * machine affects both equally.
 */
export async function pairedOutcomes(
  ours: Search,
  theirs: Search,
  truth: readonly (readonly string[])[],
): Promise<readonly [Outcome, Outcome]> {
  const outcomes = [nothing(), nothing()] as const;
  const searches = [ours, theirs] as const;
  for (const [i, best] of truth.entries()) {
    for (const which of i % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const start = performance.now();
      const found = await searches[which](i);
      note(outcomes[which], found, best, performance.now() - start);
    }
  }
  return outcomes;
}

interface Growing {
  readonly recalls: number[];
  readonly times: number[];
  short: number;
}

function nothing(): Growing {
  return { recalls: [], times: [], short: 0 };
}

function note(outcome: Growing, found: readonly string[], best: readonly string[], ms: number): void {
  outcome.times.push(ms);
  const hits = best.filter((id) => found.includes(id)).length;
  outcome.recalls.push(best.length === 0 ? 1 : hits / best.length);
  if (found.length < best.length) outcome.short++;
}

/** True best passages of a cell for each vector, found by comparing every permitted row. */
export async function truthOf(
  client: Client,
  cell: Cell,
  vectors: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const search = plainExact(client, cell, vectors);
  const out: (readonly string[])[] = [];
  for (const i of vectors.keys()) out.push(await search(i));
  return out;
}

/** pgvector without an index: the same nearest-neighbour search over the same rows, comparing each. */
export function plainExact(client: Client, cell: Cell, vectors: readonly string[]): Search {
  // The index is built for `<#>` and cannot serve this order.
  const sql = `select chunk_id, text from ${STORE} where ${cell.column} < ${cell.below} order by embedding <=> (select $1::vector), chunk_id limit ${TOP_K}`;
  return async (i) => {
    const { rows } = await client.query<{ chunk_id: string }>(sql, [vectors[i]]);
    return rows.map((r) => r.chunk_id);
  };
}

/** Typical use of pgvector alone: the same index with iterative scans, and the filter in the query. */
export async function plainHnsw(client: Client, cell: Cell, vectors: readonly string[]): Promise<Search> {
  for (const setting of PLAIN) await client.query(`set ${setting}`);
  const sql = `select chunk_id, text from ${STORE} where ${cell.column} < ${cell.below} order by embedding <#> $1::vector limit ${TOP_K}`;
  return async (i) => {
    const { rows } = await client.query<{ chunk_id: string }>({
      name: `plain ${roleOf(cell)}`,
      text: sql,
      values: [vectors[i]],
    });
    return rows.map((r) => r.chunk_id);
  };
}

export const PLAIN_NAME = 'pgvector HNSW, relaxed_order, ef_search 100, 20,000 tuples';
const PLAIN = [
  'hnsw.iterative_scan = relaxed_order',
  'hnsw.ef_search = 100',
  'hnsw.max_scan_tuples = 20000',
  // By default the planner would not always use the index.
  'enable_sort = off',
  'enable_seqscan = off',
];

/** The gateway: OSL-SQL over the wire, with policy and audit. */
export function governed(client: Client, texts: readonly string[]): Search {
  const text = `select cite from RETRIEVE(facet => 'chunk', query => $1, top_k => ${TOP_K})`;
  return async (i) => {
    const { rows } = await client.query<{ cite: { chunk_id: string } }>({ text, values: [texts[i]] });
    return rows.map((r) => r.cite.chunk_id);
  };
}
