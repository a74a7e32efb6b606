import { openSessionOnFirst } from '../../base/postgres/index.js';

const SILENCE_MS = 10_000;

export interface NotificationSubscription {
  /** Resolves while the server answers; rejects once the connection is lost. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Listens on `channel`, which must be a plain identifier, in the database at `url`.
 *
 * @param onPayload called with the payload of each notification
 * @param onLost called once the connection is lost
 * @param name application_name of the connection
 * @throws Error of `pg`, for the operator
 */
export async function listenOn(
  url: string,
  channel: string,
  onPayload: (text: string) => void,
  onLost: () => void,
  name = 'osl index',
): Promise<NotificationSubscription> {
  const session = await openSessionOnFirst(url, { application_name: name, silenceMs: SILENCE_MS });
  void session.lost.then(onLost);
  session.onNotification(onPayload);
  try {
    await session.query(`listen ${channel}`);
  } catch (error) {
    session.cut();
    throw error;
  }
  return {
    check: async () => {
      await session.query('select 1');
    },
    close: () => session.end(),
  };
}
