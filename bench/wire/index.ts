import type { Findings } from '../report.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { startContestants } from './contestants.js';
import { idleMeasures } from './idle.js';
import { type PointPlan, pointMeasures } from './point.js';
import { streamMeasures } from './stream.js';

const CLIENTS = [64, 16, 1] as const;

/** Direct, through PgBouncer and through the gateway: point queries, a stream, and idle sessions. */
export async function wireBench(quick: boolean): Promise<Findings> {
  const rows = quick ? 100_000 : 1_000_000;
  return withPostgres(accounts(rows), async (postgres) => {
    const contestants = await startContestants(postgres);
    try {
      const measures = [
        ...(await pointMeasures(contestants, quick ? quickPlan(rows) : fullPlan(rows))),
        ...(await streamMeasures(contestants, rows, quick ? 3 : 7)),
        ...(await idleMeasures(contestants.process, quick ? 1_000 : 10_000)),
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
  return { rows, rounds: 7, seconds: 4, loads };
}

function quickPlan(rows: number): PointPlan {
  const simple = CLIENTS.map((clients) => ({ mode: 'simple' as const, clients }));
  const others = (['extended', 'prepared'] as const).map((mode) => ({ mode, clients: 64 }));
  return { rows, rounds: 2, seconds: 1, loads: [...simple, ...others] };
}
