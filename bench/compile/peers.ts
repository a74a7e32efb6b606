import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Measure, measure, median } from '../report.js';

/** SQL of a question, and the values of its parameters. */
export interface Statement {
  readonly sql: string;
  readonly params: readonly unknown[];
}

/** One way to ask one of the two questions of `correctness.ts`. */
export interface Form {
  readonly question: 'fan-out' | 'left join';
  /** How it is asked, for the table. */
  readonly form: string;
  /** @throws Error where it cannot be expressed so */
  statement(): Promise<Statement>;
}

/** What each peer's adapter in `bench/peers/` exports. */
export interface Peer {
  readonly id: string;
  readonly name: string;
  /** Compiles the question with other literals each time; gives the SQL. */
  compile(variant: number): Promise<string> | string;
  readonly forms: readonly Form[];
}

const ADAPTERS = ['malloy.mjs', 'drizzle-cube.mjs', 'cube.mjs'];

/** The peers that are installed. One that is not is absent from every figure, never estimated. */
export async function loadPeers(): Promise<readonly Peer[]> {
  const loaded: Peer[] = [];
  for (const file of ADAPTERS) {
    const peer = await load(file);
    if (peer !== null) loaded.push(peer);
  }
  return loaded;
}

/** Each peer interleaved with us, round by round. */
export async function runPeers(
  peers: readonly Peer[],
  rounds: number,
  size: number,
  ours: (n: number) => readonly number[],
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const peer of peers) {
    await timePeer(peer, 0, size);
    const pairs: { readonly us: number; readonly them: number }[] = [];
    for (let round = 1; round <= rounds; round++) {
      const us = median(ours(size));
      pairs.push({ us, them: await timePeer(peer, round, size) });
    }
    const ratio = median(pairs.map((p) => p.them / p.us));
    const theirs = pairs.map((p) => p.them);
    measures.push(measure(peer.id, 'µs', theirs, peer.name, ratio));
  }
  return measures;
}

async function timePeer(peer: Peer, round: number, size: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < size; i++) {
    const start = process.hrtime.bigint();
    await peer.compile(1_000 + round * size + i);
    times.push(Number(process.hrtime.bigint() - start) / 1_000);
  }
  return median(times);
}

async function load(file: string): Promise<Peer | null> {
  const dir = join(process.cwd(), 'bench', 'peers');
  if (!existsSync(join(dir, 'node_modules'))) {
    process.stderr.write(`${file}: not run, since bench/peers is not installed (npm ci --prefix bench/peers)\n`);
    return null;
  }
  try {
    const loaded: { readonly peer: Peer } = await import(pathToFileURL(join(dir, file)).href);
    return loaded.peer;
  } catch (error) {
    process.stderr.write(`${file}: not run: ${error instanceof Error ? error.message : String(error)}\n`);
    return null;
  }
}
