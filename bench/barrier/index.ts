import { ready } from 'osl-compiler';
import type { Client } from 'pg';
import { type Findings, type Measure, median, paired, type Table } from '../report.js';
import { withClient, withPostgres } from '../support/postgres.js';
import { inTurn } from '../support/rounds.js';
import { accessWith, CATALOG, ROW_SECURITY, tables } from './data.js';
import { grantsBench } from './grants.js';
import { QUESTIONS, type Question } from './questions.js';
import { microseconds, type Prepared, preparedFor, scansOf } from './statements.js';

/**
 * Cost of a policy: the same query with a row filter, without any policy, and under Postgres row security, as prepared
 * statements of one session on the same tables. A predicate that cannot fail on a hidden row stays bare and keeps its
 * index; any other is guarded by the row filter, which leaves every other index usable.
 */
export async function barrierBench(quick: boolean): Promise<Findings> {
  await ready();
  const plan = quick
    ? { rows: 20_000, rounds: 3, asks: 20, millis: 10 }
    : { rows: 500_000, rounds: 15, asks: 60, millis: 80 };
  return withPostgres([...tables(plan.rows), ROW_SECURITY], (postgres) =>
    withClient(postgres.url, async (client) => {
      const measures: Measure[] = [];
      const rows: string[][] = [];
      for (const question of QUESTIONS) {
        const contest = contestOf(question, plan);
        await agree(question, contest, client);
        const times = await timed(contest, plan, client);
        measures.push(...measuresOf(question, times));
        rows.push([...rowOf(question, times), ...(await plansOf(contest, client))]);
      }
      const grants = await grantsBench(client, { rows: plan.rows, rounds: quick ? 2 : 7 });
      return {
        measures: [...measures, ...grants.measures],
        tables: [{ ...TABLE, rows }, ...grants.tables],
      };
    }),
  );
}

const TABLE: Omit<Table, 'rows'> = {
  name: 'barrier: with policy, without, and row security',
  about:
    'One row in ten is hidden by a row filter on `region`. Medians of the mean time of one execution, in µs. ' +
    '`asks`: some predicate could fail on a hidden row, so it asks first whether the row is shown; the others stay ' +
    "bare. Row security: the statement without policy, for a role under `create policy … using (region = 'eu')` on " +
    'the same tables. Then how Postgres reads the tables, by EXPLAIN.',
  head: [
    'question',
    'predicate',
    'asks',
    'with policy',
    'without',
    'cost',
    'row security',
    'beside ours',
    'plan with policy',
    'plan without',
    'plan of row security',
  ],
};

/** A statement, and the role that runs it, in the shared session. */
interface Contestant {
  readonly statement: Prepared;
  /** The owner bypasses row security; the reader is subject to it. */
  readonly role: 'owner' | 'reader';
}

interface Contest {
  readonly governed: Contestant;
  readonly open: Contestant;
  readonly guardedByPostgres: Contestant;
}

function contestOf(question: Question, plan: { readonly rows: number; readonly asks: number }): Contest {
  const of = (name: string, rows: string | null): Prepared =>
    preparedFor(question, plan, { name, catalog: CATALOG, access: accessWith(rows) });
  return {
    governed: { statement: of('governed', "region = 'eu'"), role: 'owner' },
    open: { statement: of('open', null), role: 'owner' },
    guardedByPostgres: { statement: of('row_security', null), role: 'reader' },
  };
}

async function as<T>({ role }: Contestant, client: Client, work: () => Promise<T>): Promise<T> {
  if (role === 'owner') return work();
  await client.query('set role osl_reader');
  const done = await work();
  await client.query('reset role');
  return done;
}

/** Compares results. @throws Error if row security and the filter return different rows */
async function agree(
  { id }: Question,
  { governed, guardedByPostgres }: Contest,
  client: Client,
): Promise<void> {
  const [ours, theirs] = [await firstAnswer(governed, client), await firstAnswer(guardedByPostgres, client)];
  if (ours !== theirs) throw new Error(`${id}: row security has another answer`);
}

async function firstAnswer(contestant: Contestant, client: Client): Promise<string> {
  const { text, values } = contestant.statement;
  const { rows } = await as(contestant, client, () =>
    client.query({ text, values: [...(values[0] ?? [])], rowMode: 'array' }),
  );
  return JSON.stringify(rows.map((row) => JSON.stringify(row)).sort());
}

interface Times {
  readonly governed: readonly number[];
  readonly open: readonly number[];
  readonly guardedByPostgres: readonly number[];
  readonly asks: boolean;
}

/** Times of each round, alternating between statements, for at most the given number of milliseconds. */
async function timed(
  { governed, open, guardedByPostgres }: Contest,
  plan: { readonly rounds: number; readonly millis: number },
  client: Client,
): Promise<Times> {
  const turns = [open, governed, guardedByPostgres];
  const asks: number[] = [];
  // Postgres chooses between generic and custom plans in the first six executions of a prepared statement.
  for (const turn of turns) {
    const one = await as(turn, client, () => microseconds(client, turn.statement, 6));
    asks.push(Math.max(1, Math.round((plan.millis * 1_000) / one)));
  }
  const times = await inTurn(turns, plan.rounds, (turn, i) =>
    as(turn, client, () => microseconds(client, turn.statement, asks[i])),
  );
  const [without = [], ours = [], theirs = []] = times;
  return {
    governed: ours,
    open: without,
    guardedByPostgres: theirs,
    asks: governed.statement.text.includes('#shown'),
  };
}

function measuresOf({ id }: Question, { governed, open, guardedByPostgres }: Times): readonly Measure[] {
  return [
    paired(`${id}.vs_no_policy`, 'µs', 'less', governed, open, 'the same without policy'),
    paired(`${id}.vs_row_security`, 'µs', 'less', governed, guardedByPostgres, 'row security of Postgres'),
  ];
}

function rowOf({ id, predicate }: Question, { governed, open, guardedByPostgres, asks }: Times): string[] {
  const [ours, without, theirs] = [median(governed), median(open), median(guardedByPostgres)];
  const ratios = (others: readonly number[]): number =>
    median(governed.map((mine, i) => mine / (others[i] ?? Number.NaN)));
  const times = (ratio: number): string => `${ratio.toPrecision(3)}×`;
  return [
    id.replace('barrier.', ''),
    predicate,
    asks ? 'yes' : 'no',
    ours.toFixed(0),
    without.toFixed(0),
    times(ratios(open)),
    theirs.toFixed(0),
    times(1 / ratios(guardedByPostgres)),
  ];
}

async function plansOf({ governed, open, guardedByPostgres }: Contest, client: Client): Promise<string[]> {
  const plans: string[] = [];
  for (const contestant of [governed, open, guardedByPostgres])
    plans.push(await as(contestant, client, () => scansOf(client, contestant.statement)));
  return plans;
}
