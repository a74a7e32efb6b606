import type { NativePostgres } from '../../test/support/native-postgres.js';
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
  return withPostgres(accounts(rows), async (postgres) => {
    const { direct, pgbouncer, gateway, stop } = await startContestants(postgres);
    try {
      const others = [
        { name: 'disk', contestant: gateway, against: 'OSL_AUDIT_SYNC=disk' },
        { name: 'direct', contestant: direct, against: direct.name },
        ...(pgbouncer === null
          ? []
          : [{ name: 'pgbouncer', contestant: pgbouncer, against: pgbouncer.name }]),
      ];
      return { measures: await besideKernel(postgres, others, rows, quick), tables: [] };
    } finally {
      await stop();
    }
  });
}

interface Other {
  /** The end of the measure's id, after `vs_`. */
  readonly name: string;
  readonly contestant: Contestant;
  readonly against: string;
}

async function besideKernel(
  postgres: NativePostgres,
  others: readonly Other[],
  rows: number,
  quick: boolean,
): Promise<readonly Measure[]> {
  const [rounds, seconds, warmSeconds] = quick ? [2, 1, 2] : [5, 3, 10];
  const environment = { OSL_AUDIT_SYNC: 'kernel' };
  const gateway = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres, environment });
  const contestants = [gatewayContestant(gateway, 'kernel'), ...others.map((o) => o.contestant)];
  const run = async (contestant: Contestant, clients: number, time: number): Promise<number> => {
    const target = contestant.target(pointQuery(rows));
    return (await pgbench(target, { mode: 'simple', clients, seconds: time })).tps;
  };
  try {
    for (const contestant of contestants.slice(0, 2)) await run(contestant, 16, warmSeconds); // the two gateways
    const measures: Measure[] = [];
    for (const clients of CLIENTS) {
      const [ours = [], ...theirs] = await inTurn(contestants, rounds, (one) => run(one, clients, seconds));
      for (const [i, { name, against }] of others.entries())
        measures.push(
          paired(`sync.kernel.c${clients}.vs_${name}`, 'q/s', 'more', ours, theirs[i] ?? [], against),
        );
    }
    return measures;
  } finally {
    await gateway.stop();
  }
}
