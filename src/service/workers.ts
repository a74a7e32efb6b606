import { availableParallelism } from 'node:os';
import { StartProblem } from '../base/start-problem.js';
import { type Connector, type Manifest, urlVariable } from '../model/manifest/index.js';
import { answersOf } from './settings/load.js';
import { MOST_WORKERS, readVariable } from './settings/table.js';
import type { Settings } from './settings.js';
import { sharedOut } from './share.js';

/**
 * How many processes serve. `auto` is as many as there are processors, and one where several could not.
 *
 * @throws StartProblem where the settings ask for more than can be
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

/** Why only one process can serve; null where several can. */
function obstacleTo({ connectors }: Manifest): string | null {
  const embedded = [...connectors.values()].find(({ kind }) => kind === 'pglite');
  if (embedded !== undefined)
    return `connector \`${embedded.name}\` is an embedded database, which lives in one process: use a native Postgres, or one worker`;
  return null;
}

/** What worker `number` of `count` is told: the sessions with each database, requests to models, memory for answers and room for rows of slow readers are shared out. */
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
 * Sessions for questions to one connector, of all processes together: `NAME_POOL_SIZE` if NAME holds its URL, else `usual`.
 *
 * @throws StartProblem
 */
export function sessionsFor(connector: Pick<Connector, 'urlEnv'>, usual: number): number {
  return readVariable(`${urlVariable(connector)}_POOL_SIZE`, 'OSL_POOL_SIZE') ?? usual;
}
