import { type Sql, sql, sqlName } from '../sql.js';
import { type ControlDatabase, ControlFault, type ControlQueries, controlFault } from './database.js';

const TABLE_SQL = sql`
-- Tokens that were revoked before their end. Times are ms since the epoch, by the clock of the gateway that revoked.
create table osl_control.revocation (
  tenant text not null,
  number bigint not null check (number > 0),
  id uuid not null,
  kind text not null check (kind in ('token', 'subject')),
  name text not null,
  at_ms bigint not null,
  until_ms bigint not null,
  gateway text not null,
  login text not null default session_user,
  at timestamptz not null default now(),
  primary key (tenant, number),
  unique (tenant, id)
);
create trigger append_only before update or delete or truncate on osl_control.revocation
  for each statement execute function osl_control.refuse_change();
create trigger tell after insert on osl_control.revocation
  for each statement execute function osl_control.tell();
`;

const REVOCATIONS = Object.freeze({
  number: 4,
  name: 'revoked tokens',
  script: TABLE_SQL,
  tables: {
    revocation: {
      gateway: sql`select, insert (tenant, number, id, kind, name, at_ms, until_ms, gateway)`,
      author: null,
    },
  },
});

/** Unlogged tables: a crash empties them, which is harmless, since rate-limit windows expire anyway. */
const SQL = sql`
-- What is used of limits, under hashes of what is counted.
create unlogged table osl_control.limit_count (
  key text primary key,
  ends_at timestamptz not null,
  used bigint not null,
  granted bigint not null
);
create index limit_count_ends_at on osl_control.limit_count (ends_at);

-- Which processes count there.
create unlogged table osl_control.limit_peer (
  id text primary key,
  seen_at timestamptz not null
);
`;

const LIMITS = Object.freeze({
  number: 3,
  name: 'counts of limits',
  script: SQL,
  tables: {
    limit_count: { gateway: sql`select, insert, update, delete`, author: null },
    limit_peer: { gateway: sql`select, insert, update, delete`, author: null },
  },
});

/** Unlogged: a crash empties the table, but each gateway writes its row again every few seconds. */
const CLOCK_TABLE = sql`
-- How far the clock of each gateway is from that of this database, in ms; positive if it is ahead.
create unlogged table osl_control.gateway_clock (
  tenant text not null,
  gateway text not null,
  offset_ms double precision not null,
  seen_at timestamptz not null,
  primary key (tenant, gateway)
);
`;

const CLOCKS = Object.freeze({
  number: 5,
  name: 'clocks of gateways',
  script: CLOCK_TABLE,
  tables: {
    gateway_clock: { gateway: sql`select, insert, update, delete`, author: null },
  },
});

/** Unlogged like `limit_count`, with which it is used: a crash empties both. */
const ENTITY_SETS = sql`
-- Keyed hashes of the entities that a limit has counted, in the window of the limit that ends then.
create unlogged table osl_control.entity_member (
  key text not null,
  ends_at timestamptz not null,
  member text not null,
  primary key (key, ends_at, member)
);
create index entity_member_ends_at on osl_control.entity_member (ends_at);

-- Adds members to the sets that own them (from 1), or nothing if a set would have more than its maximum.
create function osl_control.add_entities(
  keys text[], windows_ms double precision[], maxima bigint[], owners bigint[], members text[]
) returns table (owner bigint, used bigint, ms double precision, refused boolean) language plpgsql as $$
#variable_conflict use_column
declare
  began constant timestamptz := clock_timestamp();
  ends timestamptz[] := '{}';
  sizes bigint[] := '{}';
  added bigint[] := '{}';
  exceeds boolean := false;
  more bigint;
begin
  -- Locks the sets, in the order of their keys, so that what follows sees what others have added.
  insert into osl_control.limit_count as c (key, ends_at, used, granted)
  select s.key, began + s.ms * interval '1 millisecond', 0, 0 from unnest(keys, windows_ms) as s(key, ms) order by 1
  on conflict (key) do update set
    used = case when c.ends_at <= began then 0 else c.used end,
    ends_at = case when c.ends_at <= began then excluded.ends_at else c.ends_at end;
  begin
    for i in 1 .. cardinality(keys) loop
      ends[i] := (select c.ends_at from osl_control.limit_count c where c.key = keys[i]);
      sizes[i] := (select c.used from osl_control.limit_count c where c.key = keys[i]);
      -- Not an anti-join: Postgres may plan it for an empty table, which takes quadratic time later.
      insert into osl_control.entity_member (key, ends_at, member)
      select keys[i], ends[i], n.member from unnest(owners, members) as n(owner, member) where n.owner = i
      on conflict do nothing;
      get diagnostics more = row_count;
      added[i] := more;
      exceeds := exceeds or (more > 0 and sizes[i] + more > maxima[i]);
    end loop;
    if exceeds then raise sqlstate 'OSL01'; end if;
    for i in 1 .. cardinality(keys) loop
      update osl_control.limit_count c set used = sizes[i] + added[i] where c.key = keys[i] and added[i] > 0;
    end loop;
  exception when sqlstate 'OSL01' then
    null; -- undoes what was added
  end;
  return query
  select s.owner, case when exceeds then s.size else s.size + s.more end,
    1000 * extract(epoch from s.ends_at - clock_timestamp())::double precision, s.more > 0 and s.size + s.more > s.maximum
  from unnest(sizes, added, maxima, ends) with ordinality as s(size, more, maximum, ends_at, owner) order by s.owner;
end $$;
`;

const ENTITIES = Object.freeze({
  number: 6,
  name: 'entities that limits count',
  script: ENTITY_SETS,
  tables: { entity_member: { gateway: sql`select, insert, delete`, author: null } },
});

const OVERLAP_TABLE = sql`
-- Answers that are compared with each other, as hashes of the rows behind them, under hashes of whose they are.
create table osl_control.overlap_history (
  tenant text not null,
  key text not null,
  ends_at timestamptz not null,
  state bytea not null,
  primary key (tenant, key)
);
create index overlap_history_ends_at on osl_control.overlap_history (ends_at);
`;

const OVERLAPS = Object.freeze({
  number: 7,
  name: 'answers that are compared',
  script: OVERLAP_TABLE,
  tables: {
    overlap_history: { gateway: sql`select, insert, update, delete`, author: null },
  },
});

const APPROVAL_TABLE = sql`
-- Requests for a person's approval, and what was decided: each part is written once, and gone after its end.
create table osl_control.approval (
  tenant text not null,
  id uuid not null,
  request text not null,
  decision text,
  revoked text,
  until_ms bigint not null,
  gateway text not null,
  at timestamptz not null default now(),
  primary key (tenant, id)
);
`;

const APPROVALS = Object.freeze({
  number: 8,
  name: 'approvals',
  script: APPROVAL_TABLE,
  tables: {
    approval: { gateway: sql`select, insert, update, delete`, author: null },
  },
});

interface TablePrivileges {
  readonly gateway: Sql | null;
  readonly author: Sql | null;
}

/** A migration of `osl_control`. Append new ones; never edit one that may have run somewhere. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  /** Static SQL, run as the owner in a single transaction with all other pending migrations. */
  readonly script: Sql;
  /** Tables that the migration creates, with the privileges to grant on them, such as `select, insert`. */
  readonly tables: Readonly<Record<string, TablePrivileges>>;
}

const APPEND_ONLY = sql`
create function osl_control.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'osl_control.% is append-only', tg_table_name using errcode = '42501';
end $$;
`;

const POLICY = sql`
${APPEND_ONLY}
create function osl_control.tell() returns trigger language plpgsql as $$
begin
  perform pg_notify('osl_control', tg_table_name);
  return null;
end $$;

-- Every text that was ever proposed as a policy.
create table osl_control.policy_version (
  tenant text not null,
  number bigint not null check (number > 0),
  digest text not null check (digest ~ '^[0-9a-f]{64}$'),
  parent bigint,
  text text not null,
  author text not null,
  comment text,
  login text not null default session_user,
  at timestamptz not null default now(),
  primary key (tenant, number),
  foreign key (tenant, parent) references osl_control.policy_version,
  check (parent < number)
);

-- Which of them served from when: the one with the greatest number serves.
create table osl_control.policy_activation (
  tenant text not null,
  number bigint not null check (number > 0),
  version bigint not null,
  action text not null check (action in ('activate', 'rollback')),
  author text not null,
  comment text,
  published bigint not null,
  login text not null default session_user,
  at timestamptz not null default now(),
  primary key (tenant, number),
  foreign key (tenant, version) references osl_control.policy_version
);

-- What was published by API, by gateways: bytes under their own hash, each naming the one before it.
create table osl_control.published_version (
  tenant text not null,
  number bigint not null check (number > 0),
  id text not null check (id ~ '^[0-9a-f]{64}$'),
  parent text,
  bytes bytea not null,
  gateway text not null,
  login text not null default session_user,
  at timestamptz not null default now(),
  primary key (tenant, number),
  unique (tenant, id),
  foreign key (tenant, parent) references osl_control.published_version (tenant, id),
  check ((parent is null) = (number = 1))
);

create trigger append_only before update or delete or truncate on osl_control.policy_version
  for each statement execute function osl_control.refuse_change();
create trigger append_only before update or delete or truncate on osl_control.policy_activation
  for each statement execute function osl_control.refuse_change();
create trigger append_only before update or delete or truncate on osl_control.published_version
  for each statement execute function osl_control.refuse_change();
create trigger tell after insert on osl_control.policy_activation
  for each statement execute function osl_control.tell();
create trigger tell after insert on osl_control.published_version
  for each statement execute function osl_control.tell();
`;

const KEYS = sql`
-- What may be shown of the keys that all gateways of a tenant have: whoever comes with another is told so.
create table osl_control.gateway_key (
  tenant text not null,
  kind text not null check (kind in ('signing', 'masking')),
  fingerprint text not null,
  gateway text not null,
  at timestamptz not null default now(),
  primary key (tenant, kind)
);
`;

const STEPS: readonly Migration[] = Object.freeze([
  {
    number: 1,
    name: 'policies and published versions',
    script: POLICY,
    tables: {
      policy_version: {
        gateway: sql`select`,
        author: sql`select, insert (tenant, number, digest, parent, text, author, comment)`,
      },
      policy_activation: {
        gateway: sql`select`,
        author: sql`select, insert (tenant, number, version, action, author, comment, published)`,
      },
      published_version: {
        gateway: sql`select, insert (tenant, number, id, parent, bytes, gateway)`,
        author: sql`select`,
      },
    },
  },
  {
    number: 2,
    name: 'fingerprints of the keys that gateways share',
    script: KEYS,
    tables: {
      gateway_key: { gateway: sql`select, insert (tenant, kind, fingerprint, gateway)`, author: null },
    },
  },
]);

/** Returns `steps` unchanged. @throws Error if their numbers are not 1, 2, 3 and so on */
function inOrder(steps: readonly Migration[]): readonly Migration[] {
  if (steps.some(({ number }, i) => number !== i + 1))
    throw new Error('steps of osl_control have wrong numbers');
  return Object.freeze([...steps]);
}

export const MIGRATIONS: readonly Migration[] = inOrder([
  ...STEPS,
  LIMITS,
  REVOCATIONS,
  CLOCKS,
  ENTITIES,
  OVERLAPS,
  APPROVALS,
]);

/** Database roles to grant privileges to, by kind. */
export interface ControlRoles {
  readonly gateway: readonly string[];
  readonly author: readonly string[];
}

export interface MigrationResult {
  readonly ran: readonly Migration[];
  /** Number of the database's newest migration, which this gateway may not know yet. */
  readonly stands: number;
}

/**
 * Migrates the schema `osl_control` in one transaction, and grants the roles their privileges.
 *
 * @throws ControlFault, e.g. if the role may not create the schema, or a named role does not exist
 */
export function migrate(database: ControlDatabase, roles: ControlRoles): Promise<MigrationResult> {
  return database.transaction('migrate', async (tx) => {
    const stands = await standing(tx);
    if (stands === null) {
      // `create schema if not exists` would need the privilege even if the schema exists.
      const [found] = await tx.query(sql`select to_regnamespace('osl_control') is not null as made`);
      if (found?.['made'] !== true) await tx.query(sql`create schema osl_control`);
      await tx.query(
        sql`create table osl_control.migration (
           number integer primary key, name text not null, at timestamptz not null default now())`,
      );
    }
    const ran = MIGRATIONS.filter(({ number }) => number > (stands ?? 0));
    for (const { number, name, script } of ran) {
      await tx.query(script);
      await tx.query(sql`insert into osl_control.migration (number, name) values ($1, $2)`, [number, name]);
    }
    await grant(tx, roles);
    return { ran, stands: Math.max(stands ?? 0, ...MIGRATIONS.map(({ number }) => number)) };
  });
}

/**
 * Checks that the schema is up to date, and otherwise migrates it if the role may. @throws ControlFault with
 * instructions
 */
export async function requireSchema(database: ControlDatabase): Promise<void> {
  const newest = Math.max(...MIGRATIONS.map(({ number }) => number));
  const [found] = await database.query(
    sql`select to_regclass('osl_control.migration') is not null as made,
            coalesce(has_schema_privilege(to_regnamespace('osl_control'), 'create'),
                     has_database_privilege(current_database(), 'create')) as may`,
  );
  if (found?.['made'] === true) {
    const [at] = await database.query(sql`select max(number) as number from osl_control.migration`);
    if (Number(at?.['number'] ?? 0) >= newest) return;
  }
  if (found?.['may'] !== true)
    throw new ControlFault(
      'the control database: the schema osl_control is missing or older than this gateway: run `osl control migrate` as its owner',
      null,
    );
  await migrate(database, { gateway: [], author: [] });
}

async function standing(tx: ControlQueries): Promise<number | null> {
  const [found] = await tx.query(sql`select to_regclass('osl_control.migration') is not null as made`);
  if (found?.['made'] !== true) return null;
  const [newest] = await tx.query(sql`select max(number) as number from osl_control.migration`);
  return Number(newest?.['number'] ?? 0);
}

async function grant(tx: ControlQueries, roles: ControlRoles): Promise<void> {
  for (const kind of ['gateway', 'author'] as const) {
    for (const role of roles[kind]) {
      const name = quoted(role);
      await tx.query(sql`grant usage on schema osl_control to ${name}`);
      await tx.query(sql`grant select on osl_control.migration to ${name}`);
      for (const { tables } of MIGRATIONS)
        for (const [table, rights] of Object.entries(tables)) {
          const granted = rights[kind];
          if (granted !== null)
            await tx.query(sql`grant ${granted} on osl_control.${sqlName(table)} to ${name}`);
        }
    }
  }
}

function quoted(role: string): Sql {
  if (role === '' || role.includes('\0') || Buffer.byteLength(role) > 63)
    throw controlFault(new Error(`no name of a role: ${JSON.stringify(role)}`));
  return sqlName(role);
}
