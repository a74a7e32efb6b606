import { readFrames } from '../../../audit/index.js';
import { Serial } from '../../base/serial.js';
import type { LineageEndpoint } from './config/load.js';
import { type DatasetDescription, datasetFingerprint } from './datasets.js';
import type { LineageClock } from './delivery/delivery.js';
import { EndpointDelivery } from './delivery/delivery.js';
import { datasetEvent, droppedEvent, type ProducerIdentity, runEvent } from './openlineage.js';
import { handleReplayRequests, type NewEvent, Outbox } from './outbox/outbox.js';
import { type AuditLogPosition, journalIn, type OutboxEntry } from './outbox/state.js';
import { type StatementRuns, Windows } from './window.js';

/** Settings of the emitter; plain data, since they are sent to its thread. */
export interface EmitterSettings {
  readonly auditDir: string;
  readonly dir: string;
  /** The end of the audit log at startup, where a new outbox starts reading. */
  readonly start: AuditLogPosition;
  readonly identity: ProducerIdentity;
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
const DISK_PAUSE_MS = 5_000;

/** Number of segments before the cursor to read for plan descriptions; `PlanRecorder` repeats them in each segment. */
const SEGMENTS_BACK = 2;
/** Maximum number of further segments to read for a description that is still missing, in the life of an emitter. */
const MOST_SEGMENTS_BACK = 32;

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
  /** The earliest segment that has been read for descriptions, and the earliest one that may be. */
  readonly #describedFrom: { segment: number; readonly limit: number };
  readonly #closeQueue = new Serial();
  /** Runs announcements one after another. */
  readonly #announceQueue = new Serial();
  /** Time of the last cursor write, in ms since the epoch. */
  #writtenAt = 0;
  #running: Promise<unknown> | null = null;

  private constructor(
    settings: EmitterSettings,
    clock: LineageClock,
    warn: Warn,
    outbox: Outbox,
    random: () => number,
  ) {
    this.#settings = settings;
    this.#clock = clock;
    this.#warn = warn;
    this.#outbox = outbox;
    this.#cursor = startPosition(outbox.state.cursor, settings.start, warn);
    const first = Math.max(1, this.#cursor.segment - SEGMENTS_BACK);
    this.#describedFrom = { segment: first, limit: Math.max(1, first - MOST_SEGMENTS_BACK) };
    const { signal } = this.#stop;
    const { agent } = settings;
    this.#deliveries = new Map(
      settings.endpoints.map((endpoint) => [
        endpoint.name,
        new EndpointDelivery({ endpoint, outbox, clock, agent, signal, random, warn }),
      ]),
    );
  }

  static async open(
    settings: EmitterSettings,
    clock: LineageClock,
    warn: Warn,
    random: () => number = Math.random,
  ): Promise<Emitter> {
    const { dir, endpoints, outboxBytes, start } = settings;
    const now = (): number => clock.now();
    const file = journalIn(dir);
    const outbox = await Outbox.open({ file, endpoints, maxBytes: outboxBytes, now, warn }, start);
    return new Emitter(settings, clock, warn, outbox, random);
  }

  start(): void {
    const tasks = [
      this.#followLog(),
      this.#closeWindowsAndReplay(),
      ...[...this.#deliveries.values()].map((d) => d.run()),
    ];
    this.#running = Promise.all(
      tasks.map((task) => task.catch((error: unknown) => this.#throwUnlessStopped(error))),
    );
  }

  /**
   * Creates events for datasets that have changed since the last announcement. The events are on disk when this
   * resolves. Has no effect if `version` was the last one announced.
   */
  announce(version: string, datasets: readonly DatasetDescription[]): Promise<void> {
    return this.#announceQueue.run(() => this.#announce(version, datasets));
  }

  async #announce(version: string, datasets: readonly DatasetDescription[]): Promise<void> {
    const lastAnnounced = this.#outbox.state.announced;
    if (lastAnnounced?.version === version) return;
    const { identity } = this.#settings;
    const time = new Date(this.#clock.now()).toISOString();
    const fingerprints = new Map(datasets.map((d) => [d.name, datasetFingerprint(d)]));
    const lastFingerprints = new Map(Object.entries(lastAnnounced?.datasets ?? {}));
    const changed = datasets.filter((d) => lastFingerprints.get(d.name) !== fingerprints.get(d.name));
    const removed = [...lastFingerprints.keys()].filter((name) => !fingerprints.has(name));
    const events = [
      ...changed.map((d) => datasetEvent(d, version, time, identity)),
      ...removed.map((name) => droppedEvent(name, version, time, identity)),
    ].map(({ id, event }): NewEvent => ({ id, kind: 'dataset', body: JSON.stringify(event) }));
    await this.#outbox.add(events, [{ t: 'announced', version, datasets: Object.fromEntries(fingerprints) }]);
    this.#wakeDeliveries();
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
          disabled: state.disabled.has(name),
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

  async #followLog(): Promise<void> {
    const { auditDir, pollMs, windowMs } = this.#settings;
    const { signal } = this.#stop;
    const { writer, seq: countFrom } = this.#cursor;
    const options = { segment: this.#describedFrom.segment, follow: true, signal, pollMs };
    for await (const frame of readFrames(auditDir, options)) {
      this.#windows.add(frame, frame.seq >= countFrom);
      if (frame.seq >= countFrom) this.#cursor = { writer, seq: frame.seq + 1, segment: frame.segment };
      // Backpressure: while the outbox cannot be written, this waits, and no more records are read.
      if (this.#windows.full || this.#windows.spanMs >= windowMs) await this.#closeWindow();
      if (signal.aborted) break;
    }
  }

  /** Closes windows when their time is up, and handles requests. */
  async #closeWindowsAndReplay(): Promise<void> {
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
        if ((await this.#outbox.replay(pick)) > 0) this.#wakeDeliveries();
      });
    }
  }

  #closeWindow(): Promise<void> {
    const runs = this.#windows.close();
    const cursor = this.#cursor;
    return this.#closeQueue.run(() => this.#writeRuns(runs, cursor));
  }

  /**
   * Writes the events of `runs` and the cursor to the outbox. Retries until that succeeds; at shutdown it gives up,
   * since the audit log still contains the runs.
   */
  async #writeRuns(runs: readonly StatementRuns[], cursor: AuditLogPosition): Promise<void> {
    const { identity } = this.#settings;
    const lastCursor = this.#outbox.state.cursor;
    this.#writtenAt = this.#clock.now();
    if (runs.length === 0 && lastCursor?.seq === cursor.seq && lastCursor.writer === cursor.writer) return;
    const describedRuns = await this.#withDescriptions(runs);
    const events = describedRuns
      .map((r) => runEvent(r, cursor.writer, identity))
      .map(({ id, event }): NewEvent => ({ id, kind: 'run', body: JSON.stringify(event) }));
    const extraEntries: readonly OutboxEntry[] = [{ t: 'cursor', ...cursor }];
    for (;;) {
      try {
        await this.#outbox.add(events, extraEntries);
        this.#wakeDeliveries();
        return;
      } catch (error) {
        this.#warn('the lineage outbox cannot be written', { error: String(error) });
        if (this.#stop.signal.aborted) return;
        await this.#clock.sleep(DISK_PAUSE_MS, this.#stop.signal);
      }
    }
  }

  /**
   * Looks for missing descriptions in earlier segments, one after another: an outcome can be many segments after its
   * decision if the query ran long, or if a crash left many decisions open.
   */
  async #withDescriptions(runs: readonly StatementRuns[]): Promise<readonly StatementRuns[]> {
    let described = runs.map((r) => this.#windows.withDescription(r));
    const { limit } = this.#describedFrom;
    while (this.#describedFrom.segment > limit && described.some((r) => r.description === null)) {
      this.#describedFrom.segment -= 1;
      await this.#readDescriptions(this.#describedFrom.segment);
      described = runs.map((r) => this.#windows.withDescription(r));
    }
    return described;
  }

  async #readDescriptions(segment: number): Promise<void> {
    try {
      for await (const frame of readFrames(this.#settings.auditDir, { segment })) {
        if (frame.segment !== segment) break;
        this.#windows.add(frame, false);
      }
    } catch (error) {
      this.#warn('a segment of the audit log cannot be read for lineage', { segment, error: String(error) });
    }
  }

  #wakeDeliveries(): void {
    for (const delivery of this.#deliveries.values()) delivery.wake();
  }

  #throwUnlessStopped(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    throw error;
  }
}

/**
 * Returns the position to continue from, normally the cursor. Another audit log is read from its beginning. If the log
 * ends before the cursor, reading continues at its end: its last records, not yet acknowledged, were lost in a crash.
 */
function startPosition(cursor: AuditLogPosition | null, end: AuditLogPosition, warn: Warn): AuditLogPosition {
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
