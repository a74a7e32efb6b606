import type { Findings } from '../report.js';
import { pgbench } from '../support/pgbench.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { type Contestants, startContestants } from './contestants.js';
import { idleMeasures } from './idle.js';
import { type PointPlan, pointMeasures, pointQuery } from './point.js';
import { streamMeasures } from './stream.js';

const CLIENTS = [64, 16, 1] as const;

/** Point queries, a stream, and idle sessions: directly, through PgBouncer and through the gateway. */
export async function wireBench(quick: boolean, workers: number): Promise<Findings> {
  const rows = quick ? 100_000 : 1_000_000;
  return withPostgres(accounts(rows), async (postgres) => {
    const contestants = await startContestants(postgres, workers);
    try {
      // Measured first, in a fresh process: later its heap would already have room for the sessions.
      const idle = await idleMeasures(contestants.process, quick ? 1_000 : 10_000);
      await warmUp(contestants, rows, quick ? 2 : 10);
      const measures = [
        ...(await pointMeasures(contestants, quick ? quickPlan(rows) : fullPlan(rows))),
        ...(await streamMeasures(contestants, rows, quick ? 3 : 7)),
        ...idle,
      ];
      return { measures, tables: [] };
    } finally {
      await contestants.stop();
    }
  });
}

function fullPlan(rows: number): PointPlan {
  const modes = ['simple', 'extended', 'prepared'] as const;
  const loads = modes.flatMap((mode) => CLIENTS.map((clients) => ({ mode, clients })));
  return { rows, rounds: 5, seconds: 3, loads };
}

function quickPlan(rows: number): PointPlan {
  const loads = [
    { mode: 'simple', clients: 64 },
    { mode: 'simple', clients: 16 },
    { mode: 'prepared', clients: 64 },
  ] as const;
  return { rows, rounds: 2, seconds: 2, loads };
}

/** Warms up the gateway, whose code is not yet compiled in a new process; the other contestants need no warm-up. */
async function warmUp({ gateway }: Contestants, rows: number, seconds: number): Promise<void> {
  const target = gateway.target(pointQuery(rows));
  for (const mode of ['simple', 'prepared'] as const) {
    await pgbench(target, { mode, clients: 16, seconds });
  }
}
