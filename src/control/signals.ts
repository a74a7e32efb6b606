import { Client } from 'pg';
import { connectionOf } from './database.js';
import { type ControlFault, controlFault } from './fault.js';
import type { ControlPlace } from './url.js';

/** On which `osl_control` says that something changed; the payload says what. */
export const CONTROL_CHANNEL = 'osl_control';

export interface Listener {
  /** Something changed: `about` is the payload, empty once listening began (again), when anything may have. */
  heard(about: string): void;
  /** Nothing is heard any more. Told once for each loss. */
  lost(fault: ControlFault): void;
}

/** A connection that listens, and is opened again when it is lost. */
export interface Listening {
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** A connection on which a firewall or a dead server says nothing is noticed by a statement of no meaning. */
const PULSE_MS = 5_000;

/** Listens until it is closed. Notifications are a hint: whoever must not miss one also looks from time to time. */
export function listenForChanges(place: ControlPlace, listener: Listener): Listening {
  let client: Client | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let pause = FIRST_PAUSE_MS;

  const later = (work: () => void, ms: number): void => {
    timer = setTimeout(work, ms);
    timer.unref();
  };
  const gone = (of: Client, error: unknown): void => {
    if (client !== of) return;
    client = null;
    of.removeAllListeners('notification');
    of.end().catch(() => undefined); // it is broken already
    if (closed) return;
    if (timer !== null) clearTimeout(timer);
    listener.lost(controlFault(error));
    later(open, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  };
  const pulse = (of: Client): void => {
    later(() => {
      of.query('select 1').then(
        () => (client === of ? pulse(of) : undefined),
        (error: unknown) => gone(of, error),
      );
    }, PULSE_MS);
  };
  const open = (): void => {
    void connected().catch((error: unknown) => {
      if (closed) return;
      listener.lost(controlFault(error));
      later(open, pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    });
  };
  const connected = async (): Promise<void> => {
    const made = new Client(connectionOf(place, 'osl control signals', PULSE_MS));
    client = made;
    made.on('error', (error) => gone(made, error));
    made.on('end', () => gone(made, new Error('the connection was closed')));
    made.on('notification', ({ payload }) => listener.heard(payload ?? ''));
    try {
      await made.connect();
      await made.query(`listen ${CONTROL_CHANNEL}`);
    } catch (error) {
      gone(made, error);
      return;
    }
    if (closed) {
      await made.end();
      return;
    }
    pause = FIRST_PAUSE_MS;
    listener.heard('');
    pulse(made);
  };
  open();
  return Object.freeze({
    close: async () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      const open = client;
      client = null;
      await open?.end().catch(() => undefined); // it may be broken
    },
  });
}
