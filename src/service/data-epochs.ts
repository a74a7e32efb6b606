import type { DataEpochs } from '../ask/data/answer-cache.js';
import type { ServiceLog } from '../base/log.js';
import { within } from '../base/serial.js';
import { messageOf } from '../base/thrown.js';
import { listenOn, type NotificationSubscription } from '../engine/index.js';
import { type CacheRule, type Connector, systemUrlVariable } from '../model/manifest/index.js';
import { connectorUrl } from './connector-url.js';
import type { SystemReads } from './system-reads.js';

/** Time limit in ms for reading a watermark, after which the query runs without the cache. */
const PATIENCE_MS = 2_000;
const REST_MS = 5_000;

type Watermarks = Pick<SystemReads, 'readWatermark'>;

/** Opens the source of data epochs: texts that change with the data, so that the answer cache detects changes. */
export function databaseEpochs(
  connectors: () => ReadonlyMap<string, Connector>,
  reads: Watermarks,
  log: ServiceLog,
): { readonly epochs: DataEpochs; readonly close: () => Promise<void> } {
  const signals = new DataSignals(async (name, heard, gone) => {
    const connector = connectors().get(name);
    const url =
      connector === undefined ? null : await connectorUrl(process.env, systemUrlVariable(connector));
    return url === null ? null : listenOn(url, DATA_CHANNEL, heard, gone, 'osl results');
  }, log);
  return { epochs: new DatabaseEpochs(reads, signals, log), close: () => signals.close() };
}

/**
 * Data epochs taken from the databases: the greatest value of the watermark column, read for each query with system
 * credentials, and the number of change notifications. Each process determines its own epochs.
 */
class DatabaseEpochs implements DataEpochs {
  readonly #reads: Watermarks;
  readonly #signals: DataSignals;
  readonly #log: ServiceLog;
  readonly #watermarks = new Map<string, NextRead<string>>();
  /** Time of the next attempt, for each entity whose watermark could not be read. */
  readonly #rests = new Map<string, number>();
  /** Entities whose failure has been logged. */
  readonly #unread = new Set<string>();

  constructor(reads: Watermarks, signals: DataSignals, log: ServiceLog) {
    this.#reads = reads;
    this.#signals = signals;
    this.#log = log;
  }

  async epochOf(rules: ReadonlyMap<string, CacheRule>): Promise<string | null> {
    const told = await Promise.all([...rules].map(([entity, rule]) => this.#epochOf(entity, rule)));
    return told.some((t) => t === null) ? null : told.join(' ');
  }

  async #epochOf(entity: string, rule: CacheRule): Promise<string | null> {
    const signals = rule.notify ? this.#signals.count(rule.connector, entity) : 'by time';
    if (signals === null) return null;
    const watermark = rule.watermark === null ? '' : await this.#watermarkOf(entity, rule, rule.watermark);
    return watermark === null ? null : `${entity}[${watermark}|${signals}]`;
  }

  /** Returns the watermark of an entity; null if it cannot be read, which is logged once. */
  async #watermarkOf(entity: string, rule: CacheRule, column: string): Promise<string | null> {
    if (performance.now() < (this.#rests.get(entity) ?? 0)) return null;
    try {
      const read = await within(this.#readOf(rule, column).next(), PATIENCE_MS);
      if (this.#unread.delete(entity)) this.#log.info('the watermark can be read again', { entity });
      return read;
    } catch (error) {
      this.#rests.set(entity, performance.now() + REST_MS);
      if (!this.#unread.has(entity)) {
        this.#unread.add(entity);
        const cause = messageOf(error);
        this.#log.warn('the watermark cannot be read: answers are neither kept nor given again', {
          entity,
          cause,
        });
      }
      return null;
    }
  }

  #readOf({ connector, schema, table }: CacheRule, column: string): NextRead<string> {
    const key = JSON.stringify([connector, schema, table, column]);
    let read = this.#watermarks.get(key);
    if (read === undefined) {
      read = new NextRead(
        async () => (await this.#reads.readWatermark(connector, { schema, table }, column)) ?? '',
      );
      this.#watermarks.set(key, read);
    }
    return read;
  }
}

/** Coalesces reads: callers that wait at the same time share one read. */
class NextRead<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<T> | null = null;
  #next: Promise<T> | null = null;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** Returns the result of a read that starts after this call: a read in progress may have missed recent writes. */
  next(): Promise<T> {
    if (this.#running === null) return this.#begin();
    this.#next ??= this.#running.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#next = null;
    const reading = this.#read().finally(() => {
      if (this.#running === reading) this.#running = null;
    });
    this.#running = reading;
    return reading;
  }
}

/** Channel for data changes: `notify osl_data, 'order'`, or without payload for all entities. */
const DATA_CHANNEL = 'osl_data';

/** Interval and timeout of connection checks in ms. */
const CHECK_MS = 5_000;
const RETRY_MS = 1_000;

/** Runs LISTEN on a connector's database. Resolves to null if there are no system credentials. */
type ListenToDatabase = (
  connector: string,
  heard: (text: string) => void,
  gone: () => void,
) => Promise<NotificationSubscription | null>;

interface DatabaseChannel {
  listening: NotificationSubscription | null;
  /** Number of connections made so far. Part of each epoch, since notifications between two connections are lost. */
  times: number;
  ofAll: number;
  readonly ofEntity: Map<string, number>;
  timer: NodeJS.Timeout | null;
  toldLost: boolean;
}

/** Counts data change notifications per entity. Connects on the first query about a database. */
class DataSignals {
  readonly #listen: ListenToDatabase;
  readonly #log: ServiceLog;
  readonly #heard = new Map<string, DatabaseChannel>();
  #closed = false;

  constructor(listen: ListenToDatabase, log: ServiceLog) {
    this.#listen = listen;
    this.#log = log;
  }

  /** A text that changes with each notification or reconnection; null while not connected. The first call connects. */
  count(connector: string, entity: string): string | null {
    let heard = this.#heard.get(connector);
    if (heard === undefined) {
      heard = { listening: null, times: 0, ofAll: 0, ofEntity: new Map(), timer: null, toldLost: false };
      this.#heard.set(connector, heard);
      void this.#connect(connector, heard);
    }
    if (heard.listening === null) return null;
    if (!heard.ofEntity.has(entity)) heard.ofEntity.set(entity, 0);
    return `${heard.times}.${heard.ofAll}.${heard.ofEntity.get(entity) ?? 0}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { timer, listening } of this.#heard.values()) {
      if (timer !== null) clearTimeout(timer);
      await listening?.close().catch(() => undefined); // an error means that the connection is already lost
    }
  }

  async #connect(connector: string, heard: DatabaseChannel): Promise<void> {
    const lost = (): void => this.#lost(connector, heard);
    try {
      const listening = await this.#listen(connector, (text) => note(heard, text), lost);
      if (listening === null) return this.#tellLost(connector, heard, 'no system credentials');
      if (this.#closed) return await listening.close();
      heard.times++;
      heard.listening = listening;
      if (heard.toldLost) this.#log.info('changes of data are heard of again', { connector });
      heard.toldLost = false;
      this.#later(heard, CHECK_MS, () => void this.#check(connector, heard));
    } catch (error) {
      this.#tellLost(connector, heard, messageOf(error));
      this.#later(heard, RETRY_MS, () => void this.#connect(connector, heard));
    }
  }

  async #check(connector: string, heard: DatabaseChannel): Promise<void> {
    const { listening } = heard;
    if (listening === null) return;
    const late = setTimeout(() => this.#lost(connector, heard), CHECK_MS).unref();
    try {
      await listening.check();
      if (heard.listening === listening)
        this.#later(heard, CHECK_MS, () => void this.#check(connector, heard));
    } catch {
      if (heard.listening === listening) this.#lost(connector, heard);
    } finally {
      clearTimeout(late);
    }
  }

  #lost(connector: string, heard: DatabaseChannel): void {
    const { listening } = heard;
    if (listening === null || this.#closed) return;
    heard.listening = null;
    void listening.close().catch(() => undefined); // an error means that the connection is already lost
    this.#tellLost(connector, heard, 'the connection was lost');
    this.#later(heard, RETRY_MS, () => void this.#connect(connector, heard));
  }

  #tellLost(connector: string, heard: DatabaseChannel, cause: string): void {
    if (!heard.toldLost)
      this.#log.warn('changes of data are not heard of: answers are neither kept nor given again', {
        connector,
        cause,
      });
    heard.toldLost = true;
  }

  #later(heard: DatabaseChannel, ms: number, work: () => void): void {
    if (this.#closed) return;
    if (heard.timer !== null) clearTimeout(heard.timer);
    heard.timer = setTimeout(work, ms).unref();
  }
}

function note(heard: DatabaseChannel, text: string): void {
  const times = heard.ofEntity.get(text);
  if (text === '') heard.ofAll++;
  // Only requested entities are counted, so that the map cannot grow without bound.
  else if (times !== undefined) heard.ofEntity.set(text, times + 1);
}
