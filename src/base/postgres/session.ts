import type { ClientConfig } from 'pg';
import { PostgresClient } from './client.js';

export type ResultRow = Readonly<Record<string, unknown>>;

export interface SessionOptions extends ClientConfig {
  /** Timeout for connecting and for each statement, ms; a server that does not answer loses its connection. */
  readonly silenceMs: number;
}

/** A single, dedicated connection. */
export interface PostgresSession {
  /** Runs statements one after another. Rejects once the connection is lost. */
  query(text: string, values?: readonly unknown[]): Promise<readonly ResultRow[]>;
  readonly open: boolean;
  /** Resolves with the reason once the connection is lost or closed. Never rejects. */
  readonly lost: Promise<Error>;
  /** Subscribes to notifications; the payload is empty if there is none. */
  onNotification(heard: (payload: string) => void): void;
  /** Destroys the connection; pending statements are rejected. */
  cut(): void;
  end(): Promise<void>;
}

/** @throws as `pg` if the server does not answer, or refuses the login */
export async function openSession({ silenceMs, ...config }: SessionOptions): Promise<PostgresSession> {
  const client = new PostgresClient({ keepAlive: true, connectionTimeoutMillis: silenceMs, ...config });
  let open = true;
  const lost = new Promise<Error>((resolve) => {
    const over = (why: Error): void => {
      open = false;
      resolve(why);
    };
    client.on('error', over);
    client.on('end', () => over(new Error('the connection was closed')));
  });
  await client.connect();
  let last: Promise<unknown> = Promise.resolve();
  const run = async (text: string, values: readonly unknown[]): Promise<readonly ResultRow[]> => {
    if (!open) throw new Error('the connection to the database is lost');
    const late = setTimeout(() => client.cut(new Error(`no answer in ${silenceMs} ms`)), silenceMs);
    try {
      return (await client.query<Record<string, unknown>>(text, [...values])).rows;
    } finally {
      clearTimeout(late);
    }
  };
  return {
    query(text, values = []) {
      const asked = last.then(() => run(text, values));
      last = asked.catch(() => undefined);
      return asked;
    },
    get open() {
      return open;
    },
    lost,
    onNotification: (heard) => void client.on('notification', ({ payload }) => heard(payload ?? '')),
    cut() {
      open = false;
      client.cut();
    },
    async end() {
      open = false;
      await client.end().catch(() => undefined);
    },
  };
}
