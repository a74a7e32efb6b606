import pg from 'pg';

/** What a server says of one statement over the extended protocol. */
export interface Asked {
  /** OIDs of ParameterDescription. */
  readonly parameters: readonly number[];
  /** Values of the rows, as text. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly error: { readonly code: string; readonly message: string; readonly routine: string | null } | null;
}

export interface Asking {
  readonly text: string;
  /** Declared OIDs. */
  readonly types?: readonly number[];
  /** A Buffer is sent in binary format, a string in text format. Without values the statement is only described. */
  readonly values?: readonly (Buffer | string | null)[];
}

/** A connection to whatever `env` names. */
export async function connectTo(env: NodeJS.ProcessEnv): Promise<pg.Client> {
  const { PGHOST: host, PGPORT: port, PGUSER: user, PGPASSWORD: password, PGDATABASE: database } = env;
  const options = env['PGOPTIONS'];
  const client = new pg.Client({
    host,
    port: Number(port),
    user,
    password,
    database,
    ...(options === undefined ? {} : { options }),
  });
  await client.connect();
  return client;
}

/** The part of pg's connection that these tests speak through; its types leave it out. */
interface Wire {
  on(event: 'parameterDescription', hear: (message: { dataTypeIDs: number[] }) => void): void;
  off(event: 'parameterDescription', hear: (message: { dataTypeIDs: number[] }) => void): void;
  parse(query: { text: string; types: readonly number[] }): void;
  describe(message: { type: 'S' }): void;
  bind(config: { values: readonly unknown[] }): void;
  execute(config: { rows?: number }): void;
  sync(): void;
}

/** Parse and Describe of an unnamed statement, and Bind and Execute where there are values, in one series. */
export function asked(client: pg.Client, asking: Asking): Promise<Asked> {
  return new Promise((resolve) => {
    const rows: (string | null)[][] = [];
    let parameters: readonly number[] = [];
    let wire: Wire | null = null;
    const done = (error: Asked['error']): void => {
      wire?.off('parameterDescription', hear);
      resolve({ parameters, rows, error });
    };
    const hear = (message: { dataTypeIDs: number[] }): void => {
      parameters = message.dataTypeIDs;
    };
    const query = {
      submit(connection: unknown) {
        wire = connection as Wire; // what pg gives a query to speak through
        wire.on('parameterDescription', hear);
        wire.parse({ text: asking.text, types: asking.types ?? [] });
        wire.describe({ type: 'S' });
        if (asking.values !== undefined) {
          wire.bind({ values: asking.values });
          wire.execute({});
        }
        wire.sync();
      },
      handleDataRow: (message: { fields: (string | null)[] }) => void rows.push(message.fields),
      // Of a query that failed, pg tells no end.
      handleError: ({ code, message, routine }: { code: string; message: string; routine?: string }) =>
        done({ code, message, routine: routine ?? null }),
      handleReadyForQuery: () => done(null),
      handleRowDescription: () => undefined,
      handleNoData: () => undefined,
      handleCommandComplete: () => undefined,
      handleEmptyQuery: () => undefined,
      handlePortalSuspended: () => undefined,
    };
    client.query(query as unknown as pg.Submittable); // its type asks for what pg does not call
  });
}
