import type { Charge, QuotaCount, SetAddition, SetResult } from '../../../policy/index.js';
import {
  type ControlPlace,
  type ControlQueries,
  openControl,
  requireSchema,
} from '../../base/control/index.js';
import { sql, sqlNumber } from '../../base/sql.js';
import { type CountStore, GONE_MS, PART, type Portion, SECOND_MS } from './shared-counts.js';

const STATEMENT_MS = 2_000;
const CONNECTIONS = 2;
/** Number of heartbeats between two clean-ups. */
const SWEEP_EVERY = 15;

/** Statement that leases a batch, and restarts a window that has ended by the database's clock. */
const LEASE = sql`
insert into osl_control.limit_count as c (key, ends_at, used, granted)
values ($1, clock_timestamp() + $3 * interval '1 millisecond', ceil($2::numeric / ${sqlNumber(PART)}), ceil($2::numeric / ${sqlNumber(PART)}))
on conflict (key) do update set
  granted = case when c.ends_at <= clock_timestamp() then excluded.granted
                 else greatest(0, ceil(($2::numeric - c.used) / ${sqlNumber(PART)})) end,
  used = case when c.ends_at <= clock_timestamp() then excluded.used
              else c.used + greatest(0, ceil(($2::numeric - c.used) / ${sqlNumber(PART)})) end,
  ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
returning granted, 1000 * extract(epoch from ends_at - clock_timestamp()) as ms`;

/** Statement that adds to counts, ordered by key to avoid deadlocks. */
const ADD = sql`
insert into osl_control.limit_count as c (key, ends_at, used, granted)
select key, clock_timestamp() + ms * interval '1 millisecond', amount, 0
from unnest($1::text[], $2::float8[], $3::bigint[]) as charge(key, ms, amount) order by key
on conflict (key) do update set
  used = case when c.ends_at <= clock_timestamp() then excluded.used else c.used + excluded.used end,
  ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
returning key, used, 1000 * extract(epoch from ends_at - clock_timestamp()) as ms`;

const ADD_ENTITIES = sql`
select used, ms, refused from osl_control.add_entities($1::text[], $2::float8[], $3::bigint[], $4::bigint[], $5::text[])
order by owner`;

const HERE = sql`
insert into osl_control.limit_peer (id, seen_at) values ($1, clock_timestamp())
on conflict (id) do update set seen_at = excluded.seen_at`;
const PEERS = sql`select count(*)::int as peers from osl_control.limit_peer
where seen_at > clock_timestamp() - $1 * interval '1 millisecond'`;
const SWEEP = sql`
delete from osl_control.limit_count where key in
  (select key from osl_control.limit_count where ends_at < clock_timestamp() - interval '1 minute'
   limit 10000 for update skip locked)`;
const SWEEP_ENTITIES = sql`
delete from osl_control.entity_member where ctid = any (array
  (select ctid from osl_control.entity_member where ends_at < clock_timestamp() - interval '1 minute' limit 100000))`;
const SWEEP_PEERS = sql`delete from osl_control.limit_peer where seen_at < clock_timestamp() - interval '1 hour'`;

/** Keeps counts in tables of `osl_control`; the first heartbeat checks the schema. */
export async function openPostgresCounts(place: ControlPlace): Promise<CountStore> {
  const database = openControl(place, { connections: CONNECTIONS, statementMs: STATEMENT_MS });
  let hasSchema = false;
  let told = 0;
  return Object.freeze({
    lease: (key: string, most: number) => lease(database, key, most),
    add: (charges: readonly Charge[]) => add(database, charges),
    addEntities: (additions: readonly SetAddition[]) => addEntities(database, additions),
    here: async (id: string) => {
      if (!hasSchema) await requireSchema(database);
      hasSchema = true;
      await database.query(HERE, [id]);
      if (told++ % SWEEP_EVERY === 0) {
        await database.query(SWEEP);
        await database.query(SWEEP_ENTITIES);
        await database.query(SWEEP_PEERS);
      }
      const [row] = await database.query(PEERS, [GONE_MS]);
      return Number(row?.['peers'] ?? 1);
    },
    close: () => database.close(),
  });
}

async function lease(database: ControlQueries, key: string, most: number): Promise<Portion> {
  const [row] = await database.query(LEASE, [key, most, SECOND_MS]);
  return { tokens: Number(row?.['granted'] ?? 0), endsInMs: Number(row?.['ms'] ?? 0) };
}

async function add(database: ControlQueries, charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
  const columns = [
    charges.map(({ key }) => key),
    charges.map(({ windowMs }) => windowMs),
    charges.map(({ amount }) => amount),
  ];
  const rows = await database.query(ADD, columns);
  const found = new Map(rows.map((row) => [String(row['key']), row]));
  return charges.map(({ key }) => {
    const row = found.get(key);
    return { used: Number(row?.['used'] ?? 0), endsInMs: Number(row?.['ms'] ?? 0) };
  });
}

async function addEntities(database: ControlQueries, additions: readonly SetAddition[]): Promise<SetResult> {
  const rows = await database.query(ADD_ENTITIES, [
    additions.map(({ key }) => key),
    additions.map(({ windowMs }) => windowMs),
    additions.map(({ most }) => most),
    additions.flatMap(({ members }, i) => members.map(() => i + 1)),
    additions.flatMap(({ members }) => members),
  ]);
  if (rows.length !== additions.length) throw new Error('the store of limits lost a set');
  const refused = rows.findIndex((row) => row['refused'] === true);
  return {
    refused: refused < 0 ? null : refused,
    counts: rows.map((row) => ({ used: Number(row['used']), endsInMs: Number(row['ms']) })),
  };
}
