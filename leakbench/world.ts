import pg from 'pg';
import { type EndpointKind, WORLDS, type WorldName, type Worlds } from './endpoint.js';

/**
 * A shop. The clerk may see customers, purchases and tickets of the region `north`, of customers the columns of
 * `CLERK_COLUMNS`, all regions, and nothing of `staff`.
 *
 * Hidden data differs between the worlds `a` and `b` in every way that an attacker may look for: number of rows, keys, extremes, texts that cannot be cast, zeros to divide by, NULLs, sizes, and hidden columns and tables.
 */
export const CLERK_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  customer: ['id', 'region', 'name', 'code', 'credit', 'born', 'vip', 'tags'],
  purchase: ['id', 'customer_id', 'region', 'placed', 'amount', 'item'],
  region: ['code', 'label'],
  ticket: ['id', 'region', 'code', 'amount', 'about'],
};

/**
 * Condition of the rows that a caller of a region may see. The filter of tickets costs more than a cheap condition, and
 * no index has it, so that a planner puts the condition first if it may.
 *
 * @param region expression of SQL
 */
export function rowsOf(table: string, region = "'north'"): string {
  switch (table) {
    case 'region':
      return 'true';
    case 'ticket':
      return `replace(lower(btrim(region)), ' ', '') = ${region}`;
    default:
      return `region = ${region}`;
  }
}

const TABLES = `
create table region (code text primary key, label text not null);
create table customer (
  id int primary key, region text not null references region, name text not null, code text not null, credit numeric,
  born date not null, vip bool not null, tags text[] not null, email text not null, ssn text not null, notes jsonb
);
create table purchase (
  id int primary key, customer_id int not null references customer, region text not null references region,
  placed date not null, amount numeric not null, item text not null
);
create table staff (id int primary key, name text not null, salary int not null);
create table ticket (
  id int primary key, region text not null, code text not null, amount int not null, about text not null
);
create index on customer (region);
create index on customer (name);
create index on purchase (customer_id);
create index on purchase (region, placed);
insert into region values ('north', 'North'), ('south', 'South'), ('west', 'West');
`;

/** Rows that the clerk may see; the hidden columns of customers take \`secret\`. */
const visible = (secret: string): string => `
insert into customer select n, 'north', 'Customer ' || n, (100 + n)::text, (n % 7 + 1) * 10.5, date '1970-01-01' + 37 * n,
  n % 5 = 0, array['t' || n % 3, 'all'], '${secret}' || n || '@example.com', '${secret}-' || n * 7,
  jsonb_build_object('word', '${secret}' || n) from generate_series(1, 60) n;
insert into purchase select n, n % 60 + 1, 'north', date '2025-01-01' + n, (n % 13 + 1) * 9.25, 'Item ' || n % 9
  from generate_series(1, 200) n;
insert into ticket select n, ' North', (10 * n)::text, n, 'Ticket ' || n from generate_series(1, 9) n;
`;

/** Rows that the clerk may not see. They come first, so that they have places before the others. */
const HIDDEN: Readonly<Record<'a' | 'b', string>> = {
  a: `
insert into customer select n, 'south', 'Needle ' || n, 'SECRET-' || n, case when n = 1007 then 0 else n end,
  date '1900-01-01' + n - 1000, true, array['hidden', 'alpha'], 'alpha' || n || '@example.com', 'a-' || n,
  jsonb_build_object('word', n) from generate_series(1001, 1800) n;
insert into customer select n, 'west', 'Western ' || n, n::text, null, date '1950-01-01', false, '{}', 'w' || n, 'w', null
  from generate_series(2001, 2040) n;
insert into purchase select n, 1001 + n % 700, 'south', date '2000-01-01' + n % 900, case when n = 5007 then 0 else n end,
  'Alpha ' || n from generate_series(5001, 8000) n;
insert into staff select n, 'Boss ' || n, 1000 * n from generate_series(1, 7) n;
insert into ticket select n, 'South', 'secret-' || n, 0, 'Hidden \\' from generate_series(101, 112) n;`,
  b: `
insert into customer select n, 'south', 'Other ' || n, n::text, 3, date '1980-01-01' + n - 1000, false,
  array['hidden', 'beta'], 'beta' || n || '@example.com', 'b-' || n, null from generate_series(1101, 1500) n;
insert into purchase select n, 1101 + n % 300, 'south', date '2010-01-01' + n % 30, 7, 'Beta'
  from generate_series(6001, 6900) n;
insert into staff select n, 'Chief ' || n, 77 * n from generate_series(11, 40) n;
insert into ticket select n, 'West', n::text, n, 'Other ' || n from generate_series(201, 205) n;
alter table customer add column risk int;
create table complaint (id int primary key, about text not null);
insert into complaint select n, 'Complaint ' || n from generate_series(1, 5) n;`,
};

/**
 * Creates the databases of the worlds anew.
 *
 * @param url of a superuser, or an owner who may create databases
 * @param data `visible`: nothing is in them that the clerk may not see, so they are equal
 */
export async function createWorlds(url: string, prefix: string, data: EndpointKind['data']): Promise<Worlds> {
  const at = (name: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const owner: Record<WorldName, string> = { a: '', copy: '', b: '' };
  for (const world of WORLDS) {
    const name = `${prefix}_${world}`;
    await run(url, `drop database if exists ${name} with (force)`);
    await run(url, `create database ${name}`);
    owner[world] = at(name);
    const side = world === 'b' ? 'b' : 'a';
    await run(at(name), data === 'visible' ? ONLY_VISIBLE : everything(side));
    await run(at(name), 'vacuum analyze');
  }
  return { owner };
}

const everything = (side: 'a' | 'b'): string =>
  `${TABLES} ${HIDDEN[side]} ${visible(side === 'a' ? 'alpha' : 'beta')}`;

const ONLY_VISIBLE = `${TABLES} ${visible('none')}
alter table customer drop column email, drop column ssn, drop column notes;
drop table staff;`;

export async function dropWorlds(url: string, prefix: string): Promise<void> {
  for (const world of WORLDS) await run(url, `drop database if exists ${prefix}_${world} with (force)`);
}

/** Runs a script. */
export async function run(url: string, script: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(script);
  } finally {
    await client.end();
  }
}
