import type { Client } from 'pg';
import {
  fillShop,
  inSchema,
  QUESTIONS,
  shopFiles,
  viewsByHand,
} from '../../test/service/distributed/citus-shop.js';
import { type Citus, NO_CITUS, startCitus } from '../../test/support/citus.js';
import { type Findings, type Measure, measure, median, type Table } from '../report.js';
import { connected } from '../support/client.js';
import { type Gateway, startGateway, TENANT } from '../support/gateway.js';
import { inTurn } from '../support/rounds.js';
import { sessionWith } from './session.js';

/** Questions that Citus answers over several shards, too. */
const ASKED = [
  'rows',
  'a row',
  'a row by half of its key',
  'a condition that may fail',
  'masked cells',
  'like',
  'in all',
  'by tenant',
  'by something else',
  'counted once',
  'distinct',
  'a join by tenant',
  'a join of three',
  'a join with a reference table',
  'a left join by tenant',
  'a semi-join',
  'an anti-join',
  'a window by tenant',
  'WITH',
  'a filter of an aggregate',
] as const;

/** Questions whose work is done by all shards, for the gain of a second worker. */
const PARALLEL: readonly string[] = ['in all', 'by tenant', 'by something else', 'a join of three', 'WITH'];

const POLICIES = ['analyst', 'tenant', 'tenants'] as const;
type PolicyName = (typeof POLICIES)[number];

const POLICY_TEXTS: Readonly<Record<PolicyName, string>> = {
  analyst: 'all rows',
  tenant: 'one tenant',
  tenants: 'three tenants',
};

const WORKER_COUNTS = [1, 2, 4];

/**
 * Questions through the gateway to a Citus coordinator, compared with the same questions over views that contain the
 * policy, asked of the coordinator directly; with one, two and four workers, all on this machine.
 */
export async function citusBench(quick: boolean): Promise<Findings> {
  const customers = quick ? 2_000 : 40_000;
  const results: Result[] = [];
  for (const workers of quick ? [2] : WORKER_COUNTS) {
    const cluster = await startCitus(workers, ['citus.shard_count=8', 'shared_buffers=128MB']);
    if (cluster === null) throw new Error(NO_CITUS);
    try {
      await fillShop(cluster, customers, ['parts']);
      for (const policy of POLICIES) await cluster.coordinator.query(viewsByHand(policy));
      const { manifest, policy } = shopFiles(TENANT, ['parts']);
      const { readerUrl, coordinator, stop } = cluster;
      const postgres = { url: coordinator.url, readerUrl, stop };
      const environment = { STORE_URL: readerUrl };
      const gateway = await startGateway({
        manifestFile: manifest,
        policyFile: policy,
        postgres,
        environment,
      });
      try {
        results.push(...(await contests(workers, cluster, gateway, quick ? 3 : 11)));
      } finally {
        await gateway.stop();
      }
    } finally {
      await cluster.stop();
    }
  }
  return { measures: measuresOf(results), tables: [tableOf(results, customers)] };
}

interface Result {
  readonly workers: number;
  readonly policy: PolicyName;
  readonly question: string;
  /** Times in ms, by round. */
  readonly ours: readonly number[];
  readonly direct: readonly number[];
}

async function contests(
  workers: number,
  { readerUrl }: Citus,
  gateway: Gateway,
  rounds: number,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const policy of POLICIES) {
    const client = await connected(gateway, `user:${policy}`, policy);
    const hand = await sessionWith(readerUrl, `hand_${policy}`);
    await warmUp(client);
    for (const question of ASKED) {
      const text = inSchema(QUESTIONS.get(question) ?? '', 'parts');
      const [ours = [], direct = []] = await timed(question, text, [client, hand], rounds);
      results.push({ workers, policy, question, ours, direct });
      process.stderr.write(
        `${workers} workers, ${policy}, ${question}: ${median(ours).toFixed(1)} ms, direct ${median(direct).toFixed(1)}\n`,
      );
    }
    await Promise.all([client.end(), hand.end()]);
  }
  return results;
}

/** Executions after which Postgres may plan a prepared statement for all values. */
const MOST_CUSTOM_PLANS = 6;

/** @throws Error if the answers differ */
async function timed(
  question: string,
  text: string,
  clients: readonly Client[],
  rounds: number,
): Promise<readonly (readonly number[])[]> {
  const answers: string[] = [];
  for (const client of clients) answers.push(await answer(client, text));
  // So that connections, plans and code are ready.
  for (let i = 0; i < MOST_CUSTOM_PLANS; i++) for (const client of clients) await client.query(text);
  if (answers.some((one) => one !== answers[0])) throw new Error(`${question}: the answers differ`);
  return inTurn(clients, rounds, async (client) => {
    const started = performance.now();
    await client.query(text);
    return performance.now() - started;
  });
}

/** Rows as sorted text, since ties may come in any order. */
async function answer(client: Client, text: string): Promise<string> {
  const { rows } = await client.query({ text, rowMode: 'array' });
  return rows
    .map((row) => JSON.stringify(row))
    .toSorted()
    .join('\n');
}

/** Queries before the first that is timed: code of a process that has just started is not yet compiled. */
const WARM_UP = 300;

async function warmUp(client: Client): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) await client.query(`select name from nation where id = ${i % 12}`);
}

/** Median of the rounds' ratios, since other load on the machine differs from round to round. */
const ratioOf = ({ ours, direct }: Result): number =>
  median(ours.map((mine, i) => (direct[i] ?? Number.NaN) / mine));
const geometricMean = (values: readonly number[]): number =>
  Math.exp(values.reduce((sum, v) => sum + Math.log(v), 0) / values.length);

function measuresOf(results: readonly Result[]): Measure[] {
  const counts = [...new Set(results.map(({ workers }) => workers))];
  const ratios = counts.flatMap((workers) =>
    POLICIES.map((policy) => {
      const own = results.filter((r) => r.workers === workers && r.policy === policy);
      return measure(
        `citus.workers_${workers}.${policy}.vs_direct`,
        'ms',
        own.map((r) => median(r.ours)),
        `the policy in views, asked directly, ${own.length} questions, geometric mean`,
        geometricMean(own.map(ratioOf)),
      );
    }),
  );
  return [...ratios, ...gains(results)];
}

/** Gain of a second worker, where all shards work. */
function gains(results: readonly Result[]): Measure[] {
  const of = (workers: number): readonly Result[] =>
    results.filter((r) => r.workers === workers && r.policy === 'analyst' && PARALLEL.includes(r.question));
  const [one, two] = [of(1), of(2)];
  if (one.length === 0) return [];
  const times = (list: readonly Result[]): number[] => list.map((r) => median(r.ours));
  return [
    measure(
      'citus.workers_2.vs_one',
      'ms',
      times(two),
      'one worker, questions of all shards, geometric mean',
      geometricMean(times(one)) / geometricMean(times(two)),
    ),
  ];
}

function tableOf(results: readonly Result[], customers: number): Table {
  const counts = [...new Set(results.map(({ workers }) => workers))];
  const rows = POLICIES.flatMap((policy) =>
    ASKED.map((question) => {
      const cells = counts.map((workers) => {
        const found = results.find(
          (r) => r.workers === workers && r.policy === policy && r.question === question,
        );
        if (found === undefined) throw new Error(`${question} was not measured`);
        return `${median(found.ours).toFixed(1)} / ${median(found.direct).toFixed(1)} (${ratioOf(found).toFixed(2)})`;
      });
      return [POLICY_TEXTS[policy], question, ...cells];
    }),
  );
  const head = ['visible', 'question', ...counts.map((n) => `${n} ${n === 1 ? 'worker' : 'workers'}`)];
  const about =
    `${customers} customers, ${customers * 4} orders and ${customers * 8} lines of 40 tenants in 8 shards; coordinator, workers, gateway and client share ` +
    "this machine's processors. Medians in ms: through the gateway / directly over views that contain the policy (median of the rounds' ratios).";
  return { name: 'citus: each question', about, head, rows };
}
