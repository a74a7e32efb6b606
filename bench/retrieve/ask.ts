import type { Client } from 'pg';
import { type Cell, roleOf } from './grants.js';
import { STORE } from './store.js';

/** How many passages each query asks for. */
export const TOP_K = 10;

/** What one way of asking gave for one cell. */
export interface Outcome {
  /** Shares of the true best that were found, one a query. */
  readonly recalls: readonly number[];
  /** Milliseconds, one a query. */
  readonly times: readonly number[];
  /** Queries that gave fewer rows than min(k, permitted). */
  readonly short: number;
}

/** Gives the ids of the passages for query `i`, best first. */
export type Search = (i: number) => Promise<readonly string[]>;

/** Asks every query, some of them first without counting. */
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
 * Asks every query of both, one right after the other and each of them first as often, so that what else the machine
 * does falls on both.
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

/** The true best of a cell for each vector: every permitted row compared. */
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

/** pgvector without an index: the same nearest-neighbour search over the same rows, each compared. */
export function plainExact(client: Client, cell: Cell, vectors: readonly string[]): Search {
  // The index is for `<#>` and cannot serve this order.
  const sql = `select chunk_id, text from ${STORE} where ${cell.column} < ${cell.below} order by embedding <=> (select $1::vector), chunk_id limit ${TOP_K}`;
  return async (i) => {
    const { rows } = await client.query<{ chunk_id: string }>(sql, [vectors[i]]);
    return rows.map((r) => r.chunk_id);
  };
}

/** What one writes with pgvector alone: the same index, iterating, with the filter in the query. */
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
  // Left alone, the planner would not always take the index.
  'enable_sort = off',
  'enable_seqscan = off',
];

/** Our own: OSL-SQL over the wire, policy and audit on. */
export function governed(client: Client, texts: readonly string[]): Search {
  const text = `select cite from RETRIEVE(facet => 'chunk', query => $1, top_k => ${TOP_K})`;
  return async (i) => {
    const { rows } = await client.query<{ cite: { chunk_id: string } }>({ text, values: [texts[i]] });
    return rows.map((r) => r.cite.chunk_id);
  };
}
