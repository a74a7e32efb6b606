import { ready } from 'osl-compiler';
import type { Client } from 'pg';
import { type Findings, type Measure, median, paired, type Table } from '../report.js';
import { withClient, withPostgres } from '../support/postgres.js';
import { accessWith, CATALOG, ROW_SECURITY, tables } from './data.js';
import { QUESTIONS, type Question } from './questions.js';
import { microseconds, type Prepared, preparedFor, scansOf } from './statements.js';

/**
 * What a policy costs: the same question with a row filter, without any policy, and under row security of Postgres
 * itself, as prepared statements on the same tables. A predicate that is harmless stays bare and keeps its index; one
 * that is not asks about its rows first, which leaves every other index to be used.
 */
export async function barrierBench(quick: boolean): Promise<Findings> {
  await ready();
  const plan = quick
    ? { rows: 20_000, rounds: 3, asks: 20, millis: 10 }
    : { rows: 500_000, rounds: 15, asks: 60, millis: 80 };
  return withPostgres([...tables(plan.rows), ROW_SECURITY], (postgres) =>
    // The owner of the tables is above their row security, the reader is under it.
    withClient(postgres.url, (owner) =>
      withClient(postgres.readerUrl, async (reader) => {
        const measures: Measure[] = [];
        const rows: string[][] = [];
        for (const question of QUESTIONS) {
          const contest = contestOf(question, plan, owner, reader);
          await agree(question, contest);
          const times = await timed(contest, plan);
          measures.push(...measuresOf(question, times));
          rows.push([...rowOf(question, times), ...(await plansOf(contest))]);
        }
        return { measures, tables: [{ ...TABLE, rows }] };
      }),
    ),
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

/** A statement and the client that it is asked by. */
interface Contestant {
  readonly client: Client;
  readonly statement: Prepared;
}

interface Contest {
  readonly governed: Contestant;
  readonly open: Contestant;
  readonly guardedByPostgres: Contestant;
}

function contestOf(
  question: Question,
  plan: { readonly rows: number; readonly asks: number },
  owner: Client,
  reader: Client,
): Contest {
  const of = (name: string, rows: string | null): Prepared =>
    preparedFor(question, plan, { name, catalog: CATALOG, access: accessWith(rows) });
  const open = of('open', null);
  return {
    governed: { client: owner, statement: of('governed', "region = 'eu'") },
    open: { client: owner, statement: open },
    guardedByPostgres: { client: reader, statement: open },
  };
}

/** @throws Error where row security shows other rows than the filter, so that the two are no match */
async function agree({ id }: Question, { governed, guardedByPostgres }: Contest): Promise<void> {
  const [ours, theirs] = [await firstAnswer(governed), await firstAnswer(guardedByPostgres)];
  if (ours !== theirs) throw new Error(`${id}: row security has another answer`);
}

async function firstAnswer({ client, statement }: Contestant): Promise<string> {
  const { text, values } = statement;
  const { rows } = await client.query({ text, values: [...(values[0] ?? [])], rowMode: 'array' });
  return JSON.stringify(rows.map((row) => JSON.stringify(row)).sort());
}

interface Times {
  readonly governed: readonly number[];
  readonly open: readonly number[];
  readonly guardedByPostgres: readonly number[];
  readonly asks: boolean;
}

/** Times of each round in turn, each of at most so many milliseconds. */
async function timed(
  { governed, open, guardedByPostgres }: Contest,
  plan: { readonly rounds: number; readonly millis: number },
): Promise<Times> {
  const turns = [open, governed, guardedByPostgres];
  const asks: number[] = [];
  // Postgres decides on the plan of a prepared statement in its first six executions.
  for (const { client, statement } of turns) {
    const one = await microseconds(client, statement, 6);
    asks.push(Math.max(1, Math.round((plan.millis * 1_000) / one)));
  }
  const times: number[][] = turns.map(() => []);
  for (let round = 0; round < plan.rounds; round++) {
    // Each is first in some rounds, and last in others.
    for (let turn = 0; turn < turns.length; turn++) {
      const i = (round + turn) % turns.length;
      const next = turns[i];
      if (next !== undefined) times[i]?.push(await microseconds(next.client, next.statement, asks[i]));
    }
  }
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

async function plansOf({ governed, open, guardedByPostgres }: Contest): Promise<string[]> {
  const plans: string[] = [];
  for (const { client, statement } of [governed, open, guardedByPostgres])
    plans.push(await scansOf(client, statement));
  return plans;
}
