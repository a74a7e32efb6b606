import type { WireNotice } from '../../../wire/index.js';
import { MESSAGE_LEVELS } from './setting-list.js';

const RANKS: Readonly<Record<WireNotice['severity'], number>> = {
  DEBUG: MESSAGE_LEVELS.indexOf('debug1'),
  LOG: MESSAGE_LEVELS.indexOf('log'),
  NOTICE: MESSAGE_LEVELS.indexOf('notice'),
  WARNING: MESSAGE_LEVELS.indexOf('warning'),
  INFO: MESSAGE_LEVELS.length, // never held back
};

/** Those of `notices` that a client wants which has set `client_min_messages` to `level`. */
export function audible(notices: readonly WireNotice[], level: string): readonly WireNotice[] {
  const least = MESSAGE_LEVELS.indexOf(level);
  return notices.filter((n) => RANKS[n.severity] >= least);
}
