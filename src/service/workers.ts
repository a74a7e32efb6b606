import { availableParallelism } from 'node:os';
import { StartProblem } from '../base/start-problem.js';
import { type Connector, type Manifest, urlVariable } from '../model/manifest/index.js';
import { answersOf } from './settings/groups.js';
import { MOST_WORKERS, readVariable } from './settings/table.js';
import type { Settings } from './settings.js';
import { sharedOut } from './share.js';

/**
 * Number of worker processes. `auto`: one per processor, but at most `MOST_WORKERS` and at most one per session of the
 * smallest pool; 1 if the manifest allows only one process.
 *
 * @throws StartProblem if the configured number is impossible
 */
export function workersFor(settings: Settings, manifest: Manifest): number {
  const { workers } = settings;
  if (workers === 1) return 1;
  const obstacle = obstacleTo(manifest);
  const least = Math.min(
    ...[...manifest.connectors.values()].map((one) => sessionsFor(one, settings.poolSize)),
  );
  if (workers === 'auto')
    return obstacle === null ? Math.min(availableParallelism(), least, MOST_WORKERS) : 1;
  if (obstacle !== null) throw new StartProblem(`--workers ${workers}: ${obstacle}`);
  if (workers > least)
    throw new StartProblem(
      `--workers ${workers}: OSL_POOL_SIZE, or what a connector has instead of it (${least}), has not a session for each of them`,
    );
  return workers;
}

/** Returns the reason why there can be only one process, or null if there can be several. */
function obstacleTo({ connectors }: Manifest): string | null {
  const embedded = [...connectors.values()].find(({ kind }) => kind === 'pglite');
  if (embedded !== undefined)
    return `connector \`${embedded.name}\` is an embedded database, which lives in one process: use a native Postgres, or one worker`;
  return null;
}

/** Returns a worker's settings, with its share of sessions, model requests, result cache, answer memory and spool. */
export function shareOf(settings: Settings, number: number, count: number): Settings {
  const share = Object.freeze({ number, count });
  const { content, load, resultCache } = settings;
  return Object.freeze({
    ...settings,
    resultCache: Object.freeze({
      ...resultCache,
      bytes: sharedOut(resultCache.bytes, share),
      entries: Math.max(1, sharedOut(resultCache.entries, share)),
    }),
    content: Object.freeze({ ...content, share }),
    load: Object.freeze({
      ...load,
      spoolBytes: Math.floor(load.spoolBytes / count),
      answers: answersOf(Math.floor(load.answers.bytes / count), load.answers.rowBytes),
    }),
  });
}

/**
 * Number of database sessions for a connector, across all processes: `<name>_POOL_SIZE`, where `<name>` is the variable
 * that holds the connector's URL; `usual` if it is not set.
 *
 * @throws StartProblem if the value is malformed
 */
export function sessionsFor(connector: Pick<Connector, 'urlEnv'>, usual: number): number {
  return readVariable(`${urlVariable(connector)}_POOL_SIZE`, 'OSL_POOL_SIZE') ?? usual;
}
