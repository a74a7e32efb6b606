import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { ControlFault, listenForChanges } from '../control/index.js';
import type { Control } from './control.js';

/** What a gateway does about the control database. */
export interface Follower {
  /** Takes up what is to serve now. Rejects where that could not be read, and is tried again then. */
  change(): Promise<void>;
  /** Takes up what was revoked, which stands in the data directory by then. Rejects as `change`. */
  revoked(): Promise<void>;
  /** Nothing was heard for longer than the settings allow: what may be served now, they say. */
  silent(why: string): Promise<void>;
}

export interface Following {
  close(): Promise<void>;
}

/** A notification that was missed is made up for by a look so often, ms. */
const LOOK_MS = 1_000;
/** How often the time since the last look is looked at, ms. */
const CLOCK_MS = 250;

/**
 * Follows the control database: looks at each notification, once a second without one, and says when it has been silent for
 * too long. One look at a time; what comes meanwhile is one more look.
 */
export function followControl(control: Control, follower: Follower, log: ServiceLog): Following {
  let taken = control.seen;
  let silent = !control.heard;
  /** Kinds of trouble that were told since the last look that was answered; the start has told of silence. */
  const told = new Set(silent ? [ControlFault.name] : []);
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;

  const look = async (): Promise<void> => {
    try {
      const seen = await control.look();
      if (told.size > 0) log.warn('the control database answers again');
      told.clear();
      if (seen.revoked !== taken.revoked) {
        await follower.revoked();
        taken = { ...taken, revoked: seen.revoked };
      }
      if (!silent && seen.activation === taken.activation && seen.published === taken.published) return;
      await follower.change();
      taken = seen;
      silent = false;
    } catch (error) {
      const kind = error instanceof Error ? error.name : 'unknown';
      if (!told.has(kind) && !closed)
        log.error('what is to serve could not be read from the control database', {
          cause: messageOf(error),
        });
      told.add(kind);
    }
  };
  const wake = (): void => {
    if (closed) return;
    if (looking !== null) {
      again = true;
      return;
    }
    looking = look().finally(() => {
      looking = null;
      if (!again) return;
      again = false;
      wake();
    });
  };
  const clock = (): void => {
    if (silent || !control.silent) return;
    silent = true;
    const why = control.silence;
    follower.silent(why).catch((error: unknown) => log.error(why, { cause: messageOf(error) }));
  };
  const listening = listenForChanges(control.settings.place, {
    heard: wake,
    lost: (fault: ControlFault) => {
      if (!closed)
        log.warn('changes are looked for once a second, and not heard of', { cause: fault.message });
    },
  });
  const looks = setInterval(wake, LOOK_MS).unref();
  const clocks = setInterval(clock, CLOCK_MS).unref();
  return Object.freeze({
    close: async () => {
      closed = true;
      clearInterval(looks);
      clearInterval(clocks);
      await listening.close();
      await looking;
    },
  });
}
