import { openSessionOnFirst, type PostgresSession } from '../postgres/index.js';
import { type ControlFault, connectionOptions, controlFault } from './database.js';
import { type ControlPlace, controlUrl } from './url.js';

const CONTROL_CHANNEL = 'osl_control';

export interface SignalListener {
  /**
   * Called for each notification, and with an empty payload when listening starts or restarts, since notifications may
   * have been missed.
   */
  heard(about: string): void;
  /** Called once each time the connection is lost. */
  lost(fault: ControlFault): void;
}

/** A LISTEN connection that reconnects when it is lost. */
export interface SignalSubscription {
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** Interval in ms of the statement that detects dead connections. */
const PULSE_MS = 5_000;

/** Listens until it is closed. Notifications can get lost, so callers must also poll for changes. */
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
  /** Sends a statement every `PULSE_MS`; if one is not answered, the session ends. */
  const pulse = (of: PostgresSession): void => {
    later(() => void of.query('select 1').then(() => pulse(of), ignored), PULSE_MS);
  };
  const connected = async (): Promise<void> => {
    const made = await openSessionOnFirst(controlUrl(place), {
      ...connectionOptions('osl control signals', PULSE_MS),
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
  // The loss is reported by `lost`.
}
