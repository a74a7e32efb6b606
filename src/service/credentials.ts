import { type EngineConfig, type OpenedEngine, withoutLogin } from '../engine/index.js';
import type { ReloadStep } from './reload.js';

/** An engine with what it was opened with. */
export interface OpenEngine {
  readonly engine: OpenedEngine;
  readonly config: EngineConfig;
}

/** Takes up other credentials for the same database; for another one the sessions that there are would be of the old. */
export function renewal(name: string, { engine, config }: OpenEngine, next: EngineConfig): ReloadStep {
  const nothing = { now: null, kept: null, take: () => undefined };
  if (config.kind !== 'postgres' || next.kind !== 'postgres') return nothing;
  const same =
    sameDatabase(config.url, next.url, true) &&
    sameDatabase(config.systemUrl, next.systemUrl, config.hasSystem === true);
  if (!same) return { ...nothing, kept: `connector ${name} names another database: restart to change it` };
  return { now: `connector ${name} by its URL of now`, kept: null, take: () => engine.renew(next) };
}

/** @param late null before means that it was not known at the start */
function sameDatabase(a: string | null, b: string | null, late: boolean): boolean {
  if (a === null || b === null) return a === b || (a === null && late);
  return withoutLogin(a) === withoutLogin(b);
}
