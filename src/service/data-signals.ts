import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import type { NotificationSubscription } from '../engine/index.js';

/** Channel for data changes: `notify osl_data, 'order'`, or without payload for all entities. */
export const DATA_CHANNEL = 'osl_data';

/** Interval and timeout of connection checks, ms. */
const CHECK_MS = 5_000;
const RETRY_MS = 1_000;

/** LISTENs on a connector's database; null without system credentials. */
export type ListenToDatabase = (
  connector: string,
  heard: (text: string) => void,
  gone: () => void,
) => Promise<NotificationSubscription | null>;

/** Notifications of one database while connected. */
interface DatabaseChannel {
  listening: NotificationSubscription | null;
  /** Number of connections made; notifications in between are lost. */
  times: number;
  ofAll: number;
  readonly ofEntity: Map<string, number>;
  timer: NodeJS.Timeout | null;
  toldLost: boolean;
}

/** Counts data change notifications per entity. Connects on the first query about a database. */
export class DataSignals {
  readonly #listen: ListenToDatabase;
  readonly #log: ServiceLog;
  readonly #heard = new Map<string, DatabaseChannel>();
  #closed = false;

  constructor(listen: ListenToDatabase, log: ServiceLog) {
    this.#listen = listen;
    this.#log = log;
  }

  /** Null while not connected; the first call starts connecting. */
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
      await listening?.close().catch(() => undefined); // already lost
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

  /** Detects dead connections. */
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
    void listening.close().catch(() => undefined); // already lost
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
  // Only requested entities are counted, so the map cannot grow without bound.
  else if (times !== undefined) heard.ofEntity.set(text, times + 1);
}
