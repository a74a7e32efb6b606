import { connect } from 'node:net';
import { type Reply, WireClient } from '../../support/frontends.js';
import * as wire from '../../wire/support/bytes.js';
import type { Dice } from '../oracle/dice.js';
import {
  CALLERS,
  DEALS,
  factorAfter,
  isRevoked,
  ownerOf,
  priceOf,
  readsNotes,
  type World,
  zoneOf,
} from './world.js';

/** What a caller does once, and what may come of it in version `version` of the policy, after `changes` of what is published. */
interface Act {
  readonly name: string;
  /** As `said` writes a reply. */
  expected(version: number, changes: number): readonly string[];
  run(caller: Caller): Promise<string>;
}

/** A reply that no version of the policy in force at the time explains. */
export interface Difference {
  readonly caller: number;
  readonly act: string;
  readonly versions: readonly [number, number];
  readonly expected: readonly string[];
  readonly said: string;
}

const INT4 = 23;

/** What a caller is told whom the policy does not know; pipelined, twice. */
const REFUSED: readonly string[] = ['42501', '42501 | 42501', '42501 | 26000'];
/** What may be said of a statement whose session in the database was ended. */
const LOST = /^(?:08006|57P01|08000|08003|57P02|57014)$/;
/** What is said of a statement that runs while its rights, or what it reads, become others. */
const ENDED = /^55000$/;

/** One session of one caller; it keeps coming back. */
export class Caller {
  readonly number: number;
  readonly #world: World;
  readonly #dice: Dice;
  #client: WireClient | null = null;
  /** Its session has prepared `kept`. */
  #keeps = false;
  #key: { readonly pid: number; readonly key: Buffer } = { pid: 0, key: Buffer.alloc(4) };
  /** Statements that were answered, so that their decisions must be on record. */
  answered = 0;

  constructor(number: number, world: World, dice: Dice) {
    this.number = number;
    this.#world = world;
    this.#dice = dice;
  }

  /** One act, and what is wrong with its reply. */
  async act(): Promise<Difference | null> {
    const act = this.#choose();
    const from = this.#world.version();
    const turned = this.#world.turning();
    const killed = this.#world.kills();
    const before = this.#world.published().count;
    const said = await act.run(this);
    const to = this.#world.version();
    const versions = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    const { count: after, changing } = this.#world.published();
    const changes = Array.from({ length: after + (changing ? 1 : 0) - before + 1 }, (_, i) => before + i);
    const expected = versions.flatMap((v) => changes.flatMap((c) => act.expected(v, c)));
    if (versions.some((v) => isRevoked(this.number, v))) expected.push(...REFUSED);
    const { count, dying } = this.#world.kills();
    const broken = [
      ...(killed.dying || dying || count > killed.count ? [LOST] : []),
      ...(turned || this.#world.turning() || to > from || changes.length > 1 ? [ENDED] : []),
    ];
    if (isExplained(said, expected, broken)) return null;
    return { caller: this.number, act: act.name, versions: [from, to], expected, said };
  }

  /** The run of a statement that is prepared once in a session, and asked again and again. */
  async kept(id: number): Promise<string> {
    const client = await this.client();
    if (!this.#keeps) {
      const prepared = client.reply(
        await client.exchange(wire.parse('kept', `${POINT}$1`, [INT4]), wire.sync),
      );
      if (prepared.outcome.kind === 'refused') return prepared.outcome.sqlstate;
      this.#keeps = true;
    }
    this.answered++;
    const run = [
      wire.bind('', 'kept', { values: [String(id)] }),
      wire.describe('P'),
      wire.execute(),
      wire.sync,
    ];
    return said(Promise.resolve(client.reply(await client.exchange(...run))));
  }

  async client(): Promise<WireClient> {
    if (this.#client !== null) return this.#client;
    const user = `user:${this.number}`;
    const { name } = zoneOf(this.number);
    const { client, messages, reply } = await WireClient.attempt(
      this.#world.port,
      user,
      await this.#world.shop.token(user, { aclRoles: ['own', 'notes'] }),
      name === null ? {} : { TimeZone: name },
    );
    if (reply.outcome.kind === 'refused') throw new Error(reply.outcome.message);
    const data = messages.find((m) => m.type === 'K')?.body ?? Buffer.alloc(8);
    this.#key = { pid: data.readInt32BE(0), key: data.subarray(4) };
    this.#client = client;
    this.#keeps = false;
    return client;
  }

  async simple(text: string): Promise<string> {
    this.answered++;
    return said((await this.client()).simple(text));
  }

  /** Says that the statement under way shall stop; resolves when that was heard, and can hit no later one. */
  cancel(): Promise<void> {
    const socket = connect({ port: this.#world.port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    socket.resume();
    socket.write(wire.cancelRequest(this.#key.pid, this.#key.key));
    return new Promise((resolve) => socket.once('close', () => resolve()));
  }

  die(): void {
    this.#client?.end();
    this.#client = null;
  }

  #choose(): Act {
    const id = 1 + this.#dice.upTo(DEALS - 1);
    return this.#dice.of([
      point,
      point,
      kept,
      measured,
      measured,
      dated,
      division,
      pipelined,
      growing,
      cancelled,
      dead,
      unknown,
    ])(id, this.number);
  }
}

/** True if each part of an answer is one that is expected, whatever happened between the parts, or broke off as it may. */
function isExplained(said: string, expected: readonly string[], broken: readonly RegExp[]): boolean {
  const parts = said.split(' | ');
  return parts.every(
    (part, i) => broken.some((b) => b.test(part)) || expected.some((e) => e.split(' | ')[i] === part),
  );
}

type MakeAct = (id: number, caller: number) => Act;

const POINT = 'select id, amount, note from deal where id = ';

const point: MakeAct = (id, caller) => ({
  name: `point ${id}`,
  expected: (version) => [rowsOf([id], caller, version)],
  run: (c) => c.simple(`${POINT}${id}`),
});

/** The same by a statement that outlives reloads. */
const kept: MakeAct = (id, caller) => ({
  name: `kept ${id}`,
  expected: (version) => [rowsOf([id], caller, version)],
  run: (c) => c.kept(id),
});

/** By a metric that is published, changed and rolled back meanwhile. */
const measured: MakeAct = (id, caller) => ({
  name: `measured ${id}`,
  expected: (version, changes) => {
    const factor = factorAfter(changes);
    if (factor === null) return ['42704'];
    return [sees(id, caller, version) ? String(priceOf(version) * id * factor) : '∅'];
  },
  run: (c) => c.simple(`select measure(worth) from deal where id = ${id}`),
});

/** As the caller's own clock shows it. */
const dated: MakeAct = (id, caller) => ({
  name: `dated ${id}`,
  expected: (version) => [sees(id, caller, version) ? closedAt(id, caller) : ''],
  run: (c) => c.simple(`select closed from deal where id = ${id}`),
});

function closedAt(id: number, caller: number): string {
  const { hours, suffix } = zoneOf(caller);
  const local = new Date(Date.UTC(2026, 0, 1, 12 + hours, 0, id));
  return `${local.toISOString().slice(0, 19).replace('T', ' ')}${suffix}`;
}

/** Fails for whoever sees the deal, at run time and behind statements of others. */
const division: MakeAct = (id, caller) => ({
  name: `division at ${id}`,
  expected: (version) => [sees(id, caller, version) ? '22012' : ''],
  run: (c) => c.simple(`select 100 / (id - ${id}) from deal where id = ${id}`),
});

/** Two runs of one prepared statement in one write, with other result formats. */
const pipelined: MakeAct = (id, caller) => {
  const other = 1 + ((id + 1) % DEALS);
  return {
    name: `pipelined ${id} and ${other}`,
    expected: (version) => {
      const binary = (n: number): string => `\\x${n.toString(16).padStart(8, '0')}`;
      const first = sees(id, caller, version) ? `${id},${priceOf(version) * id}` : '';
      const second = sees(other, caller, version)
        ? `${binary(other)},${binary(priceOf(version) * other)}`
        : '';
      return [`${first} | ${second}`];
    },
    run: async (c) => {
      const client = await c.client();
      c.answered += 2;
      const bound = (n: number, format: number): Buffer[] => [
        wire.bind('', 'deal', { values: [String(n)], results: [format] }),
        wire.describe('P'),
        wire.execute(),
        wire.sync,
      ];
      client.send(
        wire.close('S', 'deal'),
        wire.parse('deal', 'select id, amount from deal where id = $1', [INT4]),
        ...bound(id, 0),
        ...bound(other, 1),
      );
      const replies = [await client.messagesUntil('Z'), await client.messagesUntil('Z')];
      return (await Promise.all(replies.map((m) => said(Promise.resolve(client.reply(m)))))).join(' | ');
    },
  };
};

/** Few rows or hundreds of them, by the same text: what outgrows the shared session is run again alone. */
const growing: MakeAct = (id, caller) => ({
  name: `growing to ${id}`,
  expected: (version) => [
    Array.from({ length: id }, (_, i) => i + 1)
      .filter((n) => sees(n, caller, version))
      .join(' '),
  ],
  run: (c) => c.simple(`select id from deal where id <= ${id} order by id`),
});

const cancelled: MakeAct = (id, caller) => ({
  name: `cancelled ${id}`,
  expected: (version) => [rowsOf([id], caller, version), '57014'],
  run: async (c) => {
    await c.client();
    const reply = c.simple(`${POINT}${id}`);
    await c.cancel();
    return reply;
  },
});

const dead: MakeAct = (id) => ({
  name: `dead ${id}`,
  expected: () => ['gone'],
  run: async (c) => {
    (await c.client()).send(wire.query(`${POINT}${id}`));
    await new Promise(setImmediate);
    c.die();
    return 'gone';
  },
});

const unknown: MakeAct = () => ({
  name: 'unknown column',
  expected: () => ['42703'],
  run: (c) => c.simple('select nothing from deal where id = 1'),
});

function rowsOf(ids: readonly number[], caller: number, version: number): string {
  const note = (id: number): string => (readsNotes(caller) ? `note ${id}` : '[redacted]');
  return ids
    .filter((id) => sees(id, caller, version))
    .map((id) => `${id},${priceOf(version) * id},${note(id)}`)
    .join(' ');
}

function sees(id: number, caller: number, version: number): boolean {
  return !isRevoked(caller, version) && id % CALLERS === ownerOf(caller, version);
}

/** Rows as `a,b c,d`, or the SQLSTATE. */
async function said(reply: Promise<Reply>): Promise<string> {
  const { outcome } = await reply;
  if (outcome.kind === 'refused') return outcome.sqlstate;
  return outcome.rows.map((row) => row.map((cell) => cell ?? '∅').join(',')).join(' ');
}
