import { frameAt } from '../../audit/format.js';
import type { AuditRecord } from '../../audit/index.js';
import { MessageSplitter } from './backend-messages.js';
import type { Disk, Inode } from './disk.js';
import type { Scheduler } from './scheduler.js';
import type { SimulatedSocket } from './socket.js';
import { expectedOf, type Question, type Version, type Zone } from './world.js';

/** Something that must not happen. */
export interface Violation {
  readonly what: string;
  readonly detail: string;
  /** Virtual time in µs. */
  readonly atUs: number;
}

export interface Reply {
  readonly rows: readonly (readonly string[])[];
  readonly sqlstate: string | null;
  readonly message: string;
  /** True if the answer ended as the protocol says; false if the connection ended first. */
  readonly isWhole: boolean;
}

export interface Exchange {
  readonly gateway: number;
  readonly caller: number;
  readonly question: Question;
  readonly zone: Zone;
  readonly sentAtUs: number;
  readonly reply: Reply;
  /** True if the client itself cancelled it, or stopped reading. */
  readonly isDisturbed: boolean;
}

interface VersionSpan {
  readonly version: Version;
  readonly fromUs: number;
  untilUs: number;
}

/** SQLSTATEs that are in order while the database, the disk or the gateway itself is in trouble. */
const TROUBLES = /^(08|53|57P|58|55)/;
/** Time after the end of trouble in which errors may still follow from it, in µs: retries and waits for a session. */
const AFTERWARDS_US = 12_000_000;

/** Time after which all gateways follow a decision: they are told at once, and look once a second. */
const PROMISED_US = 2_500_000;
/** Time after which a gateway that does not hear the control database serves nothing (OSL_CONTROL_SILENCE_SECONDS). */
export const SILENCE_SECONDS = 5;
const SILENCE_US = (SILENCE_SECONDS + 1) * 1_000_000;

/** Knows what may happen in a run, and notes what may not. */
export class Judge {
  readonly violations: Violation[] = [];
  readonly #scheduler: Scheduler;
  readonly #spans = new Map<number, VersionSpan[]>();
  readonly #revoking = new Set<string>();
  readonly #stopping = new Set<number>();
  readonly #revoked = new Map<string, number>();
  readonly #troubles: { readonly fromUs: number; untilUs: number }[] = [];
  readonly #logs = new Map<number, DecisionLog>();
  readonly #sent = new Map<SimulatedSocket, SentAnswers>();
  /** By gateway and caller: answers of which rows have been sent. */
  readonly #begun = new Map<string, number>();
  exchanges = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  note(what: string, detail: string): void {
    if (this.violations.length < 20) this.violations.push({ what, detail, atUs: this.#scheduler.now });
  }

  /** A version begins to be taken up: it may be in force from now on. */
  beginVersion(gateway: number, version: Version): () => void {
    const spans = this.#spans.get(gateway) ?? [];
    this.#spans.set(gateway, spans);
    const earlier = [...spans];
    spans.push({ version, fromUs: this.#scheduler.now, untilUs: Number.POSITIVE_INFINITY });
    return () => {
      for (const span of earlier) span.untilUs = Math.min(span.untilUs, this.#scheduler.now);
    };
  }

  /** A policy was activated for all gateways: each takes it up within the promised time. */
  activated(gateways: number, version: Version): void {
    for (let gateway = 0; gateway < gateways; gateway++) {
      const earlier = [...(this.#spans.get(gateway) ?? [])];
      this.beginVersion(gateway, version);
      const { now } = this.#scheduler;
      for (const span of earlier)
        span.untilUs = Math.min(span.untilUs, now + SILENCE_US, this.#promisedAt(now));
    }
  }

  /** Time at which what is decided now is in force everywhere, unless something is in trouble meanwhile. */
  #promisedAt(now: number): number {
    return this.#hadTrouble(now - AFTERWARDS_US) ? now + SILENCE_US : now + PROMISED_US;
  }

  /** The tokens of a caller are being revoked; the returned function is called once they are. */
  beginRevocation(gateway: number, caller: number): () => void {
    const key = `${gateway} ${caller}`;
    this.#revoking.add(key);
    return () => void this.#revoked.set(key, this.#scheduler.now);
  }

  /** The same at the other gateways, which learn of it within the promised time. */
  beginSharedRevocation(gateways: number, gateway: number, caller: number): () => void {
    const own = this.beginRevocation(gateway, caller);
    const others = Array.from({ length: gateways }, (_, n) => n).filter((n) => n !== gateway);
    for (const other of others) this.#revoking.add(`${other} ${caller}`);
    return () => {
      own();
      const { now } = this.#scheduler;
      for (const other of others) this.#revoked.set(`${other} ${caller}`, this.#promisedAt(now));
    };
  }

  /** A gateway is being stopped: what does not end in time is cancelled. */
  beginStop(gateway: number): void {
    this.#stopping.add(gateway);
  }

  /** Trouble begins; the returned function ends it. */
  beginTrouble(): () => void {
    const trouble = { fromUs: this.#scheduler.now, untilUs: Number.POSITIVE_INFINITY };
    this.#troubles.push(trouble);
    return () => {
      trouble.untilUs = this.#scheduler.now;
    };
  }

  /** Judges a finished question. */
  judge(exchange: Exchange): void {
    this.exchanges += 1;
    const { gateway, caller, question, zone, sentAtUs, reply } = exchange;
    const describe = (): string =>
      `caller ${caller} at gateway ${gateway}: ${question.kind} ${question.id} (${zone.name}), sent at ${sentAtUs} µs: ${JSON.stringify(reply).slice(0, 400)}`;
    const revokedAt = this.#revoked.get(`${gateway} ${caller}`);
    const isRevoked = revokedAt !== undefined && sentAtUs > revokedAt;
    const versions = this.#versionsDuring(gateway, sentAtUs);
    if (isRevoked && (reply.rows.length > 0 || (reply.isWhole && reply.sqlstate === null))) {
      this.note('answered after its token was revoked', describe());
      return;
    }
    const expected = versions.map((version) => expectedOf(question, caller, version, zone));
    if (
      !expected.some(
        (e) =>
          e !== null &&
          'rows' in e &&
          startsWith(e.rows, reply.rows, reply.isWhole && reply.sqlstate === null),
      )
    ) {
      if (reply.rows.length > 0 || (reply.isWhole && reply.sqlstate === null)) {
        this.note(
          'rows that no version of the policy explains',
          `${describe()}; versions ${versions.map(({ policy }) => policy).join()}`,
        );
        return;
      }
    }
    if (reply.sqlstate === null) {
      if (
        !reply.isWhole &&
        !exchange.isDisturbed &&
        !this.#revoking.has(`${gateway} ${caller}`) &&
        !expected.includes(null) &&
        !this.#hadTrouble(sentAtUs)
      )
        this.note('a connection ended for no reason', describe());
      return;
    }
    this.#judgeError(exchange, expected, isRevoked, describe);
  }

  #judgeError(
    { reply: { sqlstate }, isDisturbed, sentAtUs, gateway, caller }: Exchange,
    expected: readonly ReturnType<typeof expectedOf>[],
    isRevoked: boolean,
    describe: () => string,
  ): void {
    const text = sqlstate ?? '';
    const isExpected = expected.some((e) => e !== null && 'sqlstate' in e && e.sqlstate === text);
    const mayBeRefused = isRevoked || expected.includes(null) || this.#revoking.has(`${gateway} ${caller}`);
    const isRefusal = mayBeRefused && /^(28|42501|57P|53400)/.test(text);
    // Revocation and the end of the gateway stop what a session runs.
    const isStopped =
      isDisturbed || this.#revoking.has(`${gateway} ${caller}`) || this.#stopping.has(gateway);
    const isCancelled = isStopped && /^(57014|57P|28000)/.test(text);
    // A query whose rights changed while it ran is stopped.
    const isOvertaken =
      text === '55000' && (expected.length > 1 || this.#revoking.has(`${gateway} ${caller}`));
    const isTrouble = TROUBLES.test(text) && this.#hadTrouble(sentAtUs);
    if (!isExpected && !isRefusal && !isCancelled && !isOvertaken && !isTrouble)
      this.note(`an error for no reason: ${text}`, describe());
  }

  #versionsDuring(gateway: number, sentAtUs: number): readonly Version[] {
    const spans = this.#spans.get(gateway) ?? [];
    return spans.filter(({ untilUs }) => untilUs >= sentAtUs).map(({ version }) => version);
  }

  #hadTrouble(sinceUs: number): boolean {
    return this.#troubles.some(({ untilUs }) => untilUs + AFTERWARDS_US >= sinceUs);
  }

  /** Watches what a gateway writes to its audit log. */
  watchLog(gateway: number, disk: Disk, sync: 'disk' | 'kernel'): void {
    const log = new DecisionLog(sync);
    this.#logs.set(gateway, log);
    disk.onWritten = (path, inode) => {
      if (/segment-\d+\.log$|spare\.tmp$/.test(path)) log.read(inode);
    };
  }

  /** Called with all that a gateway sends to clients of the Postgres port. */
  readonly wireTap = (socket: SimulatedSocket, bytes: Buffer): void => {
    const [gateway, caller] = socket.peerLabel.split(' ').map(Number);
    if (gateway === undefined || caller === undefined) return;
    let sent = this.#sent.get(socket);
    if (sent === undefined) {
      sent = new SentAnswers();
      this.#sent.set(socket, sent);
    }
    for (let begins = sent.push(bytes); begins > 0; begins--) this.#answerBegins(gateway, caller);
  };

  #answerBegins(gateway: number, caller: number): void {
    const key = `${gateway} ${caller}`;
    const begun = (this.#begun.get(key) ?? 0) + 1;
    this.#begun.set(key, begun);
    const recorded = this.#logs.get(gateway)?.allowed(caller) ?? 0;
    if (begun > recorded)
      this.note(
        'rows before their decision is on disk',
        `caller ${caller} at gateway ${gateway}: ${begun} answers, ${recorded} decisions`,
      );
  }

  /** Compares the log of a gateway, read as a whole, with what its clients were told. */
  judgeLog(gateway: number, records: readonly AuditRecord[]): void {
    const decisions = new Map<string, number>();
    const outcomes = new Map<string, number>();
    const allowed = new Map<string, number>();
    for (const record of records) {
      const of = record.kind === 'decision' ? decisions : record.kind === 'outcome' ? outcomes : null;
      if (of === null) continue;
      of.set(record.request_id, (of.get(record.request_id) ?? 0) + 1);
      if (record.kind !== 'decision' || record.decision !== 'allow') continue;
      if (record.action === 'query')
        allowed.set(record.subject ?? '', (allowed.get(record.subject ?? '') ?? 0) + 1);
    }
    for (const [id, count] of decisions) if (count > 1) this.note('more than one decision', id);
    for (const [id, count] of outcomes) if (count > 1) this.note('more than one outcome', id);
    for (const id of outcomes.keys()) if (!decisions.has(id)) this.note('an outcome without a decision', id);
    for (const { kind, decision, request_id } of records)
      if (kind === 'decision' && decision === 'allow' && !outcomes.has(request_id))
        this.note('a decision without an outcome', request_id);
    for (const [key, begun] of this.#begun) {
      const [of, caller] = key.split(' ').map(Number);
      const recorded = allowed.get(`user:${caller}`) ?? 0;
      if (of === gateway && begun > recorded)
        this.note(
          'an answer whose decision is not in the log',
          `caller ${caller}: ${begun} answers, ${recorded} decisions`,
        );
    }
  }
}

function startsWith(
  expected: readonly (readonly string[])[],
  rows: readonly (readonly string[])[],
  isAll: boolean,
): boolean {
  if (isAll ? rows.length !== expected.length : rows.length > expected.length) return false;
  return rows.every(
    (row, i) => row.length === expected[i]?.length && row.every((cell, j) => cell === expected[i]?.[j]),
  );
}

/** Finds the beginnings of answers in what is sent on one connection. */
class SentAnswers {
  readonly #splitter = new MessageSplitter();
  #isOpen = false;

  /** Number of answers of which the first row, or the end, is in these bytes. */
  push(bytes: Buffer): number {
    let begun = 0;
    for (const { type, body } of this.#splitter.push(bytes)) {
      if (type === 'D' && !this.#isOpen) {
        this.#isOpen = true;
        begun += 1;
      } else if (type === 'C') {
        if (!this.#isOpen && body.toString().startsWith('SELECT')) begun += 1;
        this.#isOpen = false;
      } else if (type === 'E') this.#isOpen = false;
    }
    return begun;
  }
}

/** Decisions that are on disk, read from the segments as they are written. */
class DecisionLog {
  readonly #sync: 'disk' | 'kernel';
  readonly #at = new WeakMap<Inode, number>();
  readonly #seen = new Set<string>();
  readonly #allowed = new Map<string, number>();

  constructor(sync: 'disk' | 'kernel') {
    this.#sync = sync;
  }

  allowed(caller: number): number {
    return this.#allowed.get(`user:${caller}`) ?? 0;
  }

  read(inode: Inode): void {
    const { bytes } = inode;
    const end = this.#sync === 'kernel' ? bytes.length : Math.min(bytes.length, inode.syncedTo);
    let at = this.#at.get(inode) ?? bytes.indexOf(0x0a) + 1;
    if (at === 0) return;
    for (let frame = frameAt(bytes, at, end); frame !== null; frame = frameAt(bytes, at, end)) {
      at = frame.next;
      const record = JSON.parse(frame.record.toString()) as AuditRecord; // written by the gateway
      if (record.kind !== 'decision' || record.decision !== 'allow' || record.action !== 'query') continue;
      if (this.#seen.has(record.request_id)) continue;
      this.#seen.add(record.request_id);
      const subject = record.subject ?? '';
      this.#allowed.set(subject, (this.#allowed.get(subject) ?? 0) + 1);
    }
    this.#at.set(inode, at);
  }
}
