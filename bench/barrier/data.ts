import {
  type Access,
  bindPredicate,
  type Catalog,
  type Column,
  declaredColumn,
  type Relation,
} from 'osl-compiler';

/** Accounts, their transfers, the entries of these transfers, and events in monthly partitions. */
export function tables(rows: number): readonly string[] {
  const hidden = "case when i % 10 = 0 then 'us' else 'eu' end";
  const script = `
    create schema bench;
    create table bench.account (
      id int8 primary key, code numeric not null unique, region text not null, owner text not null,
      balance numeric not null, opened date not null, words text[] not null
    );
    insert into bench.account
      select i, i, ${hidden}, 'owner ' || i, i % 10000, date '2020-01-01' + (i % 2000)::int, array['w' || i % 5000, 'v' || i % 7]
      from generate_series(1, ${rows}) as i;
    create index on bench.account (balance, id);
    create index on bench.account (opened);
    create index on bench.account (owner text_pattern_ops);
    create index on bench.account using gin (words);
    create table bench.transfer (
      id int8 primary key, account_id int8 not null, account_code numeric not null, region text not null,
      amount numeric not null, memo text not null
    );
    insert into bench.transfer
      select i, i, i, ${hidden}, i % 2000, 'memo ' || i from generate_series(1, ${rows}) as i;
    create index on bench.transfer (account_id);
    create index on bench.transfer (account_code);
    create index on bench.transfer (amount) include (region);
    create table bench.entry (id int8 primary key, transfer_id int8 not null, region text not null, note text not null);
    insert into bench.entry select i, i, ${hidden}, 'note ' || i from generate_series(1, ${rows}) as i;
    create index on bench.entry (transfer_id);
    create table bench.event (
      id int8 not null, day date not null, account_id int8 not null, region text not null, cost numeric not null
    ) partition by range (day);
    ${MONTHS.map(
      (month, i) => `create table bench.event_${i} partition of bench.event
        for values from ('${month}') to ('${MONTHS[i + 1] ?? '2021-01-01'}');`,
    ).join('\n')}
    insert into bench.event
      select i, date '2020-01-01' + (i % 366)::int, i, ${hidden}, i % 1000 from generate_series(1, ${rows}) as i;
    create index on bench.event (cost);
    grant usage on schema bench to osl_reader;
    grant select on all tables in schema bench to osl_reader;
  `;
  return [script, 'vacuum analyze'];
}

const MONTHS: readonly string[] = Array.from(
  { length: 12 },
  (_, i) => `2020-${String(i + 1).padStart(2, '0')}-01`,
);

/** The same row filters as Postgres row security for the reader; the owner of the tables sees all rows. */
export const ROW_SECURITY = ['account', 'transfer', 'entry', 'event']
  .map(
    (name) => `alter table bench.${name} enable row level security;
      create policy rows on bench.${name} for select to osl_reader using (region = 'eu');`,
  )
  .join('\n');

/** @param columns types by name, as a manifest spells them */
function relation(name: string, columns: Readonly<Record<string, string>>): Relation {
  return {
    kind: 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 'bench',
    table: name,
    columns: Object.entries(columns).map(([of, spelled]): Column => {
      const declared = declaredColumn(spelled);
      if (declared === null) throw new Error(`${name}.${of}: no such type`);
      const { type, form } = declared;
      return {
        name: of,
        physical: of,
        type,
        ...(form !== null && { form }),
        description: null,
        nullable: false,
        sensitivity: null,
        keyDomain: null,
      };
    }),
    primaryKey: ['id'],
    sealedKeys: ['id', 'code', 'account_id', 'account_code', 'transfer_id'].filter((key) => key in columns),
  };
}

const RELATIONS = [
  relation('account', {
    id: 'int8',
    code: 'numeric',
    region: 'text',
    owner: 'text',
    balance: 'numeric',
    opened: 'date',
    words: 'text[]',
  }),
  relation('transfer', {
    id: 'int8',
    account_id: 'int8',
    account_code: 'numeric',
    region: 'text',
    amount: 'numeric',
    memo: 'text',
  }),
  relation('entry', { id: 'int8', transfer_id: 'int8', region: 'text', note: 'text' }),
  // Created and used only by the test of plans.
  relation('sight', {
    id: 'int8',
    region: 'text',
    words: 'tsvector',
    host: 'inet',
    span: 'int4range',
    during: 'tstzrange',
    tag: 'varchar(20)',
  }),
  relation('event', { id: 'int8', day: 'date', account_id: 'int8', region: 'text', cost: 'numeric' }),
];

/** Catalog of the tables in `schema`. */
export function catalogOf(schema: string): Catalog {
  const relations = RELATIONS.map((r): Relation => ({ ...r, schema }));
  return {
    version: 'bench',
    joins: 'any',
    relations: new Map(relations.map((r) => [r.name, r])),
    rawTables: new Map(relations.map((r) => [`${schema}.${r.table}`, r])),
    metrics: new Map(),
    facets: new Map(),
    edges: [],
  };
}

export const CATALOG = catalogOf('bench');

/** Access to every column of every relation, limited to rows that satisfy `rows`. */
export function accessWith(rows: string | null): Access {
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
