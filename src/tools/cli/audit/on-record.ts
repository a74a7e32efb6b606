import { hostname, userInfo } from 'node:os';
import { noteReading } from '../../../../policy/audit/index.js';
import { EXIT, Failure } from '../exit.js';

/**
 * Reading the log is on record: that is noted first, and the server writes it into the log, or the next one at its start.
 *
 * @throws Failure where it cannot be noted
 */
export async function onRecord(
  dir: string,
  command: string,
  filter: Readonly<Record<string, string | number>>,
): Promise<void> {
  const by = `${userInfo().username}@${hostname()}`;
  try {
    await noteReading(dir, { command, by, at: new Date().toISOString(), filter });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure(
      EXIT.failed,
      `error: reading the log is on record, and that cannot be noted in ${dir} (${why}): read a copy that you may write beside`,
    );
  }
}
