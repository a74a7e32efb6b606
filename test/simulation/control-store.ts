import { createHash } from 'node:crypto';
import { MIGRATIONS } from '../../src/base/control/index.js';
import type { Scheduler } from './scheduler.js';
import { type Column, OID, type Program, type Settings, type Value } from './statements.js';
import { START_MS } from './timers.js';

interface Revocation {
  readonly number: number;
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly atMs: number;
  readonly untilMs: number;
}

interface Count {
  endsAtUs: number;
  used: number;
  granted: number;
}

/** Share of what is left that a lease takes, and its length, as the statement has them. */
const LEASE_PART = 8;
const LEASE_US = 1_000_000;
const CLOCK_RECENT_US = 30_000_000;

/**
 * State of the control database, in memory: what gateways of one tenant share. Its statements are those that the
 * gateway sends, recognized by a part of their text.
 */
export class ControlStore {
  readonly #scheduler: Scheduler;
  readonly #policies: { readonly text: string; readonly digest: string }[] = [];
  readonly #revocations: Revocation[] = [];
  readonly #keys = new Map<string, string>();
  readonly #clocks = new Map<string, { readonly offsetMs: number; readonly atUs: number }>();
  readonly #peers = new Map<string, number>();
  readonly #counts = new Map<string, Count>();
  /** Named locks of transactions, and who has them. */
  readonly #locks = new Map<string, Settings>();
  /** Writes of transactions that have not committed. */
  readonly #pending = new Map<Settings, (() => void)[]>();
  /** Called when something is committed that listeners are told of. */
  onNotice: (payload: string) => void = () => undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Activates a policy, as `osl policy push --activate` does. */
  activate(text: string): void {
    this.#policies.push({ text, digest: createHash('sha256').update(text).digest('hex') });
    this.onNotice('policy_activation');
  }

  /** Ends the transaction of a session. */
  end(session: Settings, how: 'commit' | 'rollback'): void {
    const writes = this.#pending.get(session) ?? [];
    this.#pending.delete(session);
    if (how === 'commit') for (const write of writes) write();
    for (const [name, holder] of [...this.#locks]) if (holder === session) this.#locks.delete(name);
  }

  begin(session: Settings): void {
    this.#pending.set(session, []);
  }

  /** @returns null for a statement that is not the gateway's */
  programOf(sql: string): Program | null {
    const text = sql.trim().replace(/\s+/g, ' ');
    const found = this.#statements().find(([part]) => text.includes(part));
    if (found === undefined) return null;
    const [, columns, rows, lock] = found;
    const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
    const tag = (count: number): string => (/^insert/.test(text) ? `INSERT 0 ${count}` : `SELECT ${count}`);
    return {
      columns,
      parameters,
      rows,
      tag,
      reads: true,
      ...(lock === true && { waits: (v, s) => this.#waits(v, s) }),
    };
  }

  #waits([name = '']: readonly string[], session: Settings): boolean {
    const holder = this.#locks.get(name);
    if (holder !== undefined && holder !== session) return true;
    this.#locks.set(name, session);
    return false;
  }

  #write(session: Settings, write: () => void): void {
    const pending = this.#pending.get(session);
    if (pending === undefined) write();
    else pending.push(write);
  }

  #statements(): readonly (readonly [
    part: string,
    columns: readonly Column[],
    rows: Program['rows'],
    lock?: true,
  ])[] {
    const nothing: Program['rows'] = () => [];
    return [
      [
        "to_regclass('osl_control.migration')",
        [of('made', OID.bool), of('may', OID.bool)],
        () => [[true, false]],
      ],
      ['from osl_control.migration', [of('number', OID.int4)], () => [[MIGRATIONS.length]]],
      ['insert into osl_control.gateway_key', [], (v) => this.#addKey(v)],
      ['select fingerprint from osl_control.gateway_key', [of('fingerprint')], (v) => this.#keyOf(v)],
      [
        'from osl_control.policy_activation a',
        [of('activation', OID.int8), of('version', OID.int8), of('digest'), of('text')],
        () => this.#active(),
      ],
      [
        'from osl_control.policy_activation where tenant',
        [of('activation', OID.int8), of('published', OID.int8)],
        () => [[this.#policies.length, 0]],
      ],
      [
        'from osl_control.published_version',
        [of('number', OID.int8), of('id'), of('parent'), of('bytes')],
        nothing,
      ],
      ['insert into osl_control.revocation', [], (v, s) => this.#revoke(v, s)],
      [
        'select coalesce(max(number), 0) as number from osl_control.revocation',
        [of('number', OID.int8)],
        () => [[this.#revocations.length]],
      ],
      [
        'select id::text as id, kind',
        [of('id'), of('kind'), of('name'), of('at_ms', OID.int8), of('until_ms', OID.int8)],
        (v) => this.#revokedAfter(v),
      ],
      ['pg_advisory_xact_lock', [of('pg_advisory_xact_lock', OID.void)], () => [['']], true],
      ['as now', [of('now', OID.float8)], () => [[START_MS + this.#scheduler.now / 1_000]]],
      ['insert into osl_control.gateway_clock', [of('agreeing', OID.int4)], (v) => this.#clock(v)],
      ['insert into osl_control.limit_peer', [], (v) => this.#hear(v)],
      ['select count(*)::int as peers', [of('peers', OID.int4)], ([ms]) => [[this.#peersSince(Number(ms))]]],
      ['delete from osl_control.limit_', [], nothing],
      ['delete from osl_control.entity_member', [], nothing],
      [
        'insert into osl_control.limit_count as c (key, ends_at, used, granted) values',
        [of('granted', OID.int8), of('ms', OID.float8)],
        (v) => this.#lease(v),
      ],
      [
        'insert into osl_control.limit_count as c (key, ends_at, used, granted) select',
        [of('key'), of('used', OID.int8), of('ms', OID.float8)],
        (v) => this.#charge(v),
      ],
      ['select 1', [of('?column?', OID.int4)], () => [[1]]],
    ];
  }

  #active(): readonly (readonly Value[])[] {
    const number = this.#policies.length;
    const policy = this.#policies.at(-1);
    return policy === undefined ? [] : [[number, number, policy.digest, policy.text]];
  }

  #addKey([, kind = '', fingerprint = '']: readonly string[]): readonly Value[][] {
    if (!this.#keys.has(kind)) this.#keys.set(kind, fingerprint);
    return [];
  }

  #keyOf([, kind = '']: readonly string[]): readonly Value[][] {
    const fingerprint = this.#keys.get(kind);
    return fingerprint === undefined ? [] : [[fingerprint]];
  }

  #revoke(values: readonly string[], session: Settings): readonly Value[][] {
    const [, id = '', kind = '', name = '', atMs, untilMs] = values;
    this.#write(session, () => {
      if (this.#revocations.some((known) => known.id === id)) return;
      const number = this.#revocations.length + 1;
      this.#revocations.push({ number, id, kind, name, atMs: Number(atMs), untilMs: Number(untilMs) });
      this.onNotice('revocation');
    });
    return [];
  }

  #revokedAfter([, after, now]: readonly string[]): readonly Value[][] {
    return this.#revocations
      .filter(({ number, untilMs }) => number > Number(after) && untilMs > Number(now))
      .map(({ id, kind, name, atMs, untilMs }) => [id, kind, name, atMs, untilMs]);
  }

  #clock([, gateway = '', offsetMs, toleranceMs]: readonly string[]): readonly Value[][] {
    const agreeing = [...this.#clocks].filter(
      ([name, clock]) =>
        name !== gateway &&
        Math.abs(clock.offsetMs) <= Number(toleranceMs) &&
        clock.atUs > this.#scheduler.now - CLOCK_RECENT_US,
    ).length;
    this.#clocks.set(gateway, { offsetMs: Number(offsetMs), atUs: this.#scheduler.now });
    return [[agreeing]];
  }

  #hear([id = '']: readonly string[]): readonly Value[][] {
    this.#peers.set(id, this.#scheduler.now);
    return [];
  }

  #peersSince(ms: number): number {
    return [...this.#peers.values()].filter((at) => at > this.#scheduler.now - 1_000 * ms).length;
  }

  #countOf(key: string, lengthUs: number): Count {
    const known = this.#counts.get(key);
    if (known !== undefined && known.endsAtUs > this.#scheduler.now) return known;
    const fresh = { endsAtUs: this.#scheduler.now + lengthUs, used: 0, granted: 0 };
    this.#counts.set(key, fresh);
    return fresh;
  }

  #lease([key = '', most]: readonly string[]): readonly Value[][] {
    const count = this.#countOf(key, LEASE_US);
    count.granted = Math.max(0, Math.ceil((Number(most) - count.used) / LEASE_PART));
    count.used += count.granted;
    return [[count.granted, (count.endsAtUs - this.#scheduler.now) / 1_000]];
  }

  #charge(values: readonly string[]): readonly Value[][] {
    const [keys = [], windows = [], amounts = []] = values.map((list) =>
      list
        .slice(1, -1)
        .split(',')
        .map((item) => item.replace(/^"|"$/g, '')),
    );
    return keys.map((key, i) => {
      const count = this.#countOf(key, 1_000 * Number(windows[i]));
      count.used += Number(amounts[i]);
      return [key, count.used, (count.endsAtUs - this.#scheduler.now) / 1_000];
    });
  }
}

function of(name: string, oid: number = OID.text): Column {
  return { name, oid };
}
