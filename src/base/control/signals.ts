import { openSession, type PostgresSession } from '../postgres/index.js';
import { connectionOf } from './database.js';
import { type ControlFault, controlFault } from './fault.js';
import type { ControlPlace } from './url.js';

/** On which `osl_control` says that something changed; the payload says what. */
const CONTROL_CHANNEL = 'osl_control';

export interface SignalListener {
  /** Something changed: `about` is the payload, empty once listening began (again), when anything may have. */
  heard(about: string): void;
  /** Nothing is heard any more. Told once for each loss. */
  lost(fault: ControlFault): void;
}

/** A connection that listens, and is opened again when it is lost. */
export interface SignalSubscription {
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** A connection on which a firewall or a dead server says nothing is noticed by a statement of no meaning. */
const PULSE_MS = 5_000;

/** Listens until it is closed. Notifications are a hint: whoever must not miss one also looks from time to time. */
export function listenForChanges(place: ControlPlace, listener: SignalListener): SignalSubscription {
  let session: PostgresSession | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let pause = FIRST_PAUSE_MS;

  const later = (work: () => void, ms: number): void => {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(work, ms);
    timer.unref();
  };
  const lost = (error: unknown): void => {
    if (closed) return;
    listener.lost(controlFault(error));
    later(open, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  };
  /** A statement that is not answered in time ends the session. */
  const pulse = (of: PostgresSession): void => {
    later(() => void of.query('select 1').then(() => pulse(of), ignored), PULSE_MS);
  };
  const connected = async (): Promise<void> => {
    const made = await openSession({
      ...connectionOf(place, 'osl control signals', PULSE_MS),
      silenceMs: PULSE_MS,
    });
    session = made;
    made.onNotification((payload) => listener.heard(payload));
    try {
      await made.query(`listen ${CONTROL_CHANNEL}`);
    } catch (error) {
      made.cut();
      throw error;
    }
    if (closed) return made.end();
    pause = FIRST_PAUSE_MS;
    listener.heard('');
    pulse(made);
    void made.lost.then(lost);
  };
  const open = (): void => void connected().catch(lost);
  open();
  return Object.freeze({
    close: async () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await session?.end();
    },
  });
}

function ignored(): void {
  // The session is lost, which it says itself.
}
