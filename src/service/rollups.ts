import { StartProblem } from '../base/start-problem.js';
import { type BuiltRollup, buildRollup } from '../content/rollups/rollups.js';
import { NoSystemCredentials, type OpenedEngine, type SystemEngine } from '../engine/index.js';
import { type Manifest, type RollupFacts, systemUrlVariable } from '../model/manifest/index.js';
import type { SystemReads } from './system-reads.js';

export interface RollupReport {
  readonly rollup: string;
  readonly entity: string;
  /** `changed`: built from another definition; `old`: older than `max_age`. Only `ready` rollups are used. */
  readonly state: 'ready' | 'not built' | 'changed' | 'old';
  readonly builtAt: string | null;
  readonly rows: number | null;
  readonly maxAgeSeconds: number;
}

type Engines = ReadonlyMap<string, OpenedEngine>;

/** Builds the named rollups in turn, or all rollups if `names` is empty. @throws StartProblem, UpstreamFailure */
export async function buildRollups(
  manifest: Manifest,
  engines: Engines,
  names: readonly string[],
  onBuilt: (built: BuiltRollup) => void,
): Promise<void> {
  for (const facts of selectedRollups(manifest, names))
    onBuilt(await withCredentials(manifest, facts, () => buildRollup(systemOf(engines, facts), facts)));
}

/** Returns the status of the named rollups, or of all if `names` is empty. @throws StartProblem, UpstreamFailure */
export async function rollupReports(
  manifest: Manifest,
  { readRollupStates }: Pick<SystemReads, 'readRollupStates'>,
  names: readonly string[],
): Promise<readonly RollupReport[]> {
  const reports: RollupReport[] = [];
  for (const facts of selectedRollups(manifest, names)) {
    const { rollup, connector, fingerprint, maxAgeMs } = facts;
    const states = await withCredentials(manifest, facts, () => readRollupStates(connector));
    if (states === null) throw new StartProblem(`connector \`${connector}\` is not open`);
    const builtState = states.find((s) => s.rollup === rollup.name);
    const isOld = builtState !== undefined && Date.now() - builtState.builtAt > maxAgeMs;
    const state =
      builtState === undefined
        ? 'not built'
        : builtState.fingerprint !== fingerprint
          ? 'changed'
          : isOld
            ? 'old'
            : 'ready';
    reports.push({
      rollup: rollup.name,
      entity: rollup.entity,
      state,
      builtAt: builtState === undefined ? null : new Date(builtState.builtAt).toISOString(),
      rows: builtState?.rows ?? null,
      maxAgeSeconds: maxAgeMs / 1_000,
    });
  }
  return reports;
}

function selectedRollups({ rollups }: Manifest, names: readonly string[]): readonly RollupFacts[] {
  if (rollups.size === 0) throw new StartProblem('the manifest declares no rollups');
  if (names.length === 0) return [...rollups.values()];
  return names.map((name) => {
    const facts = rollups.get(name);
    if (facts !== undefined) return facts;
    throw new StartProblem(
      `the manifest declares no rollup \`${name}\`: there are ${[...rollups.keys()].join(', ')}`,
    );
  });
}

function systemOf(engines: Engines, { connector }: RollupFacts): SystemEngine {
  const engine = engines.get(connector);
  if (engine === undefined) throw new StartProblem(`connector \`${connector}\` is not open`);
  return engine.system;
}

async function withCredentials<T>(
  { connectors }: Manifest,
  { rollup, connector }: RollupFacts,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const declared = connectors.get(connector);
    if (!(error instanceof NoSystemCredentials) || declared === undefined) throw error;
    throw new StartProblem(
      `rollup \`${rollup.name}\` is built by the system role: set ${systemUrlVariable(declared)} to its URL`,
    );
  }
}
