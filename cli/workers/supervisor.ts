import cluster from 'node:cluster';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { InternalError } from 'osl-compiler';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { UsedTokens } from '../../policy/index.js';
import type { ReloadView } from '../../src/ask/operating/process-status.js';
import type { ShadowCommand, ShadowReport, ShadowStart } from '../../src/ask/shadow/shadows.js';
import type { ServiceLog } from '../../src/base/log.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import type { Control } from '../../src/service/control.js';
import { followPolicy } from '../../src/service/follow-control.js';
import { newExchangeKey } from '../../src/service/issuer-keys.js';
import { PolicyUnknown } from '../../src/service/model.js';
import { activationOf, DrainFile } from '../../src/service/process-files.js';
import type { ReloadResult } from '../../src/service/reload/reload.js';
import type { Settings } from '../../src/service/settings.js';
import { workerSettings } from '../../src/service/workers.js';
import { CatalogServer, Catalogs } from '../../src/surfaces/catalog/index.js';
import type { MetricsJson } from '../../src/surfaces/http/telemetry.js';
import { EXIT } from '../exit.js';
import { type OwnJobs, ownJobs } from '../serve/admin.js';
import { refuseConnection } from '../serve/ports.js';
import { catalogOptions } from '../serve/server.js';
import { WorkerChanges } from './changes.js';
import type { ChangeRefusal, Texts } from './messages.js';
import { SharedLimits, SharedSessions, SharedTokens } from './shared.js';
import { type SlotEvents, type WorkerChannel, WorkerSlot } from './slot.js';

/** Reason why the whole server ended. */
export interface ServerEnd {
  readonly exit: number;
  readonly message: string;
}

export type Ports = Pick<Settings, 'httpPort' | 'pgPort' | 'admin'>;

const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url));

/** Keeps `count` workers running on the same ports. */
export class Supervisor {
  readonly over: Promise<ServerEnd>;
  readonly #slots: readonly WorkerSlot[];
  readonly #log: ServiceLog;
  readonly #limits: SharedLimits;
  readonly #sessions: SharedSessions;
  readonly #tokens = new SharedTokens(newExchangeKey(), new UsedTokens());
  readonly #catalogs: Catalogs;
  readonly #catalog: CatalogServer;
  readonly #figures: () => Promise<MetricsJson>;
  #replaced = 0;
  readonly #changes: WorkerChanges;
  readonly #settings: Settings;
  readonly #kept: DrainFile;
  readonly #jobs: OwnJobs;
  readonly #control: Control | null;
  #shadow: ShadowStart | null = null;
  #stopFollowing: () => Promise<void> = async () => undefined;
  #end: (over: ServerEnd) => void = () => undefined;

  /** @param settings with the actual port numbers, because replacement workers must use the same ports */
  constructor(settings: Settings, texts: Texts, count: number, log: ServiceLog, control: Control | null) {
    this.#log = log;
    this.#settings = settings;
    this.#control = control;
    this.#kept = new DrainFile(settings.dataDir);
    this.#changes = new WorkerChanges(texts, () => this.#slots, log);
    this.#sessions = new SharedSessions({
      subject: settings.subjectSessions,
      address: settings.load.addressSessions,
    });
    this.#jobs = ownJobs(settings, log);
    this.#catalogs = new Catalogs(catalogOptions(settings, log));
    this.#catalog = new CatalogServer(this.#catalogs);
    this.#figures = supervisorMetrics(() => this.#standing());
    this.#limits = new SharedLimits(count, (holder) => this.#slots[holder - 1]?.peer ?? null);
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
    const events = this.#events();
    this.#slots = Array.from(
      { length: count },
      (_, i) => new WorkerSlot(i + 1, workerSettings(settings, i + 1, count), events),
    );
  }

  /** Resolves once all workers are serving. @throws Failure of the first worker that cannot start */
  async start(): Promise<void> {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({ exec: WORKER, args: [], serialization: 'advanced' });
    // The base image of the catalog is built in advance, so that the first client need not wait for it. If that fails,
    // the first client gets the error.
    this.#catalogs
      .warm()
      .catch((error: unknown) => this.#log.warn('the catalog is not warm', { error: String(error) }));
    this.#kept.report(this.#log);
    const [first, ...others] = this.#slots;
    if (first === undefined) throw new InternalError('there is no worker');
    // One worker starts first: an error that stops it would stop all of them, and is then reported only once.
    await first.begin();
    await Promise.all(others.map((slot) => slot.begin()));
    this.#tellStanding();
    this.#stopFollowing = followFor(this.#changes, this.#settings, this.#control, this.#log, () =>
      this.#tellStanding(),
    );
  }

  reload(): Promise<ReloadResult | ChangeRefusal> {
    return this.#changes.reload(() => readTexts(this.#settings, this.#control));
  }

  async stop(deadlineMs: number): Promise<void> {
    await this.#stopFollowing();
    await Promise.all(this.#slots.map((slot) => slot.stop(deadlineMs)));
    await this.#jobs.close();
    await this.#catalogs.close();
  }

  kill(): void {
    for (const slot of this.#slots) slot.kill();
  }

  /**
   * Starts or stops draining. Updates the drain file first, so that workers that start in the meantime see the change,
   * then notifies the running workers.
   */
  async #drain(on: boolean): Promise<void> {
    try {
      await this.#kept.setDrained(on);
    } finally {
      await this.#askAll((peer) => peer.ask('drained', { on }));
    }
  }

  async #shadowing(command: ShadowCommand): Promise<(ShadowReport | null)[]> {
    // If two callers start a shadow policy at once, the second gets a report on the one already running.
    if (command.do === 'start' && this.#runningShadow() !== null) return this.#shadowing({ do: 'report' });
    if (command.do !== 'report') this.#shadow = command.do === 'start' ? command.start : null;
    return [...(await this.#askAll((peer) => peer.ask('shadow', command)))];
  }

  #runningShadow(): ShadowStart | null {
    const start = this.#shadow;
    return start !== null && Date.parse(start.until) > Date.now() ? start : null;
  }

  #standing(): WorkerCounts {
    const serving = this.#slots.filter(({ peer }) => peer !== null).length;
    return {
      workers: this.#slots.length,
      serving,
      replaced: this.#replaced,
      engines: this.#catalogs.stats().engines,
    };
  }

  /**
   * Tells all workers whether the server is steady and whether its clock is wrong. The server is not steady, and hence
   * not ready, while the workers of a slot keep ending.
   */
  #tellStanding(): void {
    const steady = !this.#slots.some(({ loops }) => loops);
    const clockWrong = this.#control?.clock.isWrong ?? false;
    void this.#askAll((peer) => peer.ask('standing', { steady, clockWrong }));
  }

  /**
   * Passes a cancel request to the worker that issued its key; false if that worker is not serving or the session has
   * ended.
   */
  async #cancel(worker: number, processId: number, key: Uint8Array): Promise<boolean> {
    const asked = this.#slots[worker - 1]?.peer?.ask('cancelled', { processId, key });
    return (await asked?.catch(() => false)) ?? false;
  }

  /**
   * Sends a request to all serving workers and returns their responses, without those of workers that fail or end
   * meanwhile.
   */
  async #askAll<T>(ask: (peer: WorkerChannel) => Promise<T>): Promise<readonly T[]> {
    const asked = this.#slots.map(({ peer }) =>
      peer === null ? undefined : ask(peer).catch(() => undefined),
    );
    return (await Promise.all(asked)).filter((answer) => answer !== undefined);
  }

  async #reloadView(): Promise<ReloadView> {
    const told = await this.reload();
    if ('now' in told) return { reloaded: true, ...told };
    return { reloaded: false, why: told.message };
  }

  #events(): SlotEvents {
    const log = this.#log;
    return {
      texts: () => this.#changes.texts,
      handlers: (slot, texts) => ({
        ...this.#changes.handlers(slot, texts),
        ...this.#sessions.handlers(slot.number),
        ...this.#tokens.handlers(),
        cancel: ({ worker, processId, key }) => this.#cancel(worker, processId, key),
        sessionsOf: async ({ owner }) =>
          (await this.#askAll((peer) => peer.ask('ownSessions', { owner }))).flat(),
        signal: async (signal) =>
          (await this.#askAll((peer) => peer.ask('signalled', signal))).includes(true),
        gather: async () => {
          const [own, others] = await Promise.all([
            this.#figures(),
            this.#askAll((peer) => peer.ask('figures', null)),
          ]);
          return [own, ...others];
        },
        views: () => this.#askAll((peer) => peer.ask('view', null)),
        histories: (asked) => this.#askAll((peer) => peer.ask('history', asked)),
        slowest: async (asked) => (await this.#askAll((peer) => peer.ask('slowest', asked))).flat(),
        command: async (asked) => (await this.#askAll((peer) => peer.ask('obey', asked))).includes(true),
        drain: ({ on }) => this.#drain(on),
        shadow: (command) => this.#shadowing(command),
        runningShadow: () => this.#runningShadow(),
        reloadAll: () => this.#reloadView(),
        stopAll: () => void process.kill(process.pid, 'SIGTERM'),
        job: ({ job, by }) => (by === null ? this.#jobs.look(job) : this.#jobs.begin(job, by)),
        catalog: (asked) => this.#catalog.answer(slot.number, asked),
        catalogPart: (part) => this.#catalog.addPart(slot.number, part),
        stopCatalog: ({ id }) => this.#catalog.stop(slot.number, id),
        ...this.#limits.handlers(slot.number, () => slot.peer !== null),
        over: ({ why }) => this.#end({ exit: EXIT.auditFailed, message: why }),
      }),
      gone: (slot) => {
        this.#limits.forget(slot.number);
        this.#sessions.forget(slot.number);
        this.#catalog.forget(slot.number);
        void this.#changes.gone(slot);
      },
      ended: ({ number }, why, again) => {
        this.#tellStanding();
        log.error('a worker ended: its connections are gone, and another takes its place', {
          worker: number,
          why,
          again_in_ms: again,
        });
      },
      steady: () => this.#tellStanding(),
      replaced: ({ number, pid }) => {
        this.#replaced += 1;
        this.#tellStanding();
        log.warn('a worker was replaced', { worker: number, pid });
      },
    };
  }
}

export async function portsOf({ host, httpPort, pgPort, admin }: Settings): Promise<Ports> {
  const asked = [
    { port: httpPort, host },
    { port: pgPort, host },
    { port: admin.httpPort, host: admin.host },
    { port: admin.pgPort, host: admin.host },
  ];
  const taken = await Promise.all(
    asked.map(({ port, host }) => (port === null ? null : reservePort(port, host))),
  );
  const [http, pg, adminHttp, adminPg] = await Promise.all(
    taken.map((reserved) => reserved?.release() ?? null),
  );
  return {
    httpPort: http ?? httpPort,
    pgPort: pg ?? pgPort,
    admin: { ...admin, httpPort: adminHttp ?? null, pgPort: adminPg ?? null },
  };
}

/** Listens on the port until it is released, so that two reserved ports are never the same. */
function reservePort(port: number, host: string): Promise<{ release(): Promise<number> }> {
  const server = createServer(refuseConnection);
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      const found = typeof address === 'object' && address !== null ? address.port : port;
      resolve({ release: () => new Promise((released) => server.close(() => released(found))) });
    });
  });
}

export interface WorkerCounts {
  readonly workers: number;
  readonly serving: number;
  readonly replaced: number;
  readonly engines: number;
}

export function supervisorMetrics(read: () => WorkerCounts): () => Promise<MetricsJson> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const gauge = (name: string, help: string, of: keyof WorkerCounts): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect: function collect() {
        this.set(read()[of]);
      },
    });
  };
  gauge('osl_workers', 'Configured number of workers', 'workers');
  gauge('osl_workers_serving', 'Workers that accept requests', 'serving');
  gauge('osl_workers_replaced', 'Workers that died and were replaced since startup', 'replaced');
  gauge('osl_catalog_engines', 'Catalog engines, shared by all workers', 'engines');
  return async () => JSON.stringify(await registry.getMetricsAsJSON());
}

export async function readTexts(
  { manifestFile, policyFile }: Settings,
  control: Control | null,
): Promise<Texts> {
  const manifest = await readManifestText(manifestFile).catch(() => null);
  return { manifest, ...(await policyNow(policyFile, control)) };
}

type PolicyText = Pick<Texts, 'policy' | 'fault' | 'activation' | 'heard'>;

async function policyNow(policyFile: string, control: Control | null): Promise<PolicyText> {
  const activation = activationOf(control);
  const heard = control?.hasAnswered ?? true;
  try {
    const policy = await (control === null ? readManifestText : control.read)(policyFile);
    return { policy, fault: null, activation, heard };
  } catch (error) {
    // If the file cannot be read, the workers read it themselves and report its errors.
    const fault = error instanceof PolicyUnknown ? error.message : null;
    return { policy: null, fault, activation, heard };
  }
}

/**
 * Follows the control database, or watches the policy file, on behalf of all workers. Returns a function that stops
 * following.
 */
function followFor(
  changes: WorkerChanges,
  settings: Settings,
  control: Control | null,
  log: ServiceLog,
  clock: () => void,
): () => Promise<void> {
  const { policyFile } = settings;
  return followPolicy(
    settings,
    control,
    {
      onPolicyFile: () =>
        changes.policy(async (served) => ({ ...served, ...(await policyNow(policyFile, control)) })),
      onChange: async () => {
        await changes.policy(async (served) => {
          await control?.pull();
          // Without an active policy in the control database, the gateway's own policy file is in use, which is read
          // again only on a signal or when the file watcher reports a change.
          return activationOf(control) === null && served.fault === null
            ? served
            : { ...served, ...(await policyNow(policyFile, control)) };
        });
      },
      onRevocations: () => changes.revoked(),
      onSilence: (why) => changes.losePolicy(why),
      onClockChange: clock,
    },
    log,
  );
}
