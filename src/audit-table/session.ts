import { Client } from 'pg';

export type Row = Readonly<Record<string, unknown>>;

/** One connection to the database of the log. */
export interface TableSession {
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Whether the connection stands. */
  readonly open: boolean;
  /** Cuts it at once; whatever was asked is rejected. */
  cut(): void;
  end(): Promise<void>;
}

/** Where the database is, read anew for each connection: a password may have changed. */
export type TableUrl = () => string;

const CONNECT_MS = 5_000;

/** @throws as `pg` does where the database does not answer, or lets nobody in */
export async function connectTable(url: TableUrl, statementMs: number): Promise<TableSession> {
  const client = new Client({
    connectionString: url(),
    application_name: 'osl audit',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    keepAlive: true,
    // Nobody's function stands in for one of Postgres; a commit is on disk when it is answered.
    options: '-c search_path=pg_catalog -c synchronous_commit=on -c client_encoding=UTF8',
  });
  let open = true;
  /** One statement at a time, in the order in which they are asked. */
  let last: Promise<unknown> = Promise.resolve();
  // Whoever asks hears it by the rejection of what was asked.
  client.on('error', () => {
    open = false;
  });
  client.on('end', () => {
    open = false;
  });
  await client.connect();
  return {
    query: (text, values = []) => {
      const asked = last.then(async () => {
        if (!open) throw new Error('the connection to the database is lost');
        return (await client.query<Record<string, unknown>>(text, [...values])).rows;
      });
      last = asked.catch(() => undefined);
      return asked;
    },
    get open() {
      return open;
    },
    cut() {
      open = false;
      socketOf(client)?.destroy();
    },
    async end() {
      open = false;
      await client.end().catch(() => undefined);
    },
  };
}

/** The socket of a client, of which its types do not tell. */
function socketOf(client: Client): { destroy(): void } | null {
  const connection: unknown = Reflect.get(client, 'connection');
  const stream: unknown =
    typeof connection === 'object' && connection !== null ? Reflect.get(connection, 'stream') : null;
  const destroy = typeof stream === 'object' && stream !== null ? Reflect.get(stream, 'destroy') : null;
  return typeof destroy === 'function' ? { destroy: () => void Reflect.apply(destroy, stream, []) } : null;
}
