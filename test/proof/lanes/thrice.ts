import type { Test } from 'tap';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { Lanes } from '../../../src/engine/lanes.js';
import {
  type Caller,
  type Cell,
  type Frontends,
  type Message,
  type Reply,
  WireClient,
} from '../../support/frontends.js';
import * as wire from '../../wire/support/bytes.js';

/** After so many answers a question goes fast, or never will: three prove it short, two more make its route. */
const OFTEN = 8;

/**
 * From now on what is short looks so on a busy machine too, where no answer may come within the time that proves it, and
 * one may outlast a shared session and be run again.
 */
export function proveAtOnce(what: 'all' | 'unless run again' = 'all'): void {
  const { observe } = Lanes.prototype;
  Lanes.prototype.observe = function (this: Lanes, { statement, rerun: again, lane, rowCount, byteCount }) {
    const known = what === 'all' ? null : again;
    observe.call(this, {
      statement,
      rerun: known,
      lane,
      rowCount,
      byteCount,
      startedAt: performance.now(),
    });
  };
}

/** How many questions were asked, and what became of them. */
export class Tally {
  asked = 0;
  answered = 0;
  fast = 0;
  readonly #alike: Alike[] = [];

  alike(how: string, slow: readonly string[], other: readonly string[]): void {
    this.#alike.push({ how, slow, other });
  }

  /** The log in `auditDir` says the same of all that is alike, but for ids and times. */
  async compareRecords(t: Test, auditDir: string): Promise<void> {
    const byRequest = new Map<string, object[]>();
    for await (const record of readRecords(auditDir))
      byRequest.set(record.request_id, [...(byRequest.get(record.request_id) ?? []), common(record)]);
    const recordsOf = (ids: readonly string[]) => ids.map((id) => byRequest.get(id));
    let compared = 0;
    for (const { how, slow, other } of this.#alike.splice(0)) {
      const [wanted, found] = [recordsOf(slow), recordsOf(other)];
      compared += wanted.length;
      // Tens of thousands of them: tap has a close look at those alone that differ.
      if (JSON.stringify(found) !== JSON.stringify(wanted)) t.strictSame(found, wanted, `records, ${how}`);
      if (wanted.includes(undefined)) t.fail(`not on record: ${how}`);
    }
    t.ok(compared > this.asked, `${compared} requests are on record alike`);
  }
}

/** `database`: which of equal numbers of two scales is answered is the database's choice, at each run. */
type Choice = 'nobody' | 'database';

interface Said {
  readonly messages: readonly Message[];
  /** Of the requests on record. */
  readonly ids: readonly string[];
}

/** Requests whose records must be the same. */
interface Alike {
  readonly how: string;
  readonly slow: readonly string[];
  readonly other: readonly string[];
}

/** Asks every question three times on one session: where nothing goes fast, until a route is made of it, and by that route. */
export class ThriceAsker {
  readonly client: WireClient;
  readonly #fronts: Frontends;
  readonly #tally: Tally;
  readonly #choice: Choice;

  private constructor(fronts: Frontends, client: WireClient, tally: Tally, choice: Choice) {
    this.#choice = choice;
    this.#fronts = fronts;
    this.client = client;
    this.#tally = tally;
  }

  static async open(
    fronts: Frontends,
    caller: Caller,
    tally: Tally,
    choice: Choice = 'nobody',
  ): Promise<ThriceAsker> {
    const client = await WireClient.login(fronts.pgPort, caller.subject, await fronts.token(caller));
    return new ThriceAsker(fronts, client, tally, choice);
  }

  /** The text as a Query. Every answer must be the one of the slow lane, byte for byte, and leave its records. */
  simple(t: Test, text: string): Promise<void> {
    return this.series(t, [wire.query(text)], text);
  }

  /** The text as a prepared statement that is run again and again. */
  async prepared(t: Test, text: string, bind: wire.BindOptions = {}): Promise<void> {
    const told = await this.client.exchange(wire.parse('thrice', text), wire.sync);
    if (told.every((m) => m.type !== 'E')) {
      const run = [wire.bind('', 'thrice', bind), wire.describe('P'), wire.execute(), wire.sync];
      await this.series(t, run, text);
    }
    await this.client.exchange(wire.close('S', 'thrice'), wire.sync);
  }

  /** @param times as often it is asked at the most, where it is answered */
  async series(t: Test, messages: readonly Buffer[], text: string, often = OFTEN): Promise<void> {
    await this.client.exchange(wire.query('begin'));
    const slow = await this.#ask(messages);
    await this.client.exchange(wire.query('rollback'));
    const refused = slow.messages.some((m) => m.type === 'E');
    // A text without a statement, and one of several, has no route.
    const answered = !refused && slow.messages.filter((m) => m.type === 'C').length === 1;
    this.#tally.asked += 1;
    if (answered) this.#tally.answered += 1;
    const times = answered ? often : 1;
    let fast = 0;
    for (let i = 0; i < times && fast === 0; i++) {
      const before = this.#fronts.fastQuestions();
      const said = await this.#ask(messages);
      fast = this.#fronts.fastQuestions() - before;
      const how = `${fast > 0 ? 'fast' : 'slow'}: ${text.slice(0, 150)}`;
      const [wanted, found] = [this.#bytesOf(slow, text), this.#bytesOf(said, text)];
      if (found.join('') !== wanted.join('')) t.strictSame(found, wanted, how);
      this.#tally.alike(how, slow.ids, said.ids);
    }
    this.#tally.fast += fast;
  }

  /** Rows without an order come as the database likes, which plans the sixth run of a statement anew. */
  #bytesOf({ messages }: Said, text: string): readonly string[] {
    if (/order by [^()]*$/i.test(text)) return messages.map(bytesOf);
    const [rows, others] = [messages.filter((m) => m.type === 'D'), messages.filter((m) => m.type !== 'D')];
    const said = this.#choice === 'nobody' ? rows.map(bytesOf) : plainRows(this.client.reply(messages));
    return [...others.map(bytesOf), ...[...said].sort()];
  }

  end(): void {
    this.client.end();
  }

  async #ask(messages: readonly Buffer[]): Promise<Said> {
    this.#fronts.takeAudit();
    const said = await this.client.exchange(...messages);
    return { messages: said, ids: [...new Set(this.#fronts.takeAudit().map((e) => e.request_id))] };
  }
}

/** The rows, and of equal numbers one. */
function plainRows({ outcome }: Reply): readonly string[] {
  if (outcome.kind === 'refused') return [];
  const plain = (cell: Cell): Cell =>
    cell !== null && /^-?\d+\.\d+$/.test(cell) ? cell.replace(/\.?0+$/, '') : cell;
  return outcome.rows.map((row) => JSON.stringify(row.map(plain)));
}

/** A message in the bytes that came; of ReadyForQuery not the status, which tells of the block, nor the id of a request. */
function bytesOf({ type, body }: Message): string {
  if (type === 'Z') return type;
  const said = body.toString('latin1');
  return `${type} ${type === 'E' ? said.replace(/request [0-9a-f-]{36}/, 'request') : said}`;
}

/** Everything that two records of one question have in common. */
function common({
  request_id: _id,
  seq: _seq,
  ts: _ts,
  duration_us: _duration,
  ...rest
}: AuditRecord): object {
  return rest;
}
