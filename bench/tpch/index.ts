import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { scansIn } from '../barrier/statements.js';
import { type Findings, type Measure, measure, median, type Table } from '../report.js';
import { connected } from '../support/client.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { withClient, withPostgres } from '../support/postgres.js';
import { inTurn } from '../support/rounds.js';
import { dataScript, GUARDED, SCHEMA } from './data.js';
import {
  byHand,
  dropRoles,
  GUARDED_POLICIES,
  guardedScript,
  guardedSession,
  manifestText,
  POLICIES,
  type PolicyName,
  policyText,
  subjectOf,
} from './policies.js';
import { plainText, QUESTIONS, type Question, textByHand } from './questions.js';
import { skewMeasure } from './skew.js';

/**
 * The 22 queries of TPC-H and three of ours, run through the gateway under four policies. Each is compared with a
 * statement that contains the policy written by hand, and with Postgres row security, both without a gateway; all three
 * must return the same rows. `BENCH_SCALE`: scale of the data, default .1; `BENCH_QUESTIONS`: subset of queries.
 */
export async function tpchBench(quick: boolean): Promise<Findings> {
  const scale = Number(process.env['BENCH_SCALE'] ?? (quick ? 0.01 : 0.1));
  const rounds = quick ? 3 : 5;
  const chosen = process.env['BENCH_QUESTIONS']?.split(',');
  const questions = QUESTIONS.filter(({ id }) => chosen?.includes(id) ?? true);
  const scripts = [...dataScript(SCHEMA, scale), ...dataScript(GUARDED, scale), guardedScript()];
  return withPostgres(scripts, (postgres) =>
    withGateway(postgres, async (gateway) => {
      const results: Result[] = [];
      for (const policy of POLICIES) {
        const parties = await partiesOf(policy, postgres, gateway);
        await warmUp(parties.gateway);
        for (const question of questions) results.push(await contest(question, policy, parties, rounds));
        for (const client of Object.values(parties)) await client?.end();
      }
      const skew = chosen === undefined ? [await skewMeasure(gateway, postgres, quick ? 10 : 100)] : [];
      const tables = [resultsTable(results, scale), await lostTable(results, gateway)];
      return { measures: [...measuresOf(results), ...skew], tables };
    }),
  );
}

async function withGateway<T>(postgres: NativePostgres, work: (gateway: Gateway) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-tpch-'));
  const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(manifestFile, manifestText());
  writeFileSync(policyFile, policyText());
  const gateway = await startGateway({ manifestFile, policyFile, postgres });
  try {
    return await work(gateway);
  } finally {
    await gateway.stop();
    rmSync(dir, { recursive: true });
    await withClient(postgres.url, (owner) => owner.query(dropRoles()));
  }
}

/** Sessions of the contestants; `guarded` if the policy is available as row security. */
interface Parties {
  readonly gateway: Client;
  readonly hand: Client;
  readonly guarded: Client | null;
}

async function partiesOf(policy: PolicyName, postgres: NativePostgres, gateway: Gateway): Promise<Parties> {
  const hand = await session(postgres.url, `set search_path = ${SCHEMA}`);
  const guarded = GUARDED_POLICIES.includes(policy)
    ? await session(postgres.url, guardedSession(policy))
    : null;
  return { gateway: await connected(gateway, subjectOf(policy), policy), hand, guarded };
}

/** Questions before the first that is timed: code of a process that has just started is not yet compiled. */
const WARM_UP = 500;

async function warmUp(client: Client): Promise<void> {
  for (let i = 0; i < WARM_UP; i++)
    await client.query(`select n_name from nation where n_nationkey = ${i % 25} and n_regionkey < ${i}`);
}

async function session(connectionString: string, first: string): Promise<Client> {
  const client = new Client({ connectionString });
  client.on('error', () => undefined); // its next query fails
  await client.connect();
  await client.query(first);
  return client;
}

interface Result {
  readonly question: Question;
  readonly policy: PolicyName;
  /** Times in ms, by round. */
  readonly ours: readonly number[];
  readonly hand: readonly number[];
  readonly guarded: readonly number[];
}

/** Times one query under one policy for all contestants. @throws Error if their answers differ */
async function contest(
  question: Question,
  policy: PolicyName,
  { gateway, hand, guarded }: Parties,
  rounds: number,
): Promise<Result> {
  const plain = plainText(question);
  const turns = [
    { client: gateway, text: plain },
    { client: hand, text: textByHand(question, byHand(policy)) },
    ...(guarded === null ? [] : [{ client: guarded, text: plain }]),
  ];
  const answers: string[] = [];
  for (const { client, text } of turns) answers.push(await answer(client, text));
  if (answers.some((a) => a !== answers[0]))
    throw new Error(
      `${question.id} under ${policy}: the answers differ: ${answers.map((a) => a.slice(0, 300)).join(' | ')}`,
    );
  const times = await inTurn(turns, rounds, async ({ client, text }) => {
    const started = performance.now();
    await client.query(text);
    return performance.now() - started;
  });
  const [ours = [], theirs = [], rls = []] = times;
  process.stderr.write(
    `${policy} ${question.id}: ${median(ours).toFixed(1)} ms, by hand ${median(theirs).toFixed(1)}${guarded === null ? '' : `, row security ${median(rls).toFixed(1)}`}\n`,
  );
  return { question, policy, ours, hand: theirs, guarded: rls };
}

/** Rows as sorted text, because ties may come in any order. */
async function answer(client: Client, text: string): Promise<string> {
  const { rows } = await client.query({ text, rowMode: 'array' });
  return rows
    .map((row) => JSON.stringify(row))
    .sort()
    .join('\n');
}

const ratioTo = (ours: readonly number[], theirs: readonly number[]): number => median(theirs) / median(ours);
const geometricMean = (values: readonly number[]): number =>
  Math.exp(values.reduce((sum, v) => sum + Math.log(v), 0) / values.length);

const BY_HAND = { id: 'vs_hand', what: 'the policy written by hand, geometric mean' };
const AGAINST: Readonly<Record<PolicyName, { readonly id: string; readonly what: string }>> = {
  none: { id: 'vs_direct', what: 'the same statement without a gateway, geometric mean' },
  tenant: BY_HAND,
  failing: BY_HAND,
  masked: BY_HAND,
};

function measuresOf(results: readonly Result[]): Measure[] {
  const of = (policy: PolicyName): readonly Result[] => results.filter((r) => r.policy === policy);
  const mean = (
    id: string,
    parts: readonly Result[],
    theirs: (r: Result) => readonly number[],
    against: string,
  ) =>
    measure(
      id,
      'ms',
      parts.map((r) => median(r.ours)),
      against,
      geometricMean(parts.map((r) => ratioTo(r.ours, theirs(r)))),
    );
  const worst = results.toSorted((a, b) => ratioTo(a.ours, a.hand) - ratioTo(b.ours, b.hand))[0];
  const rls = GUARDED_POLICIES.flatMap((policy) => {
    const lost = of(policy).filter((r) => r.question.indexed !== true);
    const index = of(policy).filter((r) => r.question.indexed === true);
    return [
      mean(`tpch.${policy}.vs_rls`, lost, (r) => r.guarded, 'row security, geometric mean'),
      ...(index.length === 0
        ? []
        : [
            mean(
              `tpch.${policy}.indexed.vs_rls`,
              index,
              (r) => r.guarded,
              'row security, where it cannot use the index',
            ),
          ]),
    ];
  });
  return [
    ...POLICIES.map((p) => mean(`tpch.${p}.${AGAINST[p].id}`, of(p), (r) => r.hand, AGAINST[p].what)),
    ...(worst === undefined
      ? []
      : [
          measure(
            'tpch.worst.vs_hand',
            'ms',
            worst.ours,
            `${worst.question.id} under ${worst.policy} by hand: ${median(worst.hand).toFixed(2)}`,
            ratioTo(worst.ours, worst.hand),
          ),
        ]),
    ...rls,
  ];
}

function resultsTable(results: readonly Result[], scale: number): Table {
  const cell = (r: Result | undefined): string => {
    if (r === undefined) return '';
    const guarded = r.guarded.length === 0 ? '' : `; ${ratioTo(r.ours, r.guarded).toFixed(2)}×`;
    return `${median(r.ours).toFixed(1)} (${ratioTo(r.ours, r.hand).toFixed(2)}×${guarded})`;
  };
  const ids = [...new Set(results.map((r) => r.question.id))];
  return {
    name: 'tpch: each question',
    about:
      `Scale ${scale}. Medians in ms through the gateway; in brackets the time by hand over ours, then that of row ` +
      'security over ours: above 1 is better for us.',
    head: ['question', ...POLICIES],
    rows: ids.map((id) => [
      id,
      ...POLICIES.map((p) => cell(results.find((r) => r.question.id === id && r.policy === p))),
    ]),
  };
}

/** Threshold for the ratio of the hand-written query to ours: at most 1.15 times as slow. */
const LOST = 1 / 1.15;

/** Plans of the queries that miss the goal, as shown by the gateway's own `upstream: plan`. */
async function lostTable(results: readonly Result[], gateway: Gateway): Promise<Table> {
  const lost = results.filter((r) => ratioTo(r.ours, r.hand) < LOST);
  const rows: string[][] = [];
  for (const { question, policy, ours, hand } of lost)
    rows.push([
      question.id,
      policy,
      `${ratioTo(ours, hand).toFixed(2)}×`,
      (median(ours) - median(hand)).toFixed(1),
      await planOf(question, policy, gateway),
    ]);
  return {
    name: 'tpch: lost',
    about:
      "Slower than 1.15 times the statement by hand: by how much, in ms, and how Postgres would read the tables without knowing the values, as the gateway's EXPLAIN says. The statement itself is planned with its values, and may use an index that is not named here.",
    head: ['question', 'policy', 'ratio', 'ms more', 'plan'],
    rows,
  };
}

async function planOf(question: Question, policy: PolicyName, gateway: Gateway): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/osl/query`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await gateway.token(subjectOf(policy), policy, ['TENANT_ADMIN'])}`,
    },
    body: JSON.stringify({ osql: plainText(question), explain: true, upstream: 'plan' }),
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${question.id}: ${body}`);
  const { upstream }: { readonly upstream: { readonly plan: string } } = JSON.parse(body); // per its schema
  return scansIn(upstream.plan.split('\n'));
}
