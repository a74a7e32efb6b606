import type { Worker } from 'node:worker_threads';
import { assertNever, type GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { StartProblem } from '../../base/start-problem.js';
import { startThread } from '../../base/threads/thread.js';
import { stackOf } from '../../base/thrown.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { LineageConfig } from './config/load.js';
import { type DatabaseName, type DatasetDescription, datasetsOf } from './datasets.js';
import { PlanRecorder } from './description.js';
import type { EmitterSettings, EmitterStats } from './emitter.js';
import { producerOf } from './openlineage.js';
import type { AuditLogPosition } from './outbox/state.js';

/** Emits the lineage of queries and datasets, for the service. */
export interface Lineage {
  /** Returns the fingerprint of a plan about to run, for its audit records; null on failure. */
  note(plan: GovernedPlan, requestId: string): string | null;
  /** Announces the datasets of the served manifest. Resolves when their events are on disk or a failure is logged. */
  announce(manifest: Manifest): Promise<void>;
  follow(servedManifest: () => Manifest): void;
  /** Returns the latest figures, which may be a second out of date; null before the thread's first report. */
  stats(): (EmitterStats & { readonly restarts: number }) | null;
  /** Stops the thread, by force after `ms` ms; undelivered events stay in the outbox. */
  close(ms: number): Promise<void>;
}

export interface LineageOptions {
  readonly config: LineageConfig;
  readonly tenant: string;
  readonly version: string;
  readonly auditDir: string;
  readonly dir: string;
  readonly end: AuditLogPosition;
  /** The audit log to which plan descriptions are written; null for an ended chain, which gets no new records. */
  readonly audit: AuditLog | null;
  /** True for the one process of a data directory that announces datasets. */
  readonly announcesDatasets: boolean;
  readonly log: ServiceLog;
  /** The URL of a connector's database; null if the database is embedded or its URL is not known. */
  readonly urlOf: (connector: string) => string | null;
  /** Polling interval for the audit log in ms; default 500. */
  readonly pollMs?: number;
}

const POLL_MS = 500;
const START_MS = 20_000;
const ANNOUNCE_MS = 10_000;
/** First pause in ms before a restart; it doubles each time. */
const RESTART_MS = 1_000;
const MAX_RESTART_MS = 60_000;
const FOLLOW_MS = 1_000;

/** Starts the emitter thread. @throws StartProblem if its outbox cannot be opened */
export async function openLineage(options: LineageOptions): Promise<Lineage> {
  const thread = new LineageThread(options);
  try {
    await thread.start();
  } catch (error) {
    await thread.close(0);
    throw error;
  }
  return thread;
}

export function namespaceOf(config: Pick<LineageConfig, 'namespace'>, tenant: string): string {
  return config.namespace ?? `osl-gateway://${tenant}`;
}

class LineageThread implements Lineage {
  readonly #options: LineageOptions;
  readonly #settings: EmitterSettings;
  readonly #recorder: PlanRecorder | null;
  readonly #pendingAnnouncements = new Map<number, (fault: string | null) => void>();
  #worker: Worker | null = null;
  #stats: EmitterStats | null = null;
  #restarts = 0;
  #lastTicket = 0;
  #unconfirmed: Extract<ToThread, { kind: 'announce' }> | null = null;
  #isClosing = false;
  #restartTimer: NodeJS.Timeout | null = null;
  #followTimer: NodeJS.Timeout | null = null;
  #announcedVersion: string | null = null;

  constructor(options: LineageOptions) {
    const { audit, tenant, log, config, auditDir, dir, end, version } = options;
    this.#options = options;
    this.#recorder = audit === null ? null : new PlanRecorder(audit, tenant, log);
    this.#settings = {
      auditDir,
      dir,
      start: end,
      identity: { producer: producerOf(version), namespace: namespaceOf(config, tenant) },
      agent: `osl-gateway/${version}`,
      windowMs: config.windowMs,
      outboxBytes: config.outboxBytes,
      endpoints: config.endpoints,
      pollMs: options.pollMs ?? POLL_MS,
    };
  }

  async start(): Promise<void> {
    const file = new URL('./thread.js', import.meta.url);
    const worker = startThread(file, { maxOldGenerationSizeMb: 512 }, this.#settings);
    this.#worker = worker;
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timeout);
        reject(new StartProblem(`lineage cannot be emitted: ${reason}`));
      };
      const timeout = setTimeout(fail, START_MS, 'its thread does not answer');
      worker.on('message', (message: FromThread) => {
        if (message.kind === 'ready') {
          clearTimeout(timeout);
          resolve();
        } else if (message.kind === 'failed') fail(message.reason);
        else this.#handleMessage(message);
      });
      worker.on('error', (error) => {
        this.#options.log.error('the lineage thread failed', { error: String(error) });
        fail('its thread failed');
      });
      worker.once('exit', () => {
        fail('its thread ended');
        this.#restart();
      });
    });
  }

  note(plan: GovernedPlan, requestId: string): string | null {
    return this.#recorder?.note(plan, requestId) ?? null;
  }

  async announce(manifest: Manifest): Promise<void> {
    if (!this.#options.announcesDatasets) return;
    const { log, tenant, config } = this.#options;
    this.#announcedVersion = manifest.version;
    try {
      const datasets = datasetsOf(manifest, namespaceOf(config, tenant), (c) => this.#databaseOf(c));
      this.#unconfirmed = {
        kind: 'announce',
        ticket: ++this.#lastTicket,
        version: manifest.version,
        datasets,
      };
      const fault = await this.#postAnnouncement(this.#unconfirmed);
      if (fault === null) this.#unconfirmed = null;
      else log.error('a manifest could not be announced', { version: manifest.version, fault });
    } catch (error) {
      const fault = stackOf(error);
      log.error('a manifest could not be announced', { version: manifest.version, fault });
    }
  }

  follow(servedManifest: () => Manifest): void {
    if (!this.#options.announcesDatasets) return;
    this.#followTimer ??= setInterval(() => {
      const manifest = servedManifest();
      if (manifest.version !== this.#announcedVersion) void this.announce(manifest);
    }, FOLLOW_MS).unref();
  }

  stats(): (EmitterStats & { readonly restarts: number }) | null {
    return this.#stats === null ? null : { ...this.#stats, restarts: this.#restarts };
  }

  async close(ms: number): Promise<void> {
    this.#isClosing = true;
    if (this.#restartTimer !== null) clearTimeout(this.#restartTimer);
    if (this.#followTimer !== null) clearInterval(this.#followTimer);
    const worker = this.#worker;
    if (worker === null) return;
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    const timeout = setTimeout(() => void worker.terminate(), ms);
    worker.postMessage({ kind: 'stop' } satisfies ToThread);
    await exited;
    clearTimeout(timeout);
  }

  #postAnnouncement(message: Extract<ToThread, { kind: 'announce' }>): Promise<string | null> {
    return new Promise((resolve) => {
      const timeout = setTimeout(() => settle('the thread does not answer; it is told again'), ANNOUNCE_MS);
      const settle = (fault: string | null): void => {
        clearTimeout(timeout);
        this.#pendingAnnouncements.delete(message.ticket);
        resolve(fault);
      };
      this.#pendingAnnouncements.set(message.ticket, settle);
      this.#worker?.postMessage(message);
    });
  }

  #handleMessage(message: Exclude<FromThread, { kind: 'ready' | 'failed' }>): void {
    switch (message.kind) {
      case 'announced':
        this.#pendingAnnouncements.get(message.ticket)?.(message.fault);
        break;
      case 'warning':
        this.#options.log.warn(message.message, message.fields);
        break;
      case 'stats':
        this.#stats = message.stats;
        break;
      default:
        assertNever(message);
    }
  }

  /** Restarts a thread that has ended unexpectedly; it continues from the outbox. */
  #restart(): void {
    this.#worker = null;
    if (this.#isClosing) return;
    const pause = Math.min(RESTART_MS * 2 ** this.#restarts, MAX_RESTART_MS);
    this.#restarts += 1;
    this.#options.log.error('the lineage thread ended and is started again', { restarts: this.#restarts });
    this.#restartTimer = setTimeout(() => {
      this.#restartTimer = null;
      this.start().then(
        () => {
          if (this.#unconfirmed !== null) this.#worker?.postMessage(this.#unconfirmed);
        },
        (error: unknown) => {
          this.#options.log.error('the lineage thread does not start', { error: String(error) });
          if (this.#worker === null && this.#restartTimer === null) this.#restart(); // the thread was never created
        },
      );
    }, pause).unref();
  }

  #databaseOf(connector: string): DatabaseName {
    const { config, urlOf, tenant } = this.#options;
    const configured = config.connectors.get(connector);
    if (configured !== undefined) return configured;
    const url = urlOf(connector);
    if (url !== null && URL.canParse(url)) {
      const { hostname, port, pathname } = new URL(url);
      const database = decodeURIComponent(pathname.slice(1));
      return {
        namespace: `postgres://${hostname}:${port === '' ? '5432' : port}`,
        database: database === '' ? null : database,
      };
    }
    return { namespace: `${namespaceOf(config, tenant)}/${connector}`, database: null };
  }
}

/** Messages between the service and the emitter thread. */
export type ToThread =
  | {
      readonly kind: 'announce';
      readonly ticket: number;
      readonly version: string;
      readonly datasets: readonly DatasetDescription[];
    }
  | { readonly kind: 'stop' };

export type FromThread =
  | { readonly kind: 'ready' }
  /** The thread cannot start. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The announced events are on disk, or `fault` is the reason why they are not. */
  | { readonly kind: 'announced'; readonly ticket: number; readonly fault: string | null }
  | { readonly kind: 'warning'; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'stats'; readonly stats: EmitterStats };
