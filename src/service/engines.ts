import { join } from 'node:path';
import type { ServiceLog } from '../base/log.js';
import { repeat } from '../base/serial.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import {
  AnswerMemory,
  type ConnectionChange,
  type EngineConfig,
  type EngineStatus,
  type GovernedEngine,
  type OpenedEngine,
  openEngine,
  type PostgresConfig,
  type RenewedLogins,
  SpoolRoom,
  type StandbyChange,
  type StandbyConfigs,
  toLoggable,
  withoutLogin,
} from '../engine/index.js';
import {
  type Connector,
  type ConnectorStandbys,
  type Manifest,
  systemUrlVariable,
  urlVariable,
} from '../model/manifest/index.js';
import type { ServedModel } from '../model/served-model.js';
import {
  CommandFailed,
  connectorUrl,
  describeConnectFault,
  hasUrlVariable,
  withoutPassword,
} from './connector-url.js';
import type { TenantKeys } from './keys.js';
import type { ReloadStep } from './reload/reload.js';
import { requireRowSecurityOf } from './row-security.js';
import type { Settings } from './settings.js';
import { FULL_SHARE, partOf } from './share.js';
import { type SystemReads, systemReads } from './system-reads.js';
import { poolSizeFor } from './workers.js';

const CHECK_INTERVAL_MS = 5_000;

/**
 * Checks each engine regularly, and logs once when it stops answering and once when it answers again. Returns a
 * function that stops the checks.
 */
function watchEngines(
  engines: ReadonlyMap<string, EngineStatus>,
  log: ServiceLog,
  intervalMs: number = CHECK_INTERVAL_MS,
): () => void {
  const stops = [...engines].flatMap(([name, engine]) => [
    watch(name, engine, log, intervalMs),
    watchNodes(name, engine, log, intervalMs),
  ]);
  return () => {
    for (const stop of stops) stop();
  };
}

function watch(connector: string, engine: EngineStatus, log: ServiceLog, intervalMs: number): () => void {
  let since: number | null = null;
  return repeat(intervalMs, async (isStopped) => {
    if (!engine.reached) return; // a database that was never reached is reported elsewhere
    const cause = await engine.unhealthyReason();
    // A busy pool says nothing about the database.
    if (isStopped() || cause === 'busy') return;
    if (cause !== null && since === null) {
      since = performance.now();
      log.error('the database does not answer', { connector, cause });
    } else if (cause === null && since !== null) {
      log.warn('the database answers again', {
        connector,
        after_seconds: Math.round((performance.now() - since) / 1_000),
      });
      since = null;
    }
  });
}

/** Like `watchEngines`, for the foreign servers behind a database. */
function watchNodes(
  connector: string,
  { nodes }: EngineStatus,
  log: ServiceLog,
  intervalMs: number,
): () => void {
  return repeat(intervalMs, async (isStopped) => {
    const changes = await nodes.probeAll();
    if (isStopped()) return;
    for (const { server, cause } of changes)
      if (cause === null) log.warn('a server behind the database answers again', { connector, server });
      else log.error('a server behind the database does not answer', { connector, server, cause });
  });
}

/** Additional options of a serving process; see `ServingOptions` of the engine. */
interface ServingEngines {
  readonly spool: SpoolRoom | null;
  readonly memory: AnswerMemory;
  /** Resolves once statements may run on the connector's database. */
  admit(connector: Connector): Promise<void>;
}

/** The engines, system reads and answer memory of a service. */
interface StartedEngines {
  readonly databases: ReadonlyMap<string, OpenedEngine>;
  readonly engines: ReadonlyMap<string, EngineStatus>;
  readonly runners: ReadonlyMap<string, GovernedEngine>;
  readonly defaultConnector: string;
  readonly reads: SystemReads;
  readonly opened: ReadonlyMap<string, OpenEngine>;
  readonly memory: AnswerMemory;
  readonly spool: SpoolRoom | null;
  close(): Promise<void>;
}

/** Opens and monitors the engines of the served model. @throws the errors of `openEngines` */
export async function startEngines(
  model: () => ServedModel,
  keys: TenantKeys,
  settings: Settings,
  log: ServiceLog,
): Promise<StartedEngines> {
  const memory = new AnswerMemory(settings.load.answers);
  const spool = createSpool(settings, log);
  const { manifest } = model();
  const [defaultConnector] = manifest.connectors.keys();
  if (defaultConnector === undefined) throw new StartProblem('the manifest declares no connector');
  const { databases, opened, close } = await openEngines(manifest, settings, log, {
    spool,
    memory,
    admit: (connector) => requireRowSecurityOf(connector, model(), keys, log),
  });
  const runners = new Map([...databases].map(([name, { governed }]) => [name, governed]));
  const engines = new Map([...runners].map(([name, { status }]) => [name, status]));
  const stopWatching = watchEngines(engines, log);
  return {
    databases,
    engines,
    runners,
    defaultConnector,
    reads: systemReads(databases),
    opened,
    memory,
    spool,
    close: async () => {
      stopWatching();
      await close();
    },
  };
}

function createSpool({ dataDir, load }: Settings, log: ServiceLog): SpoolRoom | null {
  if (load.spoolBytes === 0) return null;
  return new SpoolRoom({
    dir: join(dataDir, 'spool'),
    bytes: load.spoolBytes,
    onFault: (error) =>
      log.warn('the disk takes no rows of slow readers: they keep their sessions with the database', {
        error: messageOf(error),
      }),
  });
}

/**
 * Opens the engines of all connectors; if one fails, none stays open. When serving, an unreachable database does not
 * prevent startup.
 *
 * @throws StartProblem, and an engine's Error for the operator
 */
export async function openEngines(
  manifest: Manifest,
  settings: Settings,
  log: ServiceLog,
  serving: ServingEngines | null = null,
): Promise<{
  readonly databases: ReadonlyMap<string, OpenedEngine>;
  readonly opened: ReadonlyMap<string, OpenEngine>;
  readonly close: () => Promise<void>;
}> {
  const databases = new Map<string, OpenedEngine>();
  const opened = new Map<string, OpenEngine>();
  const close = async (): Promise<void> => {
    for (const engine of [...databases.values()].reverse()) await engine.close();
  };
  try {
    for (const connector of manifest.connectors.values()) {
      const config = await engineConfig(connector, settings, serving !== null);
      const engine = await openConnector(connector, config, log, serving);
      databases.set(connector.name, engine);
      opened.set(connector.name, { engine, config });
    }
    return { databases, opened, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openConnector(
  connector: Connector,
  config: EngineConfig,
  log: ServiceLog,
  serving: ServingEngines | null,
): Promise<OpenedEngine> {
  const { name } = connector;
  const admit = async (): Promise<void> => {
    await serving?.admit(connector).catch((error: unknown) => {
      log.error('the connector is not used yet', { connector: name, cause: messageOf(error) });
      throw error;
    });
  };
  let reached = false;
  const engine = await openEngine(config, {
    onUpstreamError: (error, tables) =>
      log.warn('upstream error', {
        connector: name,
        ...toLoggable(error),
        ...(tables.length > 0 && { tables }),
      }),
    onReach: (change) => logReachability(connector, config, reached, change, log),
    onStandby: (change) => logStandby(name, change, log),
    spool: serving?.spool ?? null,
    ...(serving !== null && { memory: serving.memory }),
    serving: serving === null ? null : { admit, systemSilenceMs: SYSTEM_SILENCE_MS },
  }).catch((error: unknown) => {
    if (config.kind === 'pglite' || error instanceof StartProblem) throw error;
    throw new StartProblem(`connector \`${name}\`, ${displayUrl(config)}: ${describeConnectFault(error)}`);
  });
  const { status } = engine.governed;
  const wasUnreachable = !status.reached;
  void status.whenReached.then(() => {
    reached = true;
    if (wasUnreachable)
      log.warn('connector opens sessions: its questions are answered from now on', { connector: name });
    for (const warning of status.warnings) log.warn(warning, { connector: name });
  });
  return engine;
}

const SYSTEM_SILENCE_MS = 30_000;

function logReachability(
  { name }: Connector,
  config: EngineConfig,
  reached: boolean,
  change: ConnectionChange,
  log: ServiceLog,
): void {
  if (change.kind === 'mended') {
    log.info('connector opens sessions again', { connector: name, after_seconds: change.seconds });
    return;
  }
  const fields = { connector: name, cause: describeConnectFault(change.cause) };
  if (reached)
    log.warn('connector opens no more sessions: it goes on with those it has, and tries again', fields);
  else
    log.error('connector opens no session: its questions are refused (E0523) until it does', {
      ...fields,
      url: displayUrl(config),
    });
}

function logStandby(connector: string, { name, fault }: StandbyChange, log: ServiceLog): void {
  if (fault === null) log.info('a standby answers queries', { connector, standby: name });
  else log.warn('a standby does not answer queries', { connector, standby: name, cause: fault });
}

function displayUrl(config: EngineConfig): string {
  return config.kind === 'pglite' || config.url === null
    ? 'a URL that is not known'
    : withoutPassword(config.url);
}

/** Returns this process's share of the connector's pool size. */
export function poolSizeOf(connector: Connector, { poolSize, content }: Settings): number {
  return partOf(poolSizeFor(connector, poolSize), content.share ?? FULL_SHARE);
}

/** @param serves true to tolerate a temporary failure of a URL command: the URL is then null @throws StartProblem */
export async function engineConfig(
  connector: Connector,
  settings: Settings,
  serves = false,
): Promise<EngineConfig> {
  if (connector.kind === 'pglite')
    return {
      kind: 'pglite',
      dataDir: join(settings.dataDir, 'pg', connector.name),
      maxMemory: settings.load.embeddedBytes,
    };
  const name = urlVariable(connector);
  const systemName = systemUrlVariable(connector);
  if (!hasUrlVariable(process.env, name)) {
    throw new StartProblem(
      `connector \`${connector.name}\` takes its URL from ${name} (or the file that ${name}_FILE names, or the command in ${name}_COMMAND), which is not set`,
    );
  }
  const readUrl = (variable: string): Promise<string | null> =>
    connectorUrl(process.env, variable).catch((error: unknown) => {
      if (serves && error instanceof CommandFailed) return null;
      throw error;
    });
  return {
    kind: 'postgres',
    url: await readUrl(name),
    systemUrl: await readUrl(systemName),
    hasSystem: hasUrlVariable(process.env, systemName),
    logins: async () => ({
      url: await connectorUrl(process.env, name),
      systemUrl: await connectorUrl(process.env, systemName),
    }),
    ...(connector.standbys !== null && {
      standbys: await standbyConfigs(connector.standbys, connector, readUrl),
    }),
    poolSize: poolSizeOf(connector, settings),
    systemPoolSize: settings.systemPoolSize,
    poolReserve: settings.poolReserve,
  };
}

/** @throws StartProblem if a variable is not set */
async function standbyConfigs(
  { urlEnvs, maxLagMs }: ConnectorStandbys,
  connector: Connector,
  readUrl: (variable: string) => Promise<string | null>,
): Promise<StandbyConfigs> {
  const unsetVariable = urlEnvs.find((variable) => !hasUrlVariable(process.env, variable));
  if (unsetVariable !== undefined)
    throw new StartProblem(
      `connector \`${connector.name}\` takes the URL of a standby from ${unsetVariable}, which is not set`,
    );
  const servers = urlEnvs.map(async (name) => ({
    name,
    url: await readUrl(name),
    logins: async () => ({ url: await connectorUrl(process.env, name), systemUrl: null }),
  }));
  return { servers: await Promise.all(servers), maxLagMs };
}

/** An engine and the configuration with which it was opened. */
export interface OpenEngine {
  readonly engine: OpenedEngine;
  readonly config: EngineConfig;
}

/**
 * Prepares new credentials for the same database. Changing to another database requires a restart, since open sessions
 * would continue to use the old database.
 */
export function prepareRenewal(name: string, { engine, config }: OpenEngine, next: EngineConfig): ReloadStep {
  const noChange = { now: null, kept: null, apply: () => undefined };
  if (config.kind !== 'postgres' || next.kind !== 'postgres') return noChange;
  if (JSON.stringify(standbyIdentity(config)) !== JSON.stringify(standbyIdentity(next)))
    return { ...noChange, kept: `connector ${name} has other standbys: restart to change them` };
  const isSameDatabase =
    isSameUrl(config.url, next.url, true) &&
    isSameUrl(config.systemUrl, next.systemUrl, config.hasSystem === true);
  if (!isSameDatabase)
    return { ...noChange, kept: `connector ${name} names another database: restart to change it` };
  return {
    now: `connector ${name} by its URL of now`,
    kept: null,
    apply: () => engine.renew(renewedLogins(next)),
  };
}

/** Returns the parts of the standbys' configuration that only a restart can change. */
function standbyIdentity({ standbys }: PostgresConfig): unknown {
  if (standbys === undefined) return null;
  const { servers, maxLagMs } = standbys;
  return {
    maxLagMs,
    servers: servers.map(({ name, url }) => [name, url === null ? null : withoutLogin(url)]),
  };
}

function renewedLogins({ url, systemUrl, standbys }: PostgresConfig): RenewedLogins {
  const urls = (standbys?.servers ?? []).map((s): [string, string | null] => [s.name, s.url]);
  return { url, systemUrl, standbys: new Map(urls) };
}

/** @param mayBeUnknown true if a null `a` means that the URL was not known at startup */
function isSameUrl(a: string | null, b: string | null, mayBeUnknown: boolean): boolean {
  if (a === null || b === null) return a === b || (a === null && mayBeUnknown);
  return withoutLogin(a) === withoutLogin(b);
}
