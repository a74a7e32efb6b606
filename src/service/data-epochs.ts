import type { DataEpochs } from '../ask/data/answer-cache.js';
import type { ServiceLog } from '../base/log.js';
import { within } from '../base/serial.js';
import { messageOf } from '../base/thrown.js';
import { listenOn, type NotificationSubscription } from '../engine/index.js';
import { type CacheRule, type Connector, systemUrlVariable } from '../model/manifest/index.js';
import { connectorUrl } from './connector-url.js';
import type { SystemReads } from './system-reads.js';

/** Time limit in ms for reading a watermark, after which the query runs without the cache. */
const READ_TIMEOUT_MS = 2_000;
const RETRY_AFTER_FAILURE_MS = 5_000;

type Watermarks = Pick<SystemReads, 'readWatermark'>;

/** Opens the source of data epochs: texts that change with the data, so that the answer cache detects changes. */
export function databaseEpochs(
  connectors: () => ReadonlyMap<string, Connector>,
  reads: Watermarks,
  log: ServiceLog,
): { readonly epochs: DataEpochs; readonly close: () => Promise<void> } {
  const signals = new DataSignals(async (name, onNotification, onDisconnect) => {
    const connector = connectors().get(name);
    const url =
      connector === undefined ? null : await connectorUrl(process.env, systemUrlVariable(connector));
    return url === null ? null : listenOn(url, DATA_CHANNEL, onNotification, onDisconnect, 'osl results');
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
  readonly #watermarks = new Map<string, SharedRead<string>>();
  /** Time of the next attempt, for each entity whose watermark could not be read. */
  readonly #retryAt = new Map<string, number>();
  /** Entities whose failure has been logged. */
  readonly #failedEntities = new Set<string>();

  constructor(reads: Watermarks, signals: DataSignals, log: ServiceLog) {
    this.#reads = reads;
    this.#signals = signals;
    this.#log = log;
  }

  async epochOf(rules: ReadonlyMap<string, CacheRule>): Promise<string | null> {
    const epochs = await Promise.all([...rules].map(([entity, rule]) => this.#epochOf(entity, rule)));
    return epochs.some((t) => t === null) ? null : epochs.join(' ');
  }

  async #epochOf(entity: string, rule: CacheRule): Promise<string | null> {
    const signals = rule.notify ? this.#signals.count(rule.connector, entity) : 'by time';
    if (signals === null) return null;
    const watermark = rule.watermark === null ? '' : await this.#watermarkOf(entity, rule, rule.watermark);
    return watermark === null ? null : `${entity}[${watermark}|${signals}]`;
  }

  /** Returns the watermark of an entity; null if it cannot be read, which is logged once. */
  async #watermarkOf(entity: string, rule: CacheRule, column: string): Promise<string | null> {
    if (performance.now() < (this.#retryAt.get(entity) ?? 0)) return null;
    try {
      const watermark = await within(this.#sharedReadOf(rule, column).next(), READ_TIMEOUT_MS);
      if (this.#failedEntities.delete(entity)) this.#log.info('the watermark can be read again', { entity });
      return watermark;
    } catch (error) {
      this.#retryAt.set(entity, performance.now() + RETRY_AFTER_FAILURE_MS);
      if (!this.#failedEntities.has(entity)) {
        this.#failedEntities.add(entity);
        const cause = messageOf(error);
        this.#log.warn('the watermark cannot be read: answers are neither kept nor given again', {
          entity,
          cause,
        });
      }
      return null;
    }
  }

  #sharedReadOf({ connector, schema, table }: CacheRule, column: string): SharedRead<string> {
    const key = JSON.stringify([connector, schema, table, column]);
    let sharedRead = this.#watermarks.get(key);
    if (sharedRead === undefined) {
      sharedRead = new SharedRead(
        async () => (await this.#reads.readWatermark(connector, { schema, table }, column)) ?? '',
      );
      this.#watermarks.set(key, sharedRead);
    }
    return sharedRead;
  }
}

/** Coalesces reads: callers that wait at the same time share one read. */
class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<T> | null = null;
  #next: Promise<T> | null = null;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** Returns the result of a read that starts after this call: a read in progress may have missed recent writes. */
  next(): Promise<T> {
    if (this.#running === null) return this.#startRead();
    this.#next ??= this.#running.then(
      () => this.#startRead(),
      () => this.#startRead(),
    );
    return this.#next;
  }

  #startRead(): Promise<T> {
    this.#next = null;
    const current = this.#read().finally(() => {
      if (this.#running === current) this.#running = null;
    });
    this.#running = current;
    return current;
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
  onNotification: (text: string) => void,
  onDisconnect: () => void,
) => Promise<NotificationSubscription | null>;

interface DatabaseChannel {
  subscription: NotificationSubscription | null;
  /** Number of connections made so far. Part of each epoch, since notifications between two connections are lost. */
  connections: number;
  allCount: number;
  readonly entityCounts: Map<string, number>;
  timer: NodeJS.Timeout | null;
  isLossLogged: boolean;
}

/** Counts data change notifications per entity. Connects on the first query about a database. */
class DataSignals {
  readonly #listen: ListenToDatabase;
  readonly #log: ServiceLog;
  readonly #channels = new Map<string, DatabaseChannel>();
  #closed = false;

  constructor(listen: ListenToDatabase, log: ServiceLog) {
    this.#listen = listen;
    this.#log = log;
  }

  /** A text that changes with each notification or reconnection; null while not connected. The first call connects. */
  count(connector: string, entity: string): string | null {
    let channel = this.#channels.get(connector);
    if (channel === undefined) {
      channel = {
        subscription: null,
        connections: 0,
        allCount: 0,
        entityCounts: new Map(),
        timer: null,
        isLossLogged: false,
      };
      this.#channels.set(connector, channel);
      void this.#connect(connector, channel);
    }
    if (channel.subscription === null) return null;
    if (!channel.entityCounts.has(entity)) channel.entityCounts.set(entity, 0);
    return `${channel.connections}.${channel.allCount}.${channel.entityCounts.get(entity) ?? 0}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { timer, subscription } of this.#channels.values()) {
      if (timer !== null) clearTimeout(timer);
      await subscription?.close().catch(() => undefined); // an error means that the connection is already lost
    }
  }

  async #connect(connector: string, channel: DatabaseChannel): Promise<void> {
    const onLost = (): void => this.#handleLoss(connector, channel);
    try {
      const subscription = await this.#listen(connector, (text) => countNotification(channel, text), onLost);
      if (subscription === null) return this.#logLoss(connector, channel, 'no system credentials');
      if (this.#closed) return await subscription.close();
      channel.connections++;
      channel.subscription = subscription;
      if (channel.isLossLogged) this.#log.info('changes of data are heard of again', { connector });
      channel.isLossLogged = false;
      this.#schedule(channel, CHECK_MS, () => void this.#check(connector, channel));
    } catch (error) {
      this.#logLoss(connector, channel, messageOf(error));
      this.#schedule(channel, RETRY_MS, () => void this.#connect(connector, channel));
    }
  }

  async #check(connector: string, channel: DatabaseChannel): Promise<void> {
    const { subscription } = channel;
    if (subscription === null) return;
    const timeout = setTimeout(() => this.#handleLoss(connector, channel), CHECK_MS).unref();
    try {
      await subscription.check();
      if (channel.subscription === subscription)
        this.#schedule(channel, CHECK_MS, () => void this.#check(connector, channel));
    } catch {
      if (channel.subscription === subscription) this.#handleLoss(connector, channel);
    } finally {
      clearTimeout(timeout);
    }
  }

  #handleLoss(connector: string, channel: DatabaseChannel): void {
    const { subscription } = channel;
    if (subscription === null || this.#closed) return;
    channel.subscription = null;
    void subscription.close().catch(() => undefined); // an error means that the connection is already lost
    this.#logLoss(connector, channel, 'the connection was lost');
    this.#schedule(channel, RETRY_MS, () => void this.#connect(connector, channel));
  }

  #logLoss(connector: string, channel: DatabaseChannel, cause: string): void {
    if (!channel.isLossLogged)
      this.#log.warn('changes of data are not heard of: answers are neither kept nor given again', {
        connector,
        cause,
      });
    channel.isLossLogged = true;
  }

  #schedule(channel: DatabaseChannel, ms: number, work: () => void): void {
    if (this.#closed) return;
    if (channel.timer !== null) clearTimeout(channel.timer);
    channel.timer = setTimeout(work, ms).unref();
  }
}

function countNotification(channel: DatabaseChannel, text: string): void {
  const count = channel.entityCounts.get(text);
  if (text === '') channel.allCount++;
  // Only requested entities are counted, so that the map cannot grow without bound.
  else if (count !== undefined) channel.entityCounts.set(text, count + 1);
}
