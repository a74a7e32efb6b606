import type { Engine, UpstreamError } from './engine.js';
import { openPglite, type PgliteConfig } from './pglite/engine.js';
import { openPostgres, type PostgresConfig } from './postgres/engine.js';

export type {
  BoundValue,
  CopyRows,
  CopyTarget,
  Engine,
  ExecuteOptions,
  ExecuteResult,
  GovernedDoor,
  IsolationLevel,
  OutputSetting,
  RightsSetting,
  RowSink,
  Snapshot,
  StatementSettings,
  SystemDoor,
  SystemQueries,
  UpstreamError,
} from './engine.js';
export { UpstreamFailure } from './engine.js';
export type { PgliteConfig } from './pglite/engine.js';
export type { PostgresConfig } from './postgres/engine.js';
export { type Survey, surveyPostgres } from './postgres/survey.js';
export { eachDataRow, textValuesOf } from './protocol/data-row.js';
export { stopError } from './upstream-error.js';
export { quoteIdentifier } from './values.js';

export type EngineConfig = PgliteConfig | PostgresConfig;

export interface EngineHooks {
  /** Hears the upstream's own words about a governed statement; for a log, never for a caller. */
  readonly onUpstreamError?: (error: UpstreamError) => void;
}

/** Opens a connector. Throws an Error, for the operator, that says why it cannot serve. */
export async function openEngine(config: EngineConfig, hooks: EngineHooks = {}): Promise<Engine> {
  const listen = hooks.onUpstreamError ?? ((): void => undefined);
  const opened =
    config.kind === 'pglite' ? await openPglite(config, listen) : await openPostgres(config, listen);
  return opened.engine;
}
