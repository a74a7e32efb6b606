import type { WireNotice } from '../../../wire/index.js';
import { MESSAGE_LEVELS } from './setting-list.js';
import type { SessionSettings } from './settings.js';

const RANKS: Readonly<Record<WireNotice['severity'], number>> = {
  DEBUG: MESSAGE_LEVELS.indexOf('debug1'),
  LOG: MESSAGE_LEVELS.indexOf('log'),
  NOTICE: MESSAGE_LEVELS.indexOf('notice'),
  WARNING: MESSAGE_LEVELS.indexOf('warning'),
  INFO: MESSAGE_LEVELS.length, // never held back
};

/** Those of `notices` that a client wants to hear, as its `client_min_messages` says. */
export function audible(settings: SessionSettings, notices: readonly WireNotice[]): readonly WireNotice[] {
  if (notices.length === 0) return notices;
  const least = MESSAGE_LEVELS.indexOf(settings.show('client_min_messages').value);
  return notices.filter((n) => RANKS[n.severity] >= least);
}
