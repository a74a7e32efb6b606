import { type Measure, paired } from '../report.js';
import { pgbench } from '../support/pgbench.js';
import type { Contestant, Contestants } from './contestants.js';

/** Streams the whole table to one client that reads it through libpq. */
export async function streamMeasures(
  { direct, pgbouncer, gateway }: Contestants,
  rows: number,
  rounds: number,
): Promise<readonly Measure[]> {
  const others = pgbouncer === null ? [direct] : [direct, pgbouncer];
  const ours: number[] = [];
  const theirs = others.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, other] of others.entries()) theirs[i]?.push(await rowsPerSecond(other, rows));
    ours.push(await rowsPerSecond(gateway, rows));
  }
  const [toDirect = [], toBouncer] = theirs;
  const measures = [paired('wire.stream.vs_direct', 'rows/s', 'more', ours, toDirect, direct.name)];
  if (pgbouncer === null || toBouncer === undefined) return measures;
  return [...measures, paired('wire.stream.vs_pgbouncer', 'rows/s', 'more', ours, toBouncer, pgbouncer.name)];
}

async function rowsPerSecond(contestant: Contestant, rows: number): Promise<number> {
  const target = contestant.target(
    (table) => `select id, region, owner, balance, opened from ${table} limit ${rows};\n`,
  );
  const { latencyMs } = await pgbench(target, { mode: 'simple', clients: 1, transactions: 1 });
  return (1_000 * rows) / latencyMs;
}
