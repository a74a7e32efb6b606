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
import { type Experience, startHonest } from './honest.js';
import { stopReading } from './stop-reading.js';

const ROWS = 100_000;
const MIB = 1_048_576;

/** Sizes of the attacks. */
interface Plan {
  readonly slowloris: { readonly connections: number; readonly seconds: number };
  readonly slowReaders: { readonly connections: number; readonly seconds: number };
  readonly floodSeconds: number;
  /** As many as come in so many seconds. */
  readonly keys: { readonly count: number; readonly seconds: number };
  readonly idle: number;
  readonly resultMib: number;
  readonly calmSeconds: number;
  readonly statementSeconds: number;
}

const FULL: Plan = {
  // Beyond the 60 s in which a client must have authenticated.
  slowloris: { connections: 2_000, seconds: 75 },
  slowReaders: { connections: 200, seconds: 45 },
  floodSeconds: 20,
  keys: { count: 1_000_000, seconds: 900 },
  idle: 10_000,
  resultMib: 1_024,
  calmSeconds: 10,
  statementSeconds: 30,
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
};

/** What hostile clients cost the gateway, and the honest ones beside them. */
export async function hostileBench(quick: boolean): Promise<Findings> {
  const plan = quick ? QUICK : FULL;
  return withPostgres([...accounts(ROWS), documents(plan.resultMib)], async (postgres) => {
    // In a process that has done nothing else: later its heap has room for them.
    const idle = await withGateway(postgres, plan, (gateway) =>
      idleMeasures(gateway, plan.idle, 'hostile.idle'),
    );
    const found = await withGateway(postgres, plan, async (gateway) => {
      const each: Found[] = [];
      for (const [name, act] of Object.entries(ATTACKS)) {
        process.stderr.write(`${name} …\n`);
        each.push(await act(gateway, plan, postgres));
      }
      return each;
    });
    return {
      measures: [...found.flatMap((f) => f.measures), ...idle],
      tables: [besideTable(found.flatMap((f) => f.beside))],
    };
  });
}

interface Found {
  readonly measures: readonly Measure[];
  readonly beside: readonly (readonly [attack: string, Experience])[];
}

type Act = (gateway: Gateway, plan: Plan, postgres: NativePostgres) => Promise<Found>;

const ATTACKS: Readonly<Record<string, Act>> = {
  async 'nobody else'(gateway, plan) {
    const honest = await startHonest(gateway, ROWS);
    await setTimeout(1_000 * plan.calmSeconds);
    return { measures: [], beside: [['nobody else', await honest.stop()]] };
  },
  async slowloris(gateway, plan) {
    const { result, rss, experience } = await attacked(gateway, () => ({
      kind: 'slowloris',
      port: gateway.pgPort,
      ...plan.slowloris,
    }));
    return {
      measures: [
        measure('hostile.slowloris.connections', 'connections', [result.done]),
        measure('hostile.slowloris.cut', 'connections', [result.cut]),
        measure('hostile.slowloris.longest', 's', [result.longest], 'authentication time-out: 60 s'),
        measure('hostile.slowloris.rss_grown', 'MiB', [rss]),
      ],
      beside: [['slowloris', experience]],
    };
  },
  async 'slow readers'(gateway, plan) {
    const token = await gateway.token();
    const { result, rss, experience } = await attacked(gateway, () => ({
      kind: 'slow readers',
      port: gateway.pgPort,
      subject: SUBJECT,
      token,
      ...plan.slowReaders,
    }));
    return {
      measures: [
        measure('hostile.slow_readers.connections', 'connections', [result.done]),
        measure('hostile.slow_readers.rss_grown', 'MiB', [rss]),
      ],
      beside: [['slow readers', experience]],
    };
  },
  async 'connect flood'(gateway, plan) {
    const { result, rss, experience } = await attacked(gateway, () => ({
      kind: 'connect flood',
      port: gateway.pgPort,
      seconds: plan.floodSeconds,
    }));
    return {
      measures: [
        measure('hostile.connect_flood.rate', 'connections/s', [result.done / result.seconds]),
        measure('hostile.connect_flood.rss_grown', 'MiB', [rss]),
      ],
      beside: [['connect flood', experience]],
    };
  },
  async 'wrong cancel keys'(gateway, plan) {
    const before = await auditRecords(gateway);
    const { result, rss, experience } = await attacked(gateway, (processId) => ({
      kind: 'cancel keys',
      port: gateway.pgPort,
      ...plan.keys,
      processId,
    }));
    const honest = experience.queries.length + experience.long.length + 2 * experience.logins.length;
    const records = (await auditRecords(gateway)) - before - 2 * honest;
    return {
      measures: [
        measure('hostile.cancel_keys.tried', 'keys', [result.done]),
        measure('hostile.cancel_keys.hits', 'statements cancelled', [
          experience.failures.filter((f) => f === '57014').length,
        ]),
        measure('hostile.cancel_keys.rate', 'keys/s', [result.done / result.seconds]),
        measure('hostile.cancel_keys.audit_records', 'records/s', [Math.max(0, records) / result.seconds]),
        measure('hostile.cancel_keys.rss_grown', 'MiB', [rss]),
      ],
      beside: [['wrong cancel keys', experience]],
    };
  },
  async 'a client that stops reading'(gateway, plan, postgres) {
    const { measures, experience } = await stopReading(gateway, postgres, plan, ROWS);
    return { measures, beside: [['a result that nobody reads', experience]] };
  },
};

/** Runs the attack with honest clients beside it. `rss`: the most that the gateway weighed beyond what it did before. */
async function attacked(
  gateway: Gateway,
  attackOn: (processId: number) => Attack,
): Promise<{ readonly result: AttackResult; readonly rss: number; readonly experience: Experience }> {
  const honest = await startHonest(gateway, ROWS);
  await setTimeout(1_000);
  const before = residentMib(gateway.child.pid);
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, residentMib(gateway.child.pid));
  }, 250);
  try {
    const result = await inThread(attackOn(honest.processId));
    return { result, rss: most - before, experience: await honest.stop() };
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

/** A gateway that has done nothing but what a catalog client asks first, so that its base image is made. */
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

/** Rows of a MiB each, which weigh little on the disk. */
function documents(mib: number): string {
  return `
    create table bench.document (id int8 primary key, body text not null);
    insert into bench.document select i, repeat('x', ${MIB}) from generate_series(1, ${mib}) as i;
    grant select on bench.document to osl_reader;
  `;
}
