import { readFrames } from '../../../audit/index.js';
import { Serial } from '../../base/serial.js';
import type { LineageEndpoint } from './config/load.js';
import { type DatasetDescription, datasetFingerprint } from './datasets.js';
import type { LineageClock } from './delivery/delivery.js';
import { EndpointDelivery } from './delivery/delivery.js';
import { datasetEvent, droppedEvent, runEvent, type Voice } from './openlineage.js';
import { handleReplayRequests, type NewEvent, Outbox } from './outbox/outbox.js';
import { type AuditLogPosition, journalIn, type OutboxEntry } from './outbox/state.js';
import { Windows } from './window.js';

/** Settings of the emitter; plain data, since they are sent to its thread. */
export interface EmitterSettings {
  readonly auditDir: string;
  readonly dir: string;
  /** The end of the audit log at startup, where a new outbox starts reading. */
  readonly start: AuditLogPosition;
  readonly voice: Voice;
  readonly agent: string;
  readonly windowMs: number;
  readonly outboxBytes: number;
  readonly endpoints: readonly LineageEndpoint[];
  /** Polling interval for the audit log and for requests, in ms. */
  readonly pollMs: number;
}

type Warn = (message: string, fields: Readonly<Record<string, unknown>>) => void;

interface EndpointStats {
  readonly pending: number;
  readonly dead: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dropped: number;
  readonly disabled: boolean;
}

export interface EmitterStats {
  readonly read: number;
  readonly endpoints: Readonly<Record<string, EndpointStats>>;
}

/** Pause in ms after writing the outbox failed. */
const DISK_PAUSE = 5_000;

/** Number of segments before the cursor to read for plan descriptions; `PlanRecorder` repeats them in each segment. */
const SEGMENTS_BACK = 2;

/**
 * Follows the audit log, creates events from it and delivers them. INVARIANT: the events of a window and the log
 * cursor are written as one group of the outbox, so a crash neither loses nor repeats a decision.
 */
export class Emitter {
  readonly #settings: EmitterSettings;
  readonly #clock: LineageClock;
  readonly #warn: Warn;
  readonly #outbox: Outbox;
  readonly #deliveries: ReadonlyMap<string, EndpointDelivery>;
  readonly #stop = new AbortController();
  readonly #windows = new Windows();
  #cursor: AuditLogPosition;
  readonly #closing = new Serial();
  /** Runs announcements one after another. */
  readonly #announcing = new Serial();
  /** Time of the last cursor write, in ms since the epoch. */
  #writtenAt = 0;
  #running: Promise<unknown> | null = null;

  private constructor(
    settings: EmitterSettings,
    clock: LineageClock,
    warn: Warn,
    outbox: Outbox,
    chance: () => number,
  ) {
    this.#settings = settings;
    this.#clock = clock;
    this.#warn = warn;
    this.#outbox = outbox;
    this.#cursor = placeIn(outbox.state.cursor, settings.start, warn);
    const { signal } = this.#stop;
    const { agent } = settings;
    this.#deliveries = new Map(
      settings.endpoints.map((endpoint) => [
        endpoint.name,
        new EndpointDelivery({ endpoint, outbox, clock, agent, signal, chance, warn }),
      ]),
    );
  }

  static async open(
    settings: EmitterSettings,
    clock: LineageClock,
    warn: Warn,
    chance: () => number = Math.random,
  ): Promise<Emitter> {
    const { dir, endpoints, outboxBytes, start } = settings;
    const now = (): number => clock.now();
    const file = journalIn(dir);
    const outbox = await Outbox.open({ file, endpoints, maxBytes: outboxBytes, now, warn }, start);
    return new Emitter(settings, clock, warn, outbox, chance);
  }

  start(): void {
    const tasks = [this.#tail(), this.#watch(), ...[...this.#deliveries.values()].map((d) => d.run())];
    this.#running = Promise.all(tasks.map((task) => task.catch((error: unknown) => this.#broken(error))));
  }

  /**
   * Creates events for datasets that have changed since the last announcement. The events are on disk when this
   * resolves. Has no effect if `version` was the last one announced.
   */
  announce(version: string, datasets: readonly DatasetDescription[]): Promise<void> {
    return this.#announcing.run(() => this.#announce(version, datasets));
  }

  async #announce(version: string, datasets: readonly DatasetDescription[]): Promise<void> {
    const before = this.#outbox.state.announced;
    if (before?.version === version) return;
    const { voice } = this.#settings;
    const time = new Date(this.#clock.now()).toISOString();
    const fingerprints = new Map(datasets.map((d) => [d.name, datasetFingerprint(d)]));
    const known = new Map(Object.entries(before?.datasets ?? {}));
    const changed = datasets.filter((d) => known.get(d.name) !== fingerprints.get(d.name));
    const gone = [...known.keys()].filter((name) => !fingerprints.has(name));
    const events = [
      ...changed.map((d) => datasetEvent(d, version, time, voice)),
      ...gone.map((name) => droppedEvent(name, version, time, voice)),
    ].map(({ id, event }): NewEvent => ({ id, kind: 'dataset', body: JSON.stringify(event) }));
    await this.#outbox.add(events, [{ t: 'announced', version, datasets: Object.fromEntries(fingerprints) }]);
    this.#poke();
  }

  get seen(): number {
    return this.#cursor.seq;
  }

  stats(): EmitterStats {
    const { state } = this.#outbox;
    const endpoints = [...this.#deliveries].map(([name, { counts }]): [string, EndpointStats] => {
      const { pending, dead } = state.queue(name);
      return [
        name,
        {
          pending: pending.size,
          dead: dead.size,
          ...counts,
          dropped: state.dropped.get(name) ?? 0,
          disabled: state.off.has(name),
        },
      ];
    });
    return { read: state.cursor?.seq ?? 0, endpoints: Object.fromEntries(endpoints) };
  }

  /** Completes the deliveries in progress, then writes the open window to the outbox for the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#closeWindow();
    await this.#outbox.close();
  }

  async #tail(): Promise<void> {
    const { auditDir, pollMs, windowMs } = this.#settings;
    const { signal } = this.#stop;
    const { writer, seq: from, segment } = this.#cursor;
    const reading = { segment: Math.max(1, segment - SEGMENTS_BACK), follow: true, signal, pollMs };
    for await (const stored of readFrames(auditDir, reading)) {
      this.#windows.add(stored, stored.seq >= from);
      if (stored.seq >= from) this.#cursor = { writer, seq: stored.seq + 1, segment: stored.segment };
      // Backpressure: while the outbox cannot be written, this waits, and no more records are read.
      if (this.#windows.full || this.#windows.spanMs >= windowMs) await this.#closeWindow();
      if (signal.aborted) break;
    }
  }

  /** Closes windows when their time is up, and handles requests. */
  async #watch(): Promise<void> {
    const { dir, pollMs, windowMs } = this.#settings;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#clock.sleep(pollMs, signal);
      // A window without runs is closed too, so that the cursor is saved.
      const since = this.#windows.startedAt ?? this.#writtenAt;
      if (this.#clock.now() - since >= windowMs) await this.#closeWindow();
      await handleReplayRequests(dir, async ({ id, endpoint }) => {
        const pick = (m: { readonly id: string }, to: string): boolean =>
          (id === null || m.id === id) && (endpoint === null || to === endpoint);
        if ((await this.#outbox.replay(pick)) > 0) this.#poke();
      });
    }
  }

  #closeWindow(): Promise<void> {
    const runs = this.#windows.close();
    const cursor = this.#cursor;
    return this.#closing.run(() => this.#put(runs, cursor));
  }

  /**
   * Writes the events of `runs` and the cursor to the outbox. Retries until that succeeds; at shutdown it gives up,
   * since the audit log still contains the runs.
   */
  async #put(runs: ReturnType<Windows['close']>, cursor: AuditLogPosition): Promise<void> {
    const { voice } = this.#settings;
    const before = this.#outbox.state.cursor;
    this.#writtenAt = this.#clock.now();
    if (runs.length === 0 && before?.seq === cursor.seq && before.writer === cursor.writer) return;
    const events = runs
      .map((r) => runEvent(r, cursor.writer, voice))
      .map(({ id, event }): NewEvent => ({ id, kind: 'run', body: JSON.stringify(event) }));
    const also: readonly OutboxEntry[] = [{ t: 'cursor', ...cursor }];
    for (;;) {
      try {
        await this.#outbox.add(events, also);
        this.#poke();
        return;
      } catch (error) {
        this.#warn('the lineage outbox cannot be written', { error: String(error) });
        if (this.#stop.signal.aborted) return;
        await this.#clock.sleep(DISK_PAUSE, this.#stop.signal);
      }
    }
  }

  #poke(): void {
    for (const delivery of this.#deliveries.values()) delivery.poke();
  }

  #broken(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    throw error;
  }
}

/**
 * Returns the position to continue from, normally the cursor. Another audit log is read from its beginning. If the log
 * ends before the cursor, reading continues at its end: its last records, not yet acknowledged, were lost in a crash.
 */
function placeIn(cursor: AuditLogPosition | null, end: AuditLogPosition, warn: Warn): AuditLogPosition {
  if (cursor === null) return end;
  if (cursor.writer !== end.writer) {
    warn('the audit log is another one than before: lineage is read from its beginning', {
      writer: end.writer,
    });
    return { writer: end.writer, seq: 0, segment: 1 };
  }
  if (cursor.seq <= end.seq) return cursor;
  warn('the audit log ends before the place up to which lineage was read', {
    read: cursor.seq,
    end: end.seq,
  });
  return end;
}
