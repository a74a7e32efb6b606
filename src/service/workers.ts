import { availableParallelism } from 'node:os';
import { StartProblem } from '../base/start-problem.js';
import { type Connector, type Manifest, urlVariable } from '../model/manifest/index.js';
import { answerBounds } from './settings/groups.js';
import { MAX_WORKERS, readVariable } from './settings/table.js';
import type { Settings } from './settings.js';
import { partOf } from './share.js';

/**
 * Number of worker processes. `auto`: one per processor, but at most `MAX_WORKERS` and at most one per session of the
 * smallest pool; 1 if the manifest allows only one process.
 *
 * @throws StartProblem if the configured number is impossible
 */
export function workersFor(settings: Settings, manifest: Manifest): number {
  const { workers } = settings;
  if (workers === 1) return 1;
  const reason = singleProcessReason(manifest);
  const smallestPool = Math.min(
    ...[...manifest.connectors.values()].map((connector) => poolSizeFor(connector, settings.poolSize)),
  );
  if (workers === 'auto')
    return reason === null ? Math.min(availableParallelism(), smallestPool, MAX_WORKERS) : 1;
  if (reason !== null) throw new StartProblem(`--workers ${workers}: ${reason}`);
  if (workers > smallestPool)
    throw new StartProblem(
      `--workers ${workers}: each worker needs a database session, and the smallest pool has ${smallestPool} (OSL_POOL_SIZE, or NAME_POOL_SIZE of a connector)`,
    );
  return workers;
}

/** Returns the reason why there can be only one process, or null if there can be several. */
function singleProcessReason({ connectors }: Manifest): string | null {
  const embedded = [...connectors.values()].find(({ kind }) => kind === 'pglite');
  if (embedded !== undefined)
    return `connector \`${embedded.name}\` is an embedded database, which lives in one process: use a native Postgres, or one worker`;
  return null;
}

/** Returns a worker's settings, with its share of sessions, model requests, result cache, answer memory and spool. */
export function workerSettings(settings: Settings, number: number, count: number): Settings {
  const share = Object.freeze({ number, count });
  const { content, load, resultCache } = settings;
  return Object.freeze({
    ...settings,
    resultCache: Object.freeze({
      ...resultCache,
      bytes: partOf(resultCache.bytes, share),
      entries: Math.max(1, partOf(resultCache.entries, share)),
    }),
    content: Object.freeze({ ...content, share }),
    load: Object.freeze({
      ...load,
      spoolBytes: Math.floor(load.spoolBytes / count),
      answers: answerBounds(Math.floor(load.answers.bytes / count), load.answers.rowBytes),
    }),
  });
}

/**
 * Number of database sessions for a connector, across all processes: `<name>_POOL_SIZE`, where `<name>` is the variable
 * that holds the connector's URL; `defaultSize` if it is not set.
 *
 * @throws StartProblem if the value is malformed
 */
export function poolSizeFor(connector: Pick<Connector, 'urlEnv'>, defaultSize: number): number {
  return readVariable(`${urlVariable(connector)}_POOL_SIZE`, 'OSL_POOL_SIZE') ?? defaultSize;
}
