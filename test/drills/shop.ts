import { isDeepStrictEqual } from 'node:util';

/** A small shop whose answers are known. */

const ACCOUNTS = 1_000;
const REGIONS = 4;

export const TABLES = `
  create schema shop;
  create table shop.account (id int primary key, name text, region text, amount int);
  insert into shop.account
    select n, 'name ' || n, 'r' || n % ${REGIONS}, n from generate_series(1, ${ACCOUNTS}) n;
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;`;

export const MANIFEST = `version: 1
tenant: demo
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      shop.account:
        columns: { id: { type: int4 }, name: { type: text }, region: { type: text }, amount: { type: int4 } }
entities:
  account:
    source: db.shop.account
    primary_key: [id]
    columns:
      id: { column: id }
      name: { column: name }
      region: { column: region }
      amount: { column: amount }
`;

/** `user:watch` sees `columns`; whoever asks for load sees all of them. */
export function policyText(columns: string): string {
  return `version: 1
tenant: demo
subjects:
  user:load: { ceiling: [load] }
  user:watch: { ceiling: [watch] }
  user:admin: { ceiling: [load], admin: [TENANT_ADMIN] }
roles:
  load: { grants: [{ on: account, columns: [id, name, region, amount] }] }
  watch: { grants: [{ on: account, columns: [${columns}] }] }
masks: {}
limits: { query: 100000, catalog: 100000, authoring: 1000 }
`;
}

export interface Question {
  readonly osql: string;
  /** True if these rows, as objects, are the answer. Numbers may be text. */
  isAnswer(rows: readonly unknown[]): boolean;
}

/** One of three kinds: a row by its key, a group for each region, a sum over one region. */
export function questionOf(turn: number): Question {
  const n = 1 + ((turn * 7919) % ACCOUNTS);
  const region = `r${n % REGIONS}`;
  const ids = Array.from({ length: ACCOUNTS }, (_, i) => i + 1).filter((id) => `r${id % REGIONS}` === region);
  switch (turn % 3) {
    case 0:
      return question(`select name from osl.entities.account where id = ${n}`, [{ name: `name ${n}` }]);
    case 1:
      return question(
        'select region, count(*) as n from osl.entities.account group by region order by region',
        Array.from({ length: REGIONS }, (_, i) => ({ region: `r${i}`, n: ACCOUNTS / REGIONS })),
      );
    default:
      return question(`select sum(amount) as total from osl.entities.account where region = '${region}'`, [
        { total: ids.reduce((sum, id) => sum + id, 0) },
      ]);
  }
}

function question(osql: string, expected: readonly Readonly<Record<string, string | number>>[]): Question {
  const text = (rows: readonly unknown[]): unknown =>
    rows.map((row) =>
      Object.fromEntries(Object.entries(Object(row)).map(([name, value]) => [name, String(value)])),
    );
  return { osql, isAnswer: (rows) => isDeepStrictEqual(text(rows), text(expected)) };
}
