import { type Measure, measure, paired } from '../report.js';
import { cpuSeconds, residentMib } from '../support/child.js';
import { type Mode, pgbench } from '../support/pgbench.js';
import type { Contestant, Contestants } from './contestants.js';

/** Number of rounds, their duration, and numbers of clients. */
export interface PointPlan {
  readonly rows: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly loads: readonly { readonly mode: Mode; readonly clients: number }[];
}

/** Equivalent of pgbench -S: one row by its key, with another key each time. */
export const pointQuery =
  (rows: number) =>
  (table: string): string =>
    `\\set id random(1, ${rows})\nselect balance from ${table} where id = :id;\n`;

/** Compares all contestants: each round runs all of them, one after the other. */
export async function pointMeasures(contestants: Contestants, plan: PointPlan): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const load of plan.loads) measures.push(...(await oneLoad(contestants, plan, load)));
  return measures;
}

async function oneLoad(
  { direct, pgbouncer, gateway }: Contestants,
  plan: PointPlan,
  load: PointPlan['loads'][number],
): Promise<readonly Measure[]> {
  const mode = load.mode === 'simple' ? '' : `${load.mode}.`;
  const id = `wire.point.${mode}c${load.clients}`;
  // PgBouncer before 1.21 loses prepared statements in transaction mode.
  const bouncer = load.mode === 'prepared' ? null : pgbouncer;
  const runs: Record<'direct' | 'bouncer' | 'gateway', Run[]> = { direct: [], bouncer: [], gateway: [] };
  for (let round = 0; round < plan.rounds; round++) {
    runs.direct.push(await once(direct, plan, load));
    if (bouncer !== null) runs.bouncer.push(await once(bouncer, plan, load));
    runs.gateway.push(await once(gateway, plan, load));
  }
  const tps = (of: readonly Run[]): readonly number[] => of.map((r) => r.tps);
  const measures = [
    paired(`${id}.vs_direct`, 'q/s', 'more', tps(runs.gateway), tps(runs.direct), direct.name),
  ];
  if (bouncer !== null) {
    measures.unshift(
      paired(`${id}.vs_pgbouncer`, 'q/s', 'more', tps(runs.gateway), tps(runs.bouncer), bouncer.name),
    );
  }
  return load.clients < 64 ? measures : [...measures, ...costs(id, runs.gateway, runs.bouncer, bouncer)];
}

interface Run {
  readonly tps: number;
  /** Processor time of the intermediate process per query. */
  readonly cpuUs: number;
  readonly rssMib: number;
}

async function once(contestant: Contestant, plan: PointPlan, load: PointPlan['loads'][number]): Promise<Run> {
  const { pid } = contestant;
  const before = pid === null ? 0 : cpuSeconds(pid);
  const { tps, transactions } = await pgbench(contestant.target(pointQuery(plan.rows)), {
    ...load,
    seconds: plan.seconds,
  });
  if (pid === null) return { tps, cpuUs: 0, rssMib: 0 };
  return { tps, cpuUs: (1e6 * (cpuSeconds(pid) - before)) / transactions, rssMib: residentMib(pid) };
}

/** Cost of the intermediate process: processor time per query, including logins, and memory. */
function costs(
  id: string,
  ours: readonly Run[],
  theirs: readonly Run[],
  bouncer: Contestant | null,
): readonly Measure[] {
  const of = (name: string, unit: string, value: (run: Run) => number): Measure =>
    bouncer === null
      ? measure(`${id}.${name}`, unit, ours.map(value))
      : paired(`${id}.${name}`, unit, 'less', ours.map(value), theirs.map(value), bouncer.name);
  return [of('cpu', 'µs/query', (r) => r.cpuUs), of('rss', 'MiB', (r) => r.rssMib)];
}
