import { Client } from 'pg';
import { onFirstHost } from './hosts.js';

const CONNECT_MS = 10_000;

/** A connection that listens. */
export interface Listening {
  /** Resolves while the server answers over it; rejects once it is lost. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Listens on `channel`, a plain name, of the database at `url`.
 *
 * @param heard is given the text of each notification, empty where it has none
 * @param gone is called once the connection is lost
 * @param name under which the server lists the connection
 * @throws Error of `pg`, for the operator
 */
export async function listenOn(
  url: string,
  channel: string,
  heard: (text: string) => void,
  gone: () => void,
  name = 'osl index',
): Promise<Listening> {
  const client = await onFirstHost(url, (host) => connected(host, name));
  client.on('error', gone);
  client.on('end', gone);
  client.on('notification', ({ payload }) => heard(payload ?? ''));
  await client.query(`listen ${channel}`);
  return {
    check: async () => {
      await client.query('select 1');
    },
    close: () => client.end(),
  };
}

async function connected(url: string, name: string): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
  });
  // Until somebody listens: a connection that fails is told by `connect`.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
