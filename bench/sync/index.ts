import { type Findings, type Measure, paired } from '../report.js';
import { startGateway } from '../support/gateway.js';
import { pgbench } from '../support/pgbench.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { inTurn } from '../support/rounds.js';
import {
  type Contestant,
  gatewayContestant,
  MANIFEST,
  POLICY,
  startContestants,
} from '../wire/contestants.js';
import { pointQuery } from '../wire/point.js';

const CLIENTS = [64, 16, 1] as const;

/**
 * Point queries through a gateway that answers once the record is written (`OSL_AUDIT_SYNC=kernel`), beside one that
 * waits until it is synced, PgBouncer, and Postgres.
 */
export async function syncBench(quick: boolean): Promise<Findings> {
  const rows = 100_000;
  const [rounds, seconds] = quick ? [2, 1] : [5, 3];
  return withPostgres(accounts(rows), async (postgres) => {
    const { direct, pgbouncer, gateway, stop } = await startContestants(postgres);
    const process = await startGateway({
      manifestFile: MANIFEST,
      policyFile: POLICY,
      postgres,
      environment: { OSL_AUDIT_SYNC: 'kernel' },
    });
    const kernel = gatewayContestant(process, 'kernel');
    const run = (contestant: Contestant, clients: number, time: number): Promise<number> =>
      pgbench(contestant.target(pointQuery(rows)), { mode: 'simple', clients, seconds: time }).then(
        ({ tps }) => tps,
      );
    try {
      for (const warm of [gateway, kernel]) await run(warm, 16, quick ? 2 : 10);
      const others = [gateway, direct, ...(pgbouncer === null ? [] : [pgbouncer])];
      const measures: Measure[] = [];
      for (const clients of CLIENTS) {
        const [ours = [], ...theirs] = await inTurn([kernel, ...others], rounds, (one) =>
          run(one, clients, seconds),
        );
        for (const [i, other] of others.entries()) {
          const [name, against] =
            other === gateway ? ['disk', 'OSL_AUDIT_SYNC=disk'] : [nameOf(other, direct), other.name];
          measures.push(
            paired(`sync.kernel.c${clients}.vs_${name}`, 'q/s', 'more', ours, theirs[i] ?? [], against),
          );
        }
      }
      return { measures, tables: [] };
    } finally {
      await process.stop();
      await stop();
    }
  });
}

function nameOf(contestant: Contestant, direct: Contestant): string {
  return contestant === direct ? 'direct' : 'pgbouncer';
}
