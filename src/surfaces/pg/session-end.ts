import { fatal, type Resting } from '../../../wire/index.js';
import type { SessionParts } from './session-parts.js';

const IDLE = ['idle_session_timeout', '57P05', 'idle-session'] as const;
const IDLE_IN_BLOCK = ['idle_in_transaction_session_timeout', '25P03', 'idle-in-transaction'] as const;

/** How long the session lets its client say nothing, by its own settings; null: for ever. */
export function idleLimit({ settings, state }: SessionParts): Resting | null {
  const [setting, sqlstate, condition] = state.inBlock ? IDLE_IN_BLOCK : IDLE;
  const ms = settings.milliseconds(setting);
  if (ms === 0) return null;
  return { ms, reason: fatal(sqlstate, `terminating connection due to ${condition} timeout`) };
}

/** After Terminate, a lost client or a stop of the server: stops what runs, gives back what is held, records the rest. */
export async function endSession({ running, state, cursors, records }: SessionParts): Promise<void> {
  running.cancel();
  state.isolation.end();
  await cursors.closeAll();
  await records.unrun.record();
}
