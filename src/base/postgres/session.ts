import type { ClientConfig } from 'pg';
import { PostgresClient } from './client.js';

export type ResultRow = Readonly<Record<string, unknown>>;

export interface SessionOptions extends ClientConfig {
  /** For connecting, and for the answer to each statement, ms: a server that falls silent is given up with its connection. */
  readonly silenceMs: number;
}

/** One connection that is kept. */
export interface PostgresSession {
  /** One statement at a time, in the order in which they are asked. Rejects once the connection is lost. */
  query(text: string, values?: readonly unknown[]): Promise<readonly ResultRow[]>;
  /** True while the connection lasts. */
  readonly open: boolean;
  /** Resolves, with why, once the connection is lost or ended. Never rejects. */
  readonly lost: Promise<Error>;
  /** Calls `heard` with the payload of each notification, empty where it has none. */
  onNotification(heard: (payload: string) => void): void;
  /** Cuts it at once; whatever was asked is rejected. */
  cut(): void;
  end(): Promise<void>;
}

/** @throws as `pg` does where the server does not answer, or lets nobody in */
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
