import { InternalError } from 'osl-compiler';
import type { RunningParts } from './parts.js';

/** The time zone that `text` names, as Postgres shows it; null where there is none. @throws QueryError E0510, E0523 */
export function timeZoneNamed(
  parts: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  text: string,
): Promise<string | null> {
  const engine = parts.engines.get(parts.defaultConnector);
  if (engine === undefined) throw new InternalError(`connector ${parts.defaultConnector} is not open`);
  return engine.timeZone(text);
}
