import { unboundedMemory } from './answer-memory.js';
import type { EngineContext, OpenedEngine } from './engine.js';
import { openPglite, type PgliteConfig } from './pglite/engine.js';
import { openPostgres, type PostgresConfig } from './postgres/engine.js';

export type EngineConfig = PgliteConfig | PostgresConfig;

/** Opens the engine of a connector. If that fails, throws an Error whose message is for the operator. */
export async function openEngine(
  config: EngineConfig,
  context: Partial<EngineContext> = {},
): Promise<OpenedEngine> {
  const ignored = (): void => undefined;
  const withDefaults = {
    onUpstreamError: ignored,
    onReach: ignored,
    onStandby: ignored,
    spool: null,
    serving: null,
    memory: unboundedMemory(),
    ...context,
  };
  const opened =
    config.kind === 'pglite'
      ? await openPglite(config, withDefaults)
      : await openPostgres(config, withDefaults);
  return opened.engine;
}
