import { StartProblem } from '../../base/start-problem.js';
import type { Connector } from '../../model/manifest/index.js';
import { urlVariable } from '../../model/manifest/url-variables.js';

type Environment = Readonly<Record<string, string | undefined>>;

const MOST = 1_000;

/**
 * Sessions for questions to one connector, of all processes together: what `NAME_POOL_SIZE` says for the connector whose
 * URL is in NAME, else `usual`.
 *
 * @throws StartProblem
 */
export function sessionsFor(
  connector: Pick<Connector, 'urlEnv'>,
  usual: number,
  env: Environment = process.env,
): number {
  const name = `${urlVariable(connector)}_POOL_SIZE`;
  const text = env[name] ?? '';
  if (text === '') return usual;
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= MOST) return size;
  throw new StartProblem(`${name} must be a whole number from 1 to ${MOST}, not \`${text}\``);
}
