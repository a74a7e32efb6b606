import { join } from 'node:path';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { SpoolRoom } from '../engine/index.js';
import type { Settings } from './settings.js';

/** Where rows of slow readers go; null where the settings have no room for them. */
export function spoolOf({ dataDir, load }: Settings, log: ServiceLog): SpoolRoom | null {
  if (load.spoolBytes === 0) return null;
  return new SpoolRoom({
    dir: join(dataDir, 'spool'),
    bytes: load.spoolBytes,
    onFault: (error) =>
      log.warn('the disk takes no rows of slow readers: they keep their sessions with the database', {
        error: messageOf(error),
      }),
  });
}
