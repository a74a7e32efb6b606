import {
  type Access,
  bindPredicate,
  type Catalog,
  type Column,
  compile,
  emit,
  type Relation,
  ready,
  type TypeName,
} from 'osl-compiler';
import type { Client } from 'pg';
import { type Findings, type Measure, paired, type Table } from '../report.js';
import { withClient, withPostgres } from '../support/postgres.js';

/**
 * What the barrier costs: the same question with a row filter and without any policy, as prepared statements on one
 * connection. A predicate that is harmless stays bare and keeps its index; one that is not asks about its rows first,
 * which leaves every other index to be used.
 */
export async function barrierBench(quick: boolean): Promise<Findings> {
  await ready();
  const plan = quick ? { rows: 20_000, rounds: 3, asks: 20 } : { rows: 500_000, rounds: 9, asks: 60 };
  return withPostgres(tables(plan.rows), (postgres) =>
    withClient(postgres.readerUrl, async (client) => {
      const measures: Measure[] = [];
      const rows: string[][] = [];
      for (const question of QUESTIONS) {
        const both = statements(question, plan);
        measures.push(await compared(client, question, both, plan.rounds));
        rows.push(await planned(client, question, both));
      }
      return { measures, tables: [{ ...PLANS, rows }] };
    }),
  );
}

const PLANS: Omit<Table, 'rows'> = {
  name: 'barrier: what is planned',
  about:
    'One row in ten is hidden by a row filter on `region`. `asks`: some predicate could tell what is in a hidden row, ' +
    'so it asks first whether the row is shown; the others stay bare. Then how Postgres reads the first table.',
  head: ['question', 'predicate', 'asks', 'with policy', 'without'],
};

export interface Question {
  readonly id: string;
  readonly predicate: string;
  /** The text for the `i`th time, of `rows` rows. */
  readonly text: (i: number, rows: number) => string;
}

export const QUESTIONS: readonly Question[] = [
  {
    id: 'barrier.point',
    predicate: '`id = 17`',
    text: (i, rows) => `select owner from account where id = ${1 + ((i * 7919) % rows)}`,
  },
  {
    id: 'barrier.date_range',
    predicate: '`opened between …`',
    text: (i) => `select count(*) from account where opened between '${day(i)}' and '${day(i + 1)}'`,
  },
  {
    id: 'barrier.numeric_range',
    predicate: '`balance between …`, numeric, harmless',
    text: (i) => `select count(*) from account where balance between ${i * 10}.0 and ${i * 10 + 5}.0`,
  },
  {
    id: 'barrier.like',
    predicate: '`owner like …`, a pattern that was looked at',
    text: (i) => `select count(*) from account where owner like 'owner ${100 + (i % 900)}%'`,
  },
  {
    id: 'barrier.point_and_like',
    predicate: '`id = 17 and owner like …`',
    text: (i, rows) =>
      `select owner from account where id = ${1 + ((i * 7919) % rows)} and owner like 'owner%'`,
  },
  {
    id: 'barrier.point_and_lower',
    predicate: '`id = 17 and lower(owner) = …`, which asks',
    text: (i, rows) =>
      `select owner from account where id = ${1 + ((i * 7919) % rows)} and lower(owner) <> 'nobody'`,
  },
  {
    id: 'barrier.asked_join',
    predicate: 'the keyed join with `lower(…) like …` on both sides, which asks',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_id = a.id ' +
      `where a.id = ${1 + ((i * 7919) % rows)} and lower(a.owner) like 'owner%' and lower(t.memo) like 'memo%'`,
  },
  {
    id: 'barrier.keyed_join',
    predicate: 'two filtered tables joined by key, one named by key',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_id = a.id ' +
      `where a.id = ${1 + ((i * 7919) % rows)} and a.owner like 'owner%' and t.memo like 'memo%'`,
  },
];

function day(i: number): string {
  return new Date(Date.UTC(2020, 0, 1 + (i % 1_900))).toISOString().slice(0, 10);
}

// ---------------------------------------------------------------- the data and who may see it

export function tables(rows: number): readonly string[] {
  const script = `
    create schema bench;
    create table bench.account (
      id int8 primary key, region text not null, owner text not null, balance numeric not null, opened date not null
    );
    insert into bench.account
      select i, case when i % 10 = 0 then 'us' else 'eu' end, 'owner ' || i, i % 10000, date '2020-01-01' + (i % 2000)::int
      from generate_series(1, ${rows}) as i;
    create index on bench.account (balance);
    create index on bench.account (opened);
    create index on bench.account (owner text_pattern_ops);
    create table bench.transfer (id int8 primary key, account_id int8 not null, region text not null, memo text not null);
    insert into bench.transfer
      select i, i, case when i % 10 = 0 then 'us' else 'eu' end, 'memo ' || i from generate_series(1, ${rows}) as i;
    create index on bench.transfer (account_id);
    grant usage on schema bench to osl_reader;
    grant select on all tables in schema bench to osl_reader;
  `;
  return [script, 'vacuum analyze'];
}

function relation(name: string, columns: Readonly<Record<string, TypeName>>): Relation {
  return {
    kind: 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 'bench',
    table: name,
    columns: Object.entries(columns).map(
      ([of, type]): Column => ({
        name: of,
        physical: of,
        type,
        description: null,
        nullable: false,
        sensitivity: null,
        keyDomain: null,
      }),
    ),
    primaryKey: ['id'],
    sealedKeys: ['id', 'account_id'],
  };
}

const RELATIONS = [
  relation('account', { id: 'int8', region: 'text', owner: 'text', balance: 'numeric', opened: 'date' }),
  relation('transfer', { id: 'int8', account_id: 'int8', region: 'text', memo: 'text' }),
];

export const CATALOG: Catalog = {
  version: 'bench',
  relations: new Map(RELATIONS.map((r) => [r.name, r])),
  metrics: new Map(),
  facets: new Map(),
  edges: [],
};

function accessWith(rows: string | null): Access {
  const rights = (r: Relation) => ({
    grants: [
      {
        id: 'g',
        columns: new Set(r.columns.map((c) => c.name)),
        unmask: new Set<string>(),
        filter: rows === null ? null : bindPredicate(rows, r),
      },
    ],
    masks: new Map(),
    denied: new Set<string>(),
  });
  const relations = new Map(RELATIONS.map((r) => [r.name, rights(r)]));
  return { signature: rows ?? 'all', policyVersion: 'bench', chainLength: 1, relations };
}

// ---------------------------------------------------------------- statements and their times

/** One prepared statement and the values for each time that it is asked. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (readonly (string | null)[])[];
}

interface Both {
  readonly governed: Prepared;
  readonly open: Prepared;
}

function statements(question: Question, plan: { rows: number; asks: number }): Both {
  const of = (rows: string | null): Prepared => {
    const access = accessWith(rows);
    const all = Array.from({ length: plan.asks }, (_, i) =>
      emit(compile(question.text(i, plan.rows), CATALOG, access)),
    );
    const [first] = all;
    if (first === undefined || all.some((e) => e.sql !== first.sql))
      throw new Error(`the texts of ${question.id} are not one statement`);
    const values = all.map((e) =>
      e.slots.map((s) => (s.kind === 'literal' && typeof s.value === 'string' ? s.value : null)),
    );
    return { name: `${question.id}.${rows === null ? 'open' : 'governed'}`, text: first.sql, values };
  };
  return { governed: of("region = 'eu'"), open: of(null) };
}

async function compared(client: Client, question: Question, both: Both, rounds: number): Promise<Measure> {
  const ours: number[] = [];
  const theirs: number[] = [];
  await microseconds(client, both.open);
  await microseconds(client, both.governed);
  for (let round = 0; round < rounds; round++) {
    theirs.push(await microseconds(client, both.open));
    ours.push(await microseconds(client, both.governed));
  }
  return paired(`${question.id}.vs_no_policy`, 'µs', 'less', ours, theirs, 'the same without policy');
}

/** The mean time of one execution. */
export async function microseconds(client: Client, { name, text, values }: Prepared): Promise<number> {
  const started = process.hrtime.bigint();
  for (const given of values) await client.query({ name, text, values: [...given] });
  return Number(process.hrtime.bigint() - started) / 1_000 / values.length;
}

async function planned(client: Client, question: Question, both: Both): Promise<string[]> {
  const asks = both.governed.text.includes('#shown');
  const [policy, open] = [await scanOf(client, both.governed), await scanOf(client, both.open)];
  return [question.id, question.predicate, asks ? 'yes' : 'no', policy, open];
}

/** How the table `account` is read, by EXPLAIN. */
export async function scanOf(client: Client, { text, values }: Prepared): Promise<string> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>({
    text: `explain (costs off) ${text}`,
    values: [...(values[0] ?? [])],
  });
  const lines = rows.map((r) => r['QUERY PLAN']);
  const scan = lines.find((line) => /Scan.* on (account|transfer)/.test(line)) ?? lines[0] ?? '';
  return scan.replace(/^[\s>-]+/, '').replace(/ t(_\d+)?$/, '');
}
