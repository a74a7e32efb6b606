import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, measure, quantile, type Table } from '../report.js';
import { residentMib } from '../support/child.js';
import { type Gateway, SUBJECT, startGateway } from '../support/gateway.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { readied } from '../support/readied.js';
import { idleMeasures } from '../wire/idle.js';
import type { Attack, AttackResult } from './attacks.js';
import { type BulkPlan, bulkReaders } from './bulk-readers.js';
import { type Experience, startHonest } from './honest.js';
import { stopReading } from './stop-reading.js';

const ROWS = 100_000;
const MIB = 1_048_576;

/** Sizes of the attacks. */
interface Plan {
  readonly slowloris: { readonly connections: number; readonly seconds: number };
  readonly slowReaders: { readonly connections: number; readonly seconds: number };
  readonly floodSeconds: number;
  /** Number of attempts, and duration in seconds. */
  readonly keys: { readonly count: number; readonly seconds: number };
  readonly idle: number;
  readonly resultMib: number;
  readonly calmSeconds: number;
  readonly statementSeconds: number;
  readonly bulk: BulkPlan;
}

const FULL: Plan = {
  // Longer than the 60 s in which a client must authenticate.
  slowloris: { connections: 2_000, seconds: 75 },
  slowReaders: { connections: 200, seconds: 45 },
  floodSeconds: 20,
  keys: { count: 1_000_000, seconds: 900 },
  idle: 10_000,
  resultMib: 1_024,
  calmSeconds: 10,
  statementSeconds: 30,
  bulk: { rows: 1_000_000, rounds: 5, seconds: 5 },
};

const QUICK: Plan = {
  slowloris: { connections: 1_200, seconds: 5 },
  slowReaders: { connections: 40, seconds: 5 },
  floodSeconds: 3,
  keys: { count: 10_000, seconds: 5 },
  idle: 300,
  resultMib: 64,
  calmSeconds: 2,
  statementSeconds: 5,
  bulk: { rows: 250_000, rounds: 1, seconds: 3 },
};

/** Effect of hostile clients on the gateway and on honest clients. */
export async function hostileBench(quick: boolean): Promise<Findings> {
  const plan = quick ? QUICK : FULL;
  const beside = await withPostgres(accounts(plan.bulk.rows), (postgres) =>
    withGateway(postgres, plan, (gateway) => bulkReaders(gateway, postgres, plan.bulk)),
  );
  return withPostgres([...accounts(ROWS), documents(plan.resultMib)], async (postgres) => {
    // Measured in a fresh process: later its heap would already have room for the connections.
    const idle = await withGateway(postgres, plan, (gateway) =>
      idleMeasures(gateway, plan.idle, 'hostile.idle'),
    );
    const found = await withGateway(postgres, plan, async (gateway) => {
      const each: (readonly [attack: string, Found])[] = [];
      for (const [name, act] of Object.entries(ATTACKS)) {
        process.stderr.write(`${name} …\n`);
        each.push([name, await act(gateway, plan, postgres)]);
      }
      return each;
    });
    return {
      measures: [...found.flatMap(([, f]) => f.measures), ...beside, ...idle],
      tables: [besideTable(found.map(([name, f]) => [name, f.experience]))],
    };
  });
}

interface Found {
  readonly measures: readonly Measure[];
  /** Latencies of the honest clients during the attack. */
  readonly experience: Experience;
}

type Act = (gateway: Gateway, plan: Plan, postgres: NativePostgres) => Promise<Found>;

const ATTACKS: Readonly<Record<string, Act>> = {
  async 'nobody else'(gateway, plan) {
    const honest = await startHonest(gateway, ROWS);
    await setTimeout(1_000 * plan.calmSeconds);
    return { measures: [], experience: await honest.stop() };
  },
  slowloris: (gateway, plan) =>
    attacked(
      gateway,
      'hostile.slowloris',
      () => ({ kind: 'slowloris', port: gateway.pgPort, ...plan.slowloris }),
      ({ done, cut, longest }) => [
        measure('hostile.slowloris.connections', 'connections', [done]),
        measure('hostile.slowloris.cut', 'connections', [cut]),
        measure('hostile.slowloris.longest', 's', [longest], 'authentication time-out: 60 s'),
      ],
    ),
  async 'slow readers'(gateway, plan) {
    const token = await gateway.token();
    return attacked(
      gateway,
      'hostile.slow_readers',
      () => ({
        kind: 'slow readers',
        port: gateway.pgPort,
        subject: SUBJECT,
        token,
        ...plan.slowReaders,
      }),
      ({ done }) => [measure('hostile.slow_readers.connections', 'connections', [done])],
    );
  },
  'connect flood': (gateway, plan) =>
    attacked(
      gateway,
      'hostile.connect_flood',
      () => ({ kind: 'connect flood', port: gateway.pgPort, seconds: plan.floodSeconds }),
      ({ done, seconds }) => [measure('hostile.connect_flood.rate', 'connections/s', [done / seconds])],
    ),
  async 'wrong cancel keys'(gateway, plan) {
    const before = await auditRecords(gateway);
    return attacked(
      gateway,
      'hostile.cancel_keys',
      (processId) => ({ kind: 'cancel keys', port: gateway.pgPort, ...plan.keys, processId }),
      async ({ done, seconds }, { queries, long, logins, failures }) => {
        const honest = queries.length + long.length + 2 * logins.length;
        const records = (await auditRecords(gateway)) - before - 2 * honest;
        const hits = failures.filter((f) => f === '57014').length;
        return [
          measure('hostile.cancel_keys.tried', 'keys', [done]),
          measure('hostile.cancel_keys.hits', 'statements cancelled', [hits]),
          measure('hostile.cancel_keys.rate', 'keys/s', [done / seconds]),
          measure('hostile.cancel_keys.audit_records', 'records/s', [Math.max(0, records) / seconds]),
        ];
      },
    );
  },
  'a result that nobody reads': (gateway, plan, postgres) => stopReading(gateway, postgres, plan, ROWS),
};

/** Runs the attack alongside honest clients. The last measure is the gateway's maximum memory growth. */
async function attacked(
  gateway: Gateway,
  id: string,
  attackOn: (processId: number) => Attack,
  measuresOf: (
    result: AttackResult,
    experience: Experience,
  ) => readonly Measure[] | Promise<readonly Measure[]>,
): Promise<Found> {
  const honest = await startHonest(gateway, ROWS);
  await setTimeout(1_000);
  const before = residentMib(gateway.child.pid);
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, residentMib(gateway.child.pid));
  }, 250);
  try {
    const result = await inThread(attackOn(honest.processId));
    const grown = measure(`${id}.rss_grown`, 'MiB', [most - before]);
    const experience = await honest.stop();
    return { measures: [...(await measuresOf(result, experience)), grown], experience };
  } finally {
    clearInterval(watch);
  }
}

function inThread(attack: Attack): Promise<AttackResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./attacks.js', import.meta.url), { workerData: attack });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

/** Runs `work` with a gateway that has answered only the first catalog queries, so that its base image exists. */
async function withGateway<T>(
  postgres: NativePostgres,
  plan: Plan,
  work: (gateway: Gateway) => Promise<T>,
): Promise<T> {
  const gateway = await startGateway({
    manifestFile: 'bench/hostile/manifest.yaml',
    policyFile: 'bench/hostile/policy.yaml',
    postgres,
    environment: { OSL_MAX_RESULT_MIB: '4096', OSL_STATEMENT_TIMEOUT_MS: `${1_000 * plan.statementSeconds}` },
  });
  try {
    await readied(gateway);
    return await work(gateway);
  } finally {
    await gateway.stop();
  }
}

async function auditRecords({ httpPort }: Gateway): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text();
  return Number(/^osl_audit_records (\d+)/m.exec(text)?.[1]);
}

function besideTable(rows: readonly (readonly [string, Experience])[]): Table {
  const ms = (values: readonly number[], q: number): string => {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted.length === 0 ? 'none' : String(Number(quantile(sorted, q).toPrecision(3)));
  };
  return {
    name: 'hostile: the honest beside',
    about:
      'What honest clients live through meanwhile, in ms: point queries on an open session (one every 10 ms), a query over all rows (one a second), and logins with one query (four a second). Attackers and clients run on the same two cores as the gateway and Postgres.',
    head: ['attack', 'query p50', 'p99', 'long query p50', 'p99', 'login p50', 'p99', 'failures'],
    rows: rows.map(([attack, e]) => [
      attack,
      ...[e.queries, e.long, e.logins].flatMap((values) => [ms(values, 0.5), ms(values, 0.99)]),
      failuresOf(e),
    ]),
  };
}

function failuresOf({ failures, queries, long, logins }: Experience): string {
  const counts = new Map<string, number>();
  for (const f of failures) counts.set(f, (counts.get(f) ?? 0) + 1);
  const asked = failures.length + queries.length + long.length + logins.length;
  const kinds = [...counts].map(([code, n]) => `${n} × ${code}`).join(', ');
  return failures.length === 0 ? `0 of ${asked}` : `${failures.length} of ${asked}: ${kinds}`;
}

/** Rows of one MiB each, which compress well on disk. */
function documents(mib: number): string {
  return `
    create table bench.document (id int8 primary key, body text not null);
    insert into bench.document select i, repeat('x', ${MIB}) from generate_series(1, ${mib}) as i;
    grant select on bench.document to osl_reader;
  `;
}
