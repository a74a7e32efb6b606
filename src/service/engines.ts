import { join } from 'node:path';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import {
  type Engine,
  type EngineConfig,
  openEngine,
  type ReachChange,
  type SpoolRoom,
  wordsOf,
} from '../engine/index.js';
import { type Connector, type Manifest, systemUrlVariable, urlVariable } from '../model/manifest/index.js';
import { connectFault, withoutPassword } from './connect-fault.js';
import { connectorUrl } from './connector-url.js';
import type { OpenEngine } from './credentials.js';
import { sessionsFor } from './settings/pools.js';
import type { Settings } from './settings.js';
import { sharedOut, WHOLE } from './share.js';

/** The engine of every connector; all or none. @throws StartProblem, and an engine's Error for the operator */
export async function openEngines(
  manifest: Manifest,
  settings: Settings,
  log: ServiceLog,
  spool: SpoolRoom | null = null,
): Promise<{
  readonly engines: ReadonlyMap<string, Engine>;
  readonly opened: ReadonlyMap<string, OpenEngine>;
  readonly close: () => Promise<void>;
}> {
  const engines = new Map<string, Engine>();
  const opened = new Map<string, OpenEngine>();
  const close = async (): Promise<void> => {
    for (const engine of [...engines.values()].reverse()) await engine.close();
  };
  try {
    for (const connector of manifest.connectors.values()) {
      const config = await engineConfig(connector, settings);
      const engine = await openConnector(connector, config, log, spool);
      engines.set(connector.name, engine);
      opened.set(connector.name, { engine, config });
    }
    return { engines, opened, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openConnector(
  connector: Connector,
  config: EngineConfig,
  log: ServiceLog,
  spool: SpoolRoom | null,
): Promise<Engine> {
  const engine = await openEngine(config, {
    onUpstreamError: (error, tables) =>
      log.warn('upstream error', {
        connector: connector.name,
        ...wordsOf(error),
        ...(tables.length > 0 && { tables }),
      }),
    onReach: (change) => tellReach(connector, change, log),
    spool,
  }).catch((error: unknown) => {
    if (config.kind === 'pglite') throw error;
    throw new StartProblem(
      `connector \`${connector.name}\`, ${withoutPassword(config.url)}: ${connectFault(error)}`,
    );
  });
  for (const warning of engine.warnings) log.warn(warning, { connector: connector.name });
  return engine;
}

function tellReach({ name }: Connector, change: ReachChange, log: ServiceLog): void {
  if (change.kind === 'mended')
    log.info('connector opens sessions again', { connector: name, after_seconds: change.seconds });
  else
    log.warn('connector opens no more sessions: it goes on with those it has, and tries again', {
      connector: name,
      cause: connectFault(change.cause),
    });
}

/** What this process has of them. */
export function poolSizeOf(connector: Connector, { poolSize, content }: Settings): number {
  return sharedOut(sessionsFor(connector, poolSize), content.share ?? WHOLE);
}

export async function engineConfig(connector: Connector, settings: Settings): Promise<EngineConfig> {
  if (connector.kind === 'pglite')
    return { kind: 'pglite', dataDir: join(settings.dataDir, 'pg', connector.name) };
  const name = urlVariable(connector);
  const url = await connectorUrl(process.env, name);
  if (url === null) {
    throw new StartProblem(
      `connector \`${connector.name}\` takes its URL from ${name} (or the file that ${name}_FILE names, or the command in ${name}_COMMAND), which is not set`,
    );
  }
  return {
    kind: 'postgres',
    url,
    systemUrl: await connectorUrl(process.env, systemUrlVariable(connector)),
    logins: async () => ({
      url: (await connectorUrl(process.env, name)) ?? url,
      systemUrl: await connectorUrl(process.env, systemUrlVariable(connector)),
    }),
    poolSize: poolSizeOf(connector, settings),
    systemPoolSize: settings.systemPoolSize,
    poolReserve: settings.poolReserve,
  };
}
