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
const RESPONSE_TIMEOUT_MS = 1_000;
/** Pause in ms after a failure, during which requests do not wait for the store. */
const RETRY_AFTER_FAILURE_MS = 5_000;
const HEARTBEAT_MS = 2_000;
const HEARTBEAT_TIMEOUT_MS = 8_000;
const JOIN_TIMEOUT_MS = 3_000;
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
  readonly #heartbeatTimer: NodeJS.Timeout;
  #limits: RateLimits | null = null;
  #peers = 1;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #hasAnswered = false;
  #isSendingHeartbeat = false;
  /** Charges that the store has not answered yet. */
  #pendingAdd: Promise<unknown> | null = null;
  /** Amounts, by hashed key, that the store counted too late for its answer; deducted when they are charged again. */
  readonly #lateCounts = new Map<string, number>();
  /** Unused part of this process's own share in the current window, by hashed key. */
  readonly #localLeases = new Map<string, Lease>();

  private constructor(store: CountStore, { tenant, log }: SharedCountsOptions) {
    this.#store = store;
    this.#tenant = tenant;
    this.#log = log;
    this.#heartbeatTimer = setInterval(() => void this.#sendHeartbeat(), HEARTBEAT_MS).unref();
  }

  /** Resolves after the store's first answer or a timeout; after a timeout, `hasAnswered` is false until it answers. */
  static async join(store: CountStore, options: SharedCountsOptions): Promise<SharedCounts> {
    const counts = new SharedCounts(store, options);
    await within(counts.#sendHeartbeat(), JOIN_TIMEOUT_MS).catch(() => undefined);
    return counts;
  }

  /** True once the store has answered, so that the number of processes is known. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Returns the adapter through which a limiter uses the shared store; `guesses` are not counted in the store. */
  share(guesses: PasswordGuesses): LimitShare {
    return {
      guesses,
      lease: (counter, key, onLease) => this.#lease(counter, key, onLease),
      // Only leases from this process's own share are taken back. Unused tokens of the store expire within a second.
      handBack: (counter, key, lease) =>
        this.#returnLocal(this.#keyOf(JSON.stringify([counter, key])), lease),
      charge: (charges) => this.#charge(charges),
      addEntities: (additions) => this.#addEntities(additions),
      peers: () => (this.#hasAnswered ? this.#peers : null),
      limits: (limits) => {
        this.#limits = limits;
      },
    };
  }

  async #lease(counter: LimitCounter, key: string, onLease: (lease: Lease) => void): Promise<void> {
    const limit = counter === 'address' ? PER_ADDRESS : (this.#limits?.[counter] ?? 0);
    const hashedKey = this.#keyOf(JSON.stringify([counter, key]));
    const leased = await this.#withTimeout(() => this.#store.lease(hashedKey, limit)).catch(() => null);
    if (leased === null) onLease(this.#localLease(hashedKey, limit));
    else onLease({ tokens: leased.tokens, endsAt: monotonicMs() + leased.endsInMs });
  }

  /** Adds charges. After a failure, they must be part of the next call. */
  async #charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
    if (this.#pendingAdd !== null)
      throw new Error('the store of limits has not answered the last charges yet');
    const hashed = charges.map((charge) => {
      const key = this.#keyOf(charge.key);
      return { ...charge, key, amount: charge.amount - (this.#lateCounts.get(key) ?? 0) };
    });
    const counts = await this.#withTimeout(() => this.#add(hashed));
    this.#lateCounts.clear();
    return counts;
  }

  /** Adds to the counts. Notes what the store has counted, even if nobody waits for its answer any more. */
  async #add(charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
    const pending = this.#store.add(charges);
    this.#pendingAdd = pending;
    try {
      const counts = await pending;
      for (const { key, amount } of charges)
        this.#lateCounts.set(key, (this.#lateCounts.get(key) ?? 0) + amount);
      return counts;
    } finally {
      this.#pendingAdd = null;
    }
  }

  /** Adds to sets, without a fallback to a share per process, since sets may overlap. @throws QueryError E5038 */
  async #addEntities(additions: readonly SetAddition[]): Promise<SetResult> {
    const hashed = additions.map((addition) => ({ ...addition, key: this.#keyOf(addition.key) }));
    try {
      return await this.#withTimeout(() => this.#store.addEntities(hashed));
    } catch {
      throw queryError('entitiesUnknown', {}); // `#withTimeout` has logged the cause
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    await this.#store.close();
  }

  /** Hashes a key, so that the store does not reveal subjects. */
  #keyOf(key: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#tenant, key]))
      .digest('base64url');
  }

  #localLease(key: string, limit: number): Lease {
    const now = monotonicMs();
    const existing = this.#localLeases.get(key);
    if (existing !== undefined && existing.endsAt > now) {
      this.#localLeases.set(key, { tokens: 0, endsAt: existing.endsAt });
      return existing;
    }
    for (const [oldKey, { endsAt }] of this.#localLeases) {
      if (endsAt > now && this.#localLeases.size < MAX_KEYS) break;
      this.#localLeases.delete(oldKey);
    }
    const lease = { tokens: Math.max(1, Math.floor(limit / this.#peers)), endsAt: now + SECOND_MS };
    this.#localLeases.delete(key);
    this.#localLeases.set(key, { tokens: 0, endsAt: lease.endsAt }); // the whole share is granted at once
    return lease;
  }

  #returnLocal(key: string, { tokens, endsAt }: Lease): void {
    if (this.#localLeases.get(key)?.endsAt === endsAt) this.#localLeases.set(key, { tokens, endsAt });
  }

  async #withTimeout<T>(work: () => Promise<T>): Promise<T> {
    if (monotonicMs() - this.#failedAt < RETRY_AFTER_FAILURE_MS)
      throw new Error('the store of limits did not answer a moment ago');
    try {
      const result = await within(work(), RESPONSE_TIMEOUT_MS);
      this.#failedAt = Number.NEGATIVE_INFINITY;
      this.#logChange(null);
      return result;
    } catch (error) {
      this.#failedAt = monotonicMs();
      this.#logChange(error);
      throw error;
    }
  }

  async #sendHeartbeat(): Promise<void> {
    if (this.#isSendingHeartbeat) return;
    this.#isSendingHeartbeat = true;
    try {
      this.#peers = await within(this.#store.heartbeat(this.#id), HEARTBEAT_TIMEOUT_MS);
      if (!this.#hasAnswered) this.#logChange(null);
      this.#hasAnswered = true;
    } catch (error) {
      this.#logChange(error);
    } finally {
      this.#isSendingHeartbeat = false;
    }
  }

  /** Logs only when the store stops answering and when it answers again. */
  #logChange(error: unknown): void {
    const isFailing = error !== null;
    if (isFailing === this.#isFailing) return;
    this.#isFailing = isFailing;
    if (!isFailing) this.#log.warn('the store of limits answers again');
    else if (!this.#hasAnswered)
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
export interface LeasedTokens {
  readonly tokens: number;
  readonly endsInMs: number;
}

/** A store of counts by hashed key. Methods reject if it does not answer in time. */
export interface CountStore {
  /** Leases part of what is left of `limit` in the one-second window of `key`, which starts when `key` is first used. */
  lease(key: string, limit: number): Promise<LeasedTokens>;
  /** Adds to counts and returns their new values, in the order of `charges`. */
  add(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Adds to sets as `EntitySets.add` does. */
  addEntities(additions: readonly SetAddition[]): Promise<SetResult>;
  /** Sends a heartbeat of process `id`. Returns the number of live processes. */
  heartbeat(id: string): Promise<number>;
  close(): Promise<void>;
}

/** A lease takes 1/`LEASE_DIVISOR` of the remaining quota, so that some is left for other processes. */
export const LEASE_DIVISOR = 8;
/** Window of leased limits in ms. */
export const SECOND_MS = 1_000;
/** Time in ms without a heartbeat after which a process is considered gone. */
export const PEER_TIMEOUT_MS = 10_000;

const STATEMENT_MS = 2_000;
const CONNECTIONS = 2;
/** Number of heartbeats between two clean-ups. */
const SWEEP_EVERY = 15;

/** Statement that leases a batch, and restarts a window that has ended by the database's clock. */
const LEASE = sql`
insert into osl_control.limit_count as c (key, ends_at, used, granted)
values ($1, clock_timestamp() + $3 * interval '1 millisecond', ceil($2::numeric / ${sqlNumber(LEASE_DIVISOR)}), ceil($2::numeric / ${sqlNumber(LEASE_DIVISOR)}))
on conflict (key) do update set
  granted = case when c.ends_at <= clock_timestamp() then excluded.granted
                 else greatest(0, ceil(($2::numeric - c.used) / ${sqlNumber(LEASE_DIVISOR)})) end,
  used = case when c.ends_at <= clock_timestamp() then excluded.used
              else c.used + greatest(0, ceil(($2::numeric - c.used) / ${sqlNumber(LEASE_DIVISOR)})) end,
  ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
returning granted, 1000 * extract(epoch from ends_at - clock_timestamp()) as ms`;

/**
 * Statement that adds to counts, ordered by key to avoid deadlocks, and returns them. An amount of 0 only queries a
 * count, after waiting for charges in progress; there is no row for it if no window is current.
 */
const ADD = sql`
insert into osl_control.limit_count as c (key, ends_at, used, granted)
select key, clock_timestamp() + ms * interval '1 millisecond', amount, 0
from unnest($1::text[], $2::float8[], $3::bigint[]) as charge(key, ms, amount)
where amount <> 0 or exists (
  select from osl_control.limit_count as own where own.key = charge.key and own.ends_at > clock_timestamp())
order by key
on conflict (key) do update set
  used = case when c.ends_at <= clock_timestamp() then excluded.used else c.used + excluded.used end,
  ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
returning key, used, 1000 * extract(epoch from ends_at - clock_timestamp()) as ms`;

const ADD_ENTITIES = sql`
select used, ms, refused from osl_control.add_entities($1::text[], $2::float8[], $3::bigint[], $4::bigint[], $5::text[])
order by owner`;

const HEARTBEAT = sql`
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
export async function openPostgresCounts(location: ControlPlace): Promise<CountStore> {
  const database = openControl(location, { connections: CONNECTIONS, statementMs: STATEMENT_MS });
  let hasSchema = false;
  let heartbeats = 0;
  return Object.freeze({
    lease: (key: string, limit: number) => lease(database, key, limit),
    add: (charges: readonly Charge[]) => add(database, charges),
    addEntities: (additions: readonly SetAddition[]) => addEntities(database, additions),
    heartbeat: async (id: string) => {
      if (!hasSchema) await requireSchema(database);
      hasSchema = true;
      await database.query(HEARTBEAT, [id]);
      if (heartbeats++ % SWEEP_EVERY === 0) {
        await database.query(SWEEP);
        await database.query(SWEEP_ENTITIES);
        await database.query(SWEEP_PEERS);
      }
      const [row] = await database.query(PEERS, [PEER_TIMEOUT_MS]);
      return Number(row?.['peers'] ?? 1);
    },
    close: () => database.close(),
  });
}

async function lease(database: ControlQueries, key: string, limit: number): Promise<LeasedTokens> {
  const [row] = await database.query(LEASE, [key, limit, SECOND_MS]);
  return { tokens: Number(row?.['granted'] ?? 0), endsInMs: Number(row?.['ms'] ?? 0) };
}

async function add(database: ControlQueries, charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
  const columns = [
    charges.map(({ key }) => key),
    charges.map(({ windowMs }) => windowMs),
    charges.map(({ amount }) => amount),
  ];
  const rows = await database.query(ADD, columns);
  const rowByKey = new Map(rows.map((row) => [String(row['key']), row]));
  return charges.map(({ key, windowMs }) => {
    const row = rowByKey.get(key);
    return { used: Number(row?.['used'] ?? 0), endsInMs: Number(row?.['ms'] ?? windowMs) };
  });
}

async function addEntities(database: ControlQueries, additions: readonly SetAddition[]): Promise<SetResult> {
  const rows = await database.query(ADD_ENTITIES, [
    additions.map(({ key }) => key),
    additions.map(({ windowMs }) => windowMs),
    additions.map(({ maxSize }) => maxSize),
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
