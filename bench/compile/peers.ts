import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Measure, measure, median } from '../report.js';

/** What each peer's adapter in `bench/peers/` exports. */
interface Peer {
  readonly id: string;
  readonly name: string;
  /** Compiles the question with another literal each time; gives the SQL. */
  compile(variant: number): Promise<string> | string;
}

const ADAPTERS = ['malloy.mjs', 'drizzle-cube.mjs', 'cube.mjs'];

/** Each peer interleaved with us, round by round. A peer that is not installed is absent, never estimated. */
export async function runPeers(rounds: number, size: number, ours: (n: number) => readonly number[]): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const file of ADAPTERS) {
    const peer = await load(file);
    if (peer === null) continue;
    for (let i = 0; i < 20; i++) await peer.compile(i);
    const pairs: { readonly us: number; readonly them: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      const us = median(ours(size));
      pairs.push({ us, them: await timePeer(peer, round, size) });
    }
    const ratio = median(pairs.map((p) => p.them / p.us));
    measures.push(measure(peer.id, 'µs', pairs.map((p) => p.them), peer.name, ratio));
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
