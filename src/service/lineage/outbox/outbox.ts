import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bytesOf, namesIn, syncNames, writeWhole } from '../../../base/files.js';
import { Serial } from '../../../base/serial.js';
import type { EventKind, LineageEndpoint } from '../config/load.js';
import { type AuditLogPosition, type OutboxEntry, type OutboxMessage, OutboxState } from './state.js';

export interface NewEvent {
  readonly id: string;
  readonly kind: EventKind;
  readonly body: string;
}

interface OutboxOptions {
  readonly file: string;
  readonly endpoints: readonly LineageEndpoint[];
  /** Maximum total size of the undelivered bodies of an endpoint, in bytes. */
  readonly maxBytes: number;
  /** The current time in ms since the epoch. */
  readonly now: () => number;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/**
 * Slack in bytes. A journal over four times this size is compacted if it exceeds this plus three times its live data.
 */
const SLACK_BYTES = 1_048_576;

/**
 * Stores undelivered events on disk. If the space of an endpoint is full, its oldest dead letters are dropped and, if
 * this is not enough, new events; both are counted and logged.
 */
export class Outbox {
  readonly state: OutboxState;
  readonly #journal: Journal<OutboxEntry>;
  readonly #options: OutboxOptions;
  readonly #writes = new Serial();

  private constructor(journal: Journal<OutboxEntry>, state: OutboxState, options: OutboxOptions) {
    this.#journal = journal;
    this.state = state;
    this.#options = options;
  }

  /** @param start position in the audit log at which a new outbox starts */
  static async open(options: OutboxOptions, start: AuditLogPosition): Promise<Outbox> {
    const { journal, entries, truncatedBytes } = await openJournal<OutboxEntry>(options.file);
    if (truncatedBytes > 0)
      options.warn('the end of the lineage outbox was not whole and is cut off', { bytes: truncatedBytes });
    const outbox = new Outbox(journal, OutboxState.of(entries), options);
    if (outbox.state.cursor === null) await outbox.#write([{ t: 'cursor', ...start }], true);
    await outbox.#applyEndpointChanges();
    return outbox;
  }

  /** Adds events and, in the same atomic group, `extraEntries`, such as the log cursor. */
  async add(events: readonly NewEvent[], extraEntries: readonly OutboxEntry[]): Promise<void> {
    const freeBytes = new Map(this.#options.endpoints.map((e) => [e.name, this.#freeBytesOf(e.name)]));
    const dropped = new Map<string, number>();
    const entries: OutboxEntry[] = [];
    const at = this.#options.now();
    for (const { id, kind, body } of events) {
      const bytes = Buffer.byteLength(body);
      const targets = this.#options.endpoints
        .filter((e) => e.events.includes(kind))
        .filter(({ name }) => {
          const remaining = (freeBytes.get(name) ?? 0) - bytes;
          if (remaining >= 0) freeBytes.set(name, remaining);
          else dropped.set(name, (dropped.get(name) ?? 0) + 1);
          return remaining >= 0;
        })
        .map((e) => e.name);
      if (targets.length > 0) entries.push({ t: 'event', id, kind, at, body, to: targets });
      for (const name of targets)
        if (this.state.disabled.has(name)) entries.push({ t: 'dead', id, to: name, why: GONE, at });
    }
    for (const [targets, count] of dropped) entries.push({ t: 'dropped', to: targets, count });
    await this.#write([...this.#dropDeadLetters(events), ...entries, ...extraEntries], true);
    for (const [endpoint, count] of dropped)
      this.#options.warn('lineage events are given up: the outbox is full', { endpoint, events: count });
  }

  delivered(id: string, endpoint: string): Promise<void> {
    return this.#write([{ t: 'done', id, to: endpoint }], false);
  }

  /** @param due time of the next attempt; null makes the event a dead letter */
  failed(id: string, endpoint: string, attempts: number, due: number | null, reason: string): Promise<void> {
    const at = this.#options.now();
    const attempt: OutboxEntry = { t: 'tried', id, to: endpoint, n: attempts, due: due ?? at, why: reason };
    return this.#write(
      due === null ? [attempt, { t: 'dead', id, to: endpoint, why: reason, at }] : [attempt],
      false,
    );
  }

  /** Disables an endpoint, so that its pending and future events are dead letters. */
  turnOff(endpoint: string, url: string): Promise<void> {
    const at = this.#options.now();
    const deadLetters = [...this.state.queue(endpoint).pending.keys()].map(
      (id): OutboxEntry => ({ t: 'dead', id, to: endpoint, why: GONE, at }),
    );
    return this.#write([{ t: 'off', to: endpoint, url, at }, ...deadLetters], true);
  }

  /** Makes dead letters pending again and re-enables their endpoints. Returns the number of dead letters. */
  async replay(matches: (message: OutboxMessage, endpoint: string) => boolean): Promise<number> {
    const replayed = [...this.state.messages.values()].flatMap((m) =>
      [...m.targets]
        .filter(([endpoint, target]) => target.state === 'dead' && matches(m, endpoint))
        .map(([targets]): OutboxEntry => ({ t: 'again', id: m.id, to: targets })),
    );
    const reenabled = [...this.state.disabled.keys()].filter((name) =>
      replayed.some((e) => e.t === 'again' && e.to === name),
    );
    if (replayed.length > 0)
      await this.#write(
        [...reenabled.map((targets): OutboxEntry => ({ t: 'on', to: targets })), ...replayed],
        true,
      );
    return replayed.length;
  }

  async close(): Promise<void> {
    await this.#writes.settled();
    await this.#journal.close();
  }

  #freeBytesOf(endpoint: string): number {
    return this.#options.maxBytes - this.state.queue(endpoint).pendingBytes;
  }

  /** Returns the journal entries that drop dead letters, oldest first, to make room for `events`. */
  #dropDeadLetters(events: readonly NewEvent[]): readonly OutboxEntry[] {
    return this.#options.endpoints.flatMap(({ name, events: kinds }): readonly OutboxEntry[] => {
      const newBytes = events
        .filter((e) => kinds.includes(e.kind))
        .reduce((sum, e) => sum + Buffer.byteLength(e.body), 0);
      const { pendingBytes, deadBytes, dead } = this.state.queue(name);
      let excess = pendingBytes + deadBytes + newBytes - this.#options.maxBytes;
      const removals: OutboxEntry[] = [];
      for (const { id, body } of dead.values()) {
        if (excess <= 0) break;
        excess -= Buffer.byteLength(body);
        removals.push({ t: 'done', id, to: name });
      }
      if (removals.length === 0) return [];
      this.#options.warn('dead letters are given up: the outbox is full', {
        endpoint: name,
        events: removals.length,
      });
      return [...removals, { t: 'dropped', to: name, count: removals.length }];
    });
  }

  /** Drops events of endpoints that are no longer configured, and re-enables endpoints with a new URL. */
  async #applyEndpointChanges(): Promise<void> {
    const urls = new Map(this.#options.endpoints.map((e) => [e.name, e.url]));
    const reenabled = [...this.state.disabled].filter(([name, { url }]) => urls.get(name) !== url);
    const removals = [...this.state.messages.values()].flatMap((m) =>
      [...m.targets.keys()]
        .filter((targets) => !urls.has(targets))
        .map((targets): OutboxEntry => ({ t: 'done', id: m.id, to: targets })),
    );
    if (reenabled.length + removals.length === 0) return;
    if (removals.length > 0)
      this.#options.warn('lineage events are given up: their endpoint is not configured', {
        events: removals.length,
      });
    await this.#write(
      [...reenabled.map(([targets]): OutboxEntry => ({ t: 'on', to: targets })), ...removals],
      true,
    );
  }

  #write(entries: readonly OutboxEntry[], durable: boolean): Promise<void> {
    return this.#writes.run(async () => {
      await this.#journal.append(entries, durable);
      for (const entry of entries) this.state.apply(entry);
      if (this.#journal.size > 4 * SLACK_BYTES) await this.#compact();
    });
  }

  async #compact(): Promise<void> {
    if (this.#journal.size > 3 * this.state.bytes + SLACK_BYTES)
      await this.#journal.rewrite(this.state.entries());
  }
}

const GONE = 'the endpoint answered 410';

/** A request from the command line to the process that owns the outbox: resend dead letters. Null means any. */
interface ReplayRequest {
  readonly id: string | null;
  readonly endpoint: string | null;
}

const NAME = /^[0-9a-f-]{36}\.json$/;

/** Stores a request for the current or next server using this data directory. */
export async function storeReplayRequest(dir: string, request: ReplayRequest): Promise<void> {
  const folder = join(dir, 'requests');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeWhole(join(folder, `${randomUUID()}.json`), Buffer.from(JSON.stringify(request)));
}

/** Handles stored requests one after another; each is deleted once `handle` has resolved. */
export async function handleReplayRequests(
  dir: string,
  handle: (request: ReplayRequest) => Promise<void>,
): Promise<void> {
  const folder = join(dir, 'requests');
  for (const name of (await namesIn(folder)).filter((n) => NAME.test(n)).sort()) {
    const file = join(folder, name);
    const request = parseRequest(await readFile(file, 'utf8'));
    if (request !== null) await handle(request);
    await rm(file, { force: true });
  }
}

function parseRequest(text: string): ReplayRequest | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const id = 'id' in value && typeof value.id === 'string' ? value.id : null;
    const endpoint = 'endpoint' in value && typeof value.endpoint === 'string' ? value.endpoint : null;
    return { id, endpoint };
  } catch {
    return null;
  }
}

/**
 * File format: each line is `<first 16 hex digits of SHA-256 of the rest> <JSON>`; a line `null` ends a group. Groups
 * are atomic, so an incomplete one is cut off.
 */
const END = formatLine(null);

function formatLine(entry: unknown): string {
  const json = JSON.stringify(entry);
  return `${checksumOf(json)} ${json}\n`;
}

function checksumOf(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, 16);
}

function formatGroup(entries: readonly unknown[]): Buffer {
  return Buffer.from(`${entries.map(formatLine).join('')}${END}`);
}

const EMPTY = Buffer.alloc(0);

export interface Journal<Entry> {
  readonly size: number;
  /** Appends a group; if `durable`, it is on disk when this resolves. If this rejects, nothing was added. */
  append(entries: readonly Entry[], durable: boolean): Promise<void>;
  /** Replaces all entries, durably. */
  rewrite(entries: readonly Entry[]): Promise<void>;
  close(): Promise<void>;
}

/** Returns the entries of all complete groups, and the offset at which the last complete group ends. */
function readGroups<Entry>(bytes: Buffer): {
  readonly entries: readonly Entry[];
  readonly end: number;
} {
  const entries: Entry[] = [];
  let openGroup: Entry[] = [];
  let end = 0;
  let offset = 0;
  for (let lineEnd = bytes.indexOf(0x0a, offset); lineEnd !== -1; lineEnd = bytes.indexOf(0x0a, offset)) {
    const line = bytes.toString('utf8', offset, lineEnd);
    const json = line.slice(17);
    if (line[16] !== ' ' || line.slice(0, 16) !== checksumOf(json)) break;
    offset = lineEnd + 1;
    const entry: unknown = JSON.parse(json);
    if (entry !== null) {
      openGroup.push(entry as Entry); // cast: the checksum matches
      continue;
    }
    entries.push(...openGroup);
    openGroup = [];
    end = offset;
  }
  return { entries, end };
}

/** Reads a journal that another process may be writing; empty if the file does not exist. */
export async function readJournal<Entry>(file: string): Promise<readonly Entry[]> {
  return readGroups<Entry>((await bytesOf(file)) ?? EMPTY).entries;
}

/** Opens a journal for writing; cuts off an incomplete group. */
export async function openJournal<Entry>(file: string): Promise<{
  readonly journal: Journal<Entry>;
  readonly entries: readonly Entry[];
  readonly truncatedBytes: number;
}> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = (await bytesOf(file)) ?? EMPTY;
  const { entries, end } = readGroups<Entry>(bytes);
  const handle = await open(file, 'a+', 0o600);
  await handle.truncate(end);
  await handle.sync();
  await syncNames(dirname(file));
  return { journal: new FileJournal<Entry>(file, handle, end), entries, truncatedBytes: bytes.length - end };
}

class FileJournal<Entry> implements Journal<Entry> {
  readonly #file: string;
  #handle: FileHandle;
  #size: number;

  constructor(file: string, handle: FileHandle, size: number) {
    this.#file = file;
    this.#handle = handle;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  async append(entries: readonly Entry[], durable: boolean): Promise<void> {
    const group = formatGroup(entries);
    try {
      await this.#handle.appendFile(group);
      if (durable) await this.#handle.datasync();
    } catch (error) {
      await this.#handle.truncate(this.#size).catch(() => undefined); // ignored: the first error is reported
      throw error;
    }
    this.#size += group.length;
  }

  async rewrite(entries: readonly Entry[]): Promise<void> {
    const group = formatGroup(entries);
    await writeWhole(this.#file, group);
    await this.#handle.close();
    this.#handle = await open(this.#file, 'a+', 0o600);
    this.#size = group.length;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
