import { createHash, randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import {
  type Charge,
  type Lease,
  type LimitCounter,
  type LimitShare,
  monotonicMs,
  type PasswordGuesses,
  PER_ADDRESS,
  type QuotaCount,
  type RateLimits,
  type SetAddition,
  type SetResult,
} from '../../../policy/index.js';
import {
  type ControlPlace,
  type ControlQueries,
  openControl,
  requireSchema,
} from '../../base/control/index.js';
import type { ServiceLog } from '../../base/log.js';
import { within } from '../../base/serial.js';
import { sql, sqlNumber } from '../../base/sql.js';
import { messageOf } from '../../base/thrown.js';

interface SharedCountsOptions {
  readonly tenant: string;
  readonly log: ServiceLog;
}

/** Time limit in ms for the store to answer a request. */
const PATIENCE_MS = 1_000;
/** Pause in ms after a failure, during which requests do not wait for the store. */
const REST_MS = 5_000;
const BEAT_MS = 2_000;
const BEAT_PATIENCE_MS = 8_000;
const START_MS = 3_000;
const MAX_KEYS = 100_000;

/**
 * Rate limits counted in a store shared by several processes. While the store does not answer, each process grants
 * leases from its own share: the limit divided by the last known number of processes.
 */
export class SharedCounts {
  readonly #store: CountStore;
  readonly #tenant: string;
  readonly #log: ServiceLog;
  readonly #id = randomUUID();
  readonly #beat: NodeJS.Timeout;
  #limits: RateLimits | null = null;
  #peers = 1;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failing = false;
  #heard = false;
  #saying = false;
  /** Charges that the store has not answered yet. */
  #adding: Promise<unknown> | null = null;
  /** Amounts, by hashed key, that the store counted too late for its answer; deducted when they are charged again. */
  readonly #counted = new Map<string, number>();
  /** Unused part of this process's own share in the current window, by hashed key. */
  readonly #own = new Map<string, Lease>();

  private constructor(store: CountStore, { tenant, log }: SharedCountsOptions) {
    this.#store = store;
    this.#tenant = tenant;
    this.#log = log;
    this.#beat = setInterval(() => void this.#sayHere(), BEAT_MS).unref();
  }

  /** Resolves after the store's first answer or a timeout; after a timeout, `heard` is false until it answers. */
  static async join(store: CountStore, options: SharedCountsOptions): Promise<SharedCounts> {
    const counts = new SharedCounts(store, options);
    await within(counts.#sayHere(), START_MS).catch(() => undefined);
    return counts;
  }

  /** True once the store has answered, so that the number of processes is known. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Returns the adapter through which a limiter uses the shared store; `guesses` are not counted in the store. */
  share(guesses: PasswordGuesses): LimitShare {
    return {
      guesses,
      lease: (counter, key, arrived) => this.#lease(counter, key, arrived),
      // Only leases from this process's own share are taken back. Unused tokens of the store expire within a second.
      handBack: (counter, key, lease) => this.#takeBack(this.#keyOf(JSON.stringify([counter, key])), lease),
      charge: (charges) => this.#charge(charges),
      addEntities: (additions) => this.#addEntities(additions),
      peers: () => (this.#heard ? this.#peers : null),
      limits: (limits) => {
        this.#limits = limits;
      },
    };
  }

  async #lease(counter: LimitCounter, key: string, arrived: (lease: Lease) => void): Promise<void> {
    const most = counter === 'address' ? PER_ADDRESS : (this.#limits?.[counter] ?? 0);
    const asked = this.#keyOf(JSON.stringify([counter, key]));
    const portion = await this.#inTime(() => this.#store.lease(asked, most)).catch(() => null);
    if (portion === null) arrived(this.#ownLease(asked, most));
    else arrived({ tokens: portion.tokens, endsAt: monotonicMs() + portion.endsInMs });
  }

  /** Adds charges. After a failure, they must be part of the next call. */
  async #charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
    if (this.#adding !== null) throw new Error('the store of limits has not answered the last charges yet');
    const keyed = charges.map((charge) => {
      const key = this.#keyOf(charge.key);
      return { ...charge, key, amount: charge.amount - (this.#counted.get(key) ?? 0) };
    });
    const counts = await this.#inTime(() => this.#add(keyed));
    this.#counted.clear();
    return counts;
  }

  /** Adds to the counts. Notes what the store has counted, even if nobody waits for its answer any more. */
  async #add(charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
    const adding = this.#store.add(charges);
    this.#adding = adding;
    try {
      const counts = await adding;
      for (const { key, amount } of charges) this.#counted.set(key, (this.#counted.get(key) ?? 0) + amount);
      return counts;
    } finally {
      this.#adding = null;
    }
  }

  /** Adds to sets, without a fallback to a share per process, since sets may overlap. @throws QueryError E5038 */
  async #addEntities(additions: readonly SetAddition[]): Promise<SetResult> {
    const keyed = additions.map((addition) => ({ ...addition, key: this.#keyOf(addition.key) }));
    try {
      return await this.#inTime(() => this.#store.addEntities(keyed));
    } catch {
      throw queryError('entitiesUnknown', {}); // `#inTime` has logged the cause
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#beat);
    await this.#store.close();
  }

  /** Hashes a key, so that the store does not reveal subjects. */
  #keyOf(key: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#tenant, key]))
      .digest('base64url');
  }

  #ownLease(key: string, most: number): Lease {
    const now = monotonicMs();
    const known = this.#own.get(key);
    if (known !== undefined && known.endsAt > now) {
      this.#own.set(key, { tokens: 0, endsAt: known.endsAt });
      return known;
    }
    for (const [old, { endsAt }] of this.#own) {
      if (endsAt > now && this.#own.size < MAX_KEYS) break;
      this.#own.delete(old);
    }
    const lease = { tokens: Math.max(1, Math.floor(most / this.#peers)), endsAt: now + SECOND_MS };
    this.#own.delete(key);
    this.#own.set(key, { tokens: 0, endsAt: lease.endsAt }); // the whole share is granted at once
    return lease;
  }

  #takeBack(key: string, { tokens, endsAt }: Lease): void {
    if (this.#own.get(key)?.endsAt === endsAt) this.#own.set(key, { tokens, endsAt });
  }

  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    if (monotonicMs() - this.#failedAt < REST_MS)
      throw new Error('the store of limits did not answer a moment ago');
    try {
      const found = await within(work(), PATIENCE_MS);
      this.#failedAt = Number.NEGATIVE_INFINITY;
      this.#tell(null);
      return found;
    } catch (error) {
      this.#failedAt = monotonicMs();
      this.#tell(error);
      throw error;
    }
  }

  async #sayHere(): Promise<void> {
    if (this.#saying) return;
    this.#saying = true;
    try {
      this.#peers = await within(this.#store.here(this.#id), BEAT_PATIENCE_MS);
      if (!this.#heard) this.#tell(null);
      this.#heard = true;
    } catch (error) {
      this.#tell(error);
    } finally {
      this.#saying = false;
    }
  }

  /** Logs only when the store stops answering and when it answers again. */
  #tell(error: unknown): void {
    const failing = error !== null;
    if (failing === this.#failing) return;
    this.#failing = failing;
    if (!failing) this.#log.warn('the store of limits answers again');
    else if (!this.#heard)
      this.#log.error(
        'the store of limits has not answered yet: every request is refused (E5038) until it does',
        {
          error: messageOf(error),
        },
      );
    else
      this.#log.warn('the store of limits does not answer: each process counts its own part', {
        error: messageOf(error),
        processes: this.#peers,
      });
  }
}

/** A batch of leased quota. If `tokens` is 0, nothing is left until the window ends. */
export interface Portion {
  readonly tokens: number;
  readonly endsInMs: number;
}

/** A store of counts by hashed key. Methods reject if it does not answer in time. */
export interface CountStore {
  /** Leases part of what is left of `most` in the one-second window of `key`, which starts when `key` is first used. */
  lease(key: string, most: number): Promise<Portion>;
  /** Adds to counts and returns their new values, in the order of `charges`. */
  add(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Adds to sets as `EntitySets.add` does. */
  addEntities(additions: readonly SetAddition[]): Promise<SetResult>;
  /** Sends a heartbeat of process `id`. Returns the number of live processes. */
  here(id: string): Promise<number>;
  close(): Promise<void>;
}

/** A lease takes 1/`PART` of the remaining quota, so that some is left for other processes. */
export const PART = 8;
/** Window of leased limits in ms. */
export const SECOND_MS = 1_000;
/** Time in ms without a heartbeat after which a process is considered gone. */
export const GONE_MS = 10_000;

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

/**
 * Statement that adds to counts, ordered by key to avoid deadlocks, and returns them. An amount of 0 only queries a
 * count; there is no row for it if no window is current.
 */
const ADD = sql`
with charge as (select * from unnest($1::text[], $2::float8[], $3::bigint[]) as charge(key, ms, amount)),
added as (
  insert into osl_control.limit_count as c (key, ends_at, used, granted)
  select key, clock_timestamp() + ms * interval '1 millisecond', amount, 0
  from charge where amount <> 0 order by key
  on conflict (key) do update set
    used = case when c.ends_at <= clock_timestamp() then excluded.used else c.used + excluded.used end,
    ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
  returning key, used, ends_at),
counts as (
  select key, used, ends_at from added
  union all
  select key, used, ends_at from charge join osl_control.limit_count using (key)
  where amount = 0 and ends_at > clock_timestamp())
select key, used, 1000 * extract(epoch from ends_at - clock_timestamp()) as ms from counts`;

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
  return charges.map(({ key, windowMs }) => {
    const row = found.get(key);
    return { used: Number(row?.['used'] ?? 0), endsInMs: Number(row?.['ms'] ?? windowMs) };
  });
}

async function addEntities(database: ControlQueries, additions: readonly SetAddition[]): Promise<SetResult> {
  const rows = await database.query(ADD_ENTITIES, [
    additions.map(({ key }) => key),
    additions.map(({ windowMs }) => windowMs),
    additions.map(({ maxSize: most }) => most),
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
