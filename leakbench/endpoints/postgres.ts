import pg from 'pg';
import {
  type Endpoint,
  type EndpointAnswer,
  type EndpointKind,
  type EndpointSession,
  type LoginChanges,
  NotExpressible,
  type Worlds,
} from '../endpoint.js';
import { run } from '../world.js';

/** A session over the Postgres protocol, which most endpoints speak. */
export async function openPostgres(url: string, login: LoginChanges = {}): Promise<EndpointSession> {
  const at = new URL(url);
  if (login.user !== undefined) at.username = login.user;
  if (login.password !== undefined) at.password = encodeURIComponent(login.password);
  if (login.database !== undefined) at.pathname = `/${login.database}`;
  const client = new pg.Client({
    connectionString: at.href,
    ...(login.options !== undefined && { options: login.options }),
    ...(login.applicationName !== undefined && { application_name: login.applicationName }),
    types: { getTypeParser: () => (value: string | Buffer) => String(value) },
  });
  const notices: string[] = [];
  client.on('notice', (notice) => notices.push(faultText(notice)));
  client.on('error', () => undefined); // the next question fails with it
  try {
    await client.connect();
  } catch (error) {
    return refusing(faultText(error));
  }
  return {
    ask: async (text, values) => {
      notices.length = 0;
      return copies(text) ? copied(client, text) : asked(client, text, values, notices);
    },
    close: () => client.end(),
  };
}

/** A session that could not be opened: every question has the error of its login. */
function refusing(error: string): EndpointSession {
  const answer: EndpointAnswer = { columns: [], rows: [], tag: null, notices: [], error };
  return { ask: async () => answer, close: async () => undefined };
}

async function asked(
  client: pg.Client,
  text: string,
  values: readonly (string | null)[] | undefined,
  notices: readonly string[],
): Promise<EndpointAnswer> {
  try {
    const query = { text, rowMode: 'array' as const, ...(values !== undefined && { values: [...values] }) };
    const result = await client.query<(string | null)[]>(query);
    const results = Array.isArray(result) ? result : [result];
    const last = results.at(-1);
    return {
      columns: results.flatMap((r: pg.QueryArrayResult) => r.fields.map((f) => `${f.name} ${f.dataTypeID}`)),
      rows: results.flatMap((r: pg.QueryArrayResult) => r.rows),
      tag: `${last?.command ?? ''} ${last?.rowCount ?? ''}`,
      notices: [...notices],
      error: null,
    };
  } catch (error) {
    return { columns: [], rows: [], tag: null, notices: [...notices], error: faultText(error) };
  }
}

function copies(text: string): boolean {
  return /^\s*copy\b/i.test(text) && /to\s+stdout/i.test(text);
}

/** Rows of COPY TO STDOUT, one text for each message. */
function copied(client: pg.Client, text: string): Promise<EndpointAnswer> {
  if (/from\s+stdin/i.test(text)) throw new NotExpressible('COPY FROM STDIN is not sent');
  return new Promise((resolve) => {
    const rows: string[][] = [];
    let tag: string | null = null;
    let error: string | null = null;
    const submittable = {
      submit: (connection: { query(text: string): void }) => connection.query(text),
      handleCopyOutResponse: () => undefined,
      handleCopyData: ({ chunk }: { chunk: Buffer }) => rows.push([chunk.toString('latin1')]),
      handleCommandComplete: (message: { text: string }) => {
        tag = message.text;
      },
      handleError: (fault: unknown) => {
        error = faultText(fault);
        resolve({ columns: [], rows, tag, notices: [], error });
      },
      handleReadyForQuery: () => resolve({ columns: [], rows, tag, notices: [], error }),
      handleRowDescription: () => undefined,
      handleDataRow: () => undefined,
      handleEmptyQuery: () => undefined,
    };
    client.query(submittable);
  });
}

/** Everything that an error or a notice says. */
function faultText(fault: unknown): string {
  if (!(fault instanceof Error) && (typeof fault !== 'object' || fault === null)) return String(fault);
  const parts = ['code', 'message', 'detail', 'hint', 'position', 'where', 'table', 'column', 'constraint'];
  return parts.flatMap((part) => (Reflect.get(fault, part) as string | undefined) ?? []).join(' | ');
}

/** Protection by objects of the databases themselves, and the role as which the clerk logs in. */
interface OnServer extends Pick<EndpointKind, 'name' | 'data'> {
  readonly what: string;
  readonly role: string;
  /** Creates the objects in each world; the role exists. */
  readonly script: string;
  /** The startup parameter `options`, such as `-c search_path=shop`. */
  readonly options?: string;
}

/** Endpoint that is the server of the bench itself. The admin is the owner of the databases. */
export function onServer({ name, data, what, role, script, options = '' }: OnServer): EndpointKind {
  const start = async ({ owner }: Worlds): Promise<Endpoint> => {
    for (const url of Object.values(owner)) await run(url, withRole(role, script));
    const trusts = await trustsAnybody(owner.a, role);
    return {
      what,
      others: ['admin'],
      open: async (world, login, caller) => {
        if (caller === 'admin') return openPostgres(owner[world]);
        if (trusts && (login?.user !== undefined || login?.password !== undefined))
          throw new NotExpressible('this server asks nobody for a password');
        const all = `${options} ${login?.options ?? ''}`.trim();
        const more = all === '' ? {} : { options: all };
        return openPostgres(owner[world], { user: role, password: 'clerk', ...login, ...more });
      },
      close: async () => undefined,
    };
  };
  return { name, data, start };
}

async function trustsAnybody(url: string, role: string): Promise<boolean> {
  const session = await openPostgres(url, { user: role, password: 'not the password' });
  const { error } = await session.ask('select 1');
  await session.close();
  return error === null;
}

/** A script that creates a login if it does not exist, and then runs another script. */
export function withRole(role: string, script: string): string {
  return `do $$ begin create role ${role} login password 'clerk'; exception when duplicate_object then null; end $$;
${script}`;
}
