import { once } from 'node:events';
import type pg from 'pg';
import tap, { test } from 'tap';
import { connectTo } from './asked.js';
import { decisionsAfter, psqlScript, startBoth } from './support.js';

/**
 * What drivers, pools and ORMs send to make a session ready and to make it as new again: each answer is that of
 * Postgres, in one message or one by one, in a block and in one that has failed, and so is the session afterwards.
 */

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

/** By who sends it: the messages, each as it goes over the wire. */
const SENT: Readonly<Record<string, readonly string[]>> = {
  'asyncpg, release to the pool': ['SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;'],
  'asyncpg, release in a transaction': [
    'ROLLBACK;\nSELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;',
  ],
  'Npgsql, return to the pool': ['DISCARD ALL'],
  'Npgsql, return to the pool with prepared statements': [
    'SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP',
  ],
  'Npgsql, unprepare all': ['DEALLOCATE ALL'],
  'psycopg 2, reset()': ['ABORT', 'RESET ALL', 'SET SESSION AUTHORIZATION DEFAULT'],
  'psycopg 2, set_session': [
    'SET default_transaction_isolation TO DEFAULT',
    "SET default_transaction_read_only TO 'on'",
    'SET default_transaction_deferrable TO DEFAULT',
  ],
  'psycopg 3, its pool': ['ROLLBACK', '', 'SELECT 1'],
  'SQLAlchemy, isolation level and ping': [
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',
    'show transaction isolation level',
    'show standard_conforming_strings',
    ';',
  ],
  'pgjdbc and HikariCP': [
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE',
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',
    'SHOW TRANSACTION ISOLATION LEVEL',
    "SET SESSION search_path TO 'entities'",
    "SET application_name = 'pool'",
    'SET extra_float_digits = 3',
    '',
  ],
  'node-postgres': ['BEGIN', 'COMMIT', 'ROLLBACK', 'SELECT NOW() IS NULL AS n'],
  'postgres.js': ['begin', 'savepoint s0', 'rollback to s0', 'release s0', 'rollback', 'deallocate all'],
  'pgbouncer, Odyssey, RDS Proxy, Supavisor, Slonik': ['DISCARD ALL'],
  'pgbouncer, other reset queries': ['DEALLOCATE ALL', 'RESET ALL', 'SELECT 1', 'select 1'],
  'pgbouncer, varcache': [
    "SET datestyle='ISO, MDY';SET timezone='UTC';SET standard_conforming_strings='on';SET application_name='a''b'",
  ],
  PgCat: ['RESET ROLE', 'RESET ALL', 'DEALLOCATE ALL', 'ROLLBACK'],
  'Pgpool-II': ['ABORT', 'DISCARD ALL'],
  psqlODBC: [
    "SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation",
    'ROLLBACK',
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',
  ],
  'lib/pq and pgx': [
    ';',
    '-- ping',
    '-- \n;',
    'deallocate all',
    'begin isolation level read committed',
    'rollback',
  ],
  'Rails, configure and reset!': [
    "SET client_min_messages TO 'warning'",
    'SET standard_conforming_strings = on',
    'SET intervalstyle = iso_8601',
    "SET SESSION timezone TO 'UTC'",
    'SHOW TIME ZONE',
    'SHOW max_identifier_length',
    'SET SESSION AUTHORIZATION DEFAULT',
    ';',
    'ROLLBACK',
    'DISCARD ALL',
  ],
  Django: [
    "SELECT set_config('TimeZone', 'UTC', false)",
    "SET TIME ZONE 'UTC'",
    'SET CONSTRAINTS ALL IMMEDIATE',
    'SET CONSTRAINTS ALL DEFERRED',
    'SELECT 1',
  ],
  Prisma: ['DEALLOCATE ALL', 'SET search_path = "entities"', 'SELECT 1', 'ROLLBACK'],
  Sequelize: [
    "SET standard_conforming_strings=on;SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;',
  ],
  'Tableau and Power BI': [
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',
    'BEGIN;declare "SQL_CUR" cursor with hold for select 1;close "SQL_CUR";COMMIT',
    'SELECT current_schema() IS NULL',
    'DISCARD ALL',
  ],
  'Qt, and clients of old': [
    "SET CLIENT_ENCODING TO 'UNICODE'",
    'SET bytea_output TO escape',
    'SET extra_float_digits = 0',
    'RESET bytea_output',
  ],
  'roles, by whatever name': [
    'SET ROLE NONE',
    'SET SESSION ROLE NONE',
    'RESET ROLE',
    'RESET SESSION AUTHORIZATION',
    'SHOW ROLE',
  ],
  'one channel, one cursor, one lock': [
    'UNLISTEN cache',
    'UNLISTEN "Cache"',
    'CLOSE nothing',
    'select pg_catalog.pg_advisory_unlock_all() as done',
    'select pg_advisory_unlock_all(), 1',
    'select pg_advisory_unlock_all() limit 1',
    'DISCARD PLANS',
    'DISCARD TEMPORARY',
  ],
  'DISCARD ALL within a transaction': ['select 1;DISCARD ALL', 'begin;DISCARD ALL', 'rollback'],
};

const IN: Readonly<Record<string, readonly string[]>> = {
  'a session at rest': [],
  'a block': ['begin'],
  'a block that has failed': ['begin', 'select 1/0'],
  'a session with all that can be reset': [
    "set timezone = 'Asia/Tokyo'",
    "set statement_timeout = '9s'",
    'prepare kept as select 2',
    'begin;declare held cursor with hold for select 3;commit',
  ],
};

/** What is left of it all. */
const AFTERWARDS = [
  'rollback',
  'show timezone',
  'show statement_timeout',
  'show default_transaction_isolation',
  'execute kept',
  'fetch held',
  'select count(*) from customer',
  'discard all',
];

interface Session {
  readonly client: pg.Client;
  /** Types and contents of what came since it was looked at last. */
  take(): readonly string[];
}

/** What a client of `pg` has in it, which its types do not tell. */
type Wire = NodeJS.EventEmitter & {
  query(text: string): void;
  parse(message: { text: string; name: string }): void;
  bind(message: object): void;
  describe(message: { type: string; name: string }): void;
  execute(message: object): void;
  sync(): void;
};

function wireOf(client: pg.Client): Wire {
  return (client as unknown as { connection: Wire }).connection;
}

async function open(env: NodeJS.ProcessEnv): Promise<Session> {
  const client = await connectTo(env);
  let heard: string[] = [];
  const wire = wireOf(client);
  for (const event of wire.eventNames())
    if (!['error', 'end'].includes(String(event))) wire.removeAllListeners(event);
  const told = (event: string, shown: unknown): number => heard.push(`${event} ${JSON.stringify(shown)}`);
  wire.on('rowDescription', (m: { fields: { name: string; dataTypeID: number }[] }) =>
    told(
      'columns',
      m.fields.map((f) => [f.name, f.dataTypeID]),
    ),
  );
  wire.on('dataRow', (m: { fields: unknown[] }) => told('row', m.fields));
  wire.on('commandComplete', (m: { text: string }) => told('complete', m.text));
  wire.on('emptyQuery', () => told('empty', null));
  wire.on('noData', () => told('no data', null));
  wire.on('errorMessage', (m: { code: string }) => told('error', m.code));
  wire.on('notice', (m: { code: string }) => told('notice', m.code));
  wire.on('readyForQuery', (m: { status: string }) => told('ready', m.status));
  return {
    client,
    take: () => {
      const taken = heard;
      heard = [];
      return taken;
    },
  };
}

async function simple({ client }: Session, text: string): Promise<void> {
  const ready = once(wireOf(client), 'readyForQuery');
  wireOf(client).query(text);
  await ready;
}

async function extended({ client }: Session, text: string): Promise<void> {
  const wire = wireOf(client);
  const ready = once(wire, 'readyForQuery');
  wire.parse({ text, name: '' });
  wire.bind({});
  wire.describe({ type: 'P', name: '' });
  wire.execute({});
  wire.sync();
  await ready;
}

async function said(session: Session, before: readonly string[], texts: readonly string[], one: boolean) {
  for (const text of before) await simple(session, text);
  session.take();
  const answers: Record<string, readonly string[]> = {};
  for (const [i, text] of texts.entries()) {
    await (one ? extended(session, text) : simple(session, text));
    answers[`${i} ${text}`] = session.take();
  }
  for (const text of AFTERWARDS) {
    await simple(session, text);
    answers[`afterwards ${text}`] = session.take();
  }
  return answers;
}

/** Each statement of a message by itself, as the extended protocol takes it. */
function singly(messages: readonly string[]): readonly string[] {
  return messages.flatMap((message) => {
    const parts = message.split(/;\s*/).filter((part) => part.trim() !== '');
    return parts.length > 1 ? parts : [message];
  });
}

/** What takes something, or wants to be another. */
const REFUSED: readonly (readonly [text: string, sqlstate: string])[] = [
  ['listen cache', '25006'],
  ["notify cache, 'x'", '25006'],
  ['select pg_advisory_lock(1)', '42501'],
  ['select pg_try_advisory_lock(1, 2)', '42501'],
  ['select pg_advisory_xact_lock(1)', '42501'],
  ['select pg_advisory_unlock_all() from customer', '42883'],
  ['set role postgres', '42501'],
  ['set role "user:eu"', '42501'],
  ["set local role 'none '", '42501'],
  ["set session authorization 'user:eu'", '42501'],
  ["select set_config('role', 'postgres', false)", '42501'],
  ["select set_config('session_authorization', 'user:eu', true)", '42501'],
  ['set constraints some_key immediate', '25006'],
  ['do $$ begin execute $x$unlisten *$x$; end $$', '0A000'],
];

// First: it reads the whole log at each statement.
test('what takes something is refused, and who wants to be another is denied', { skip }, async (t) => {
  if (both === null) return;
  const { client } = await open(await both.gateway('user:ann'));
  t.teardown(() => client.end());
  const wire = wireOf(client);
  for (const [text, sqlstate] of REFUSED) {
    const known = (await both.shop.records()).length;
    const [[error]] = await Promise.all([
      once(wire, 'errorMessage'),
      simple({ client, take: () => [] }, text),
    ]);
    t.equal((error as { code: string }).code, sqlstate, text);
    await decisionsAfter(both.shop, known, 1);
    const denied = (): Promise<boolean> =>
      both.shop.records().then((records) => records.slice(known).some((r) => r.decision === 'deny'));
    // Of a statement that ran before the session refused what it asked for, the outcome is what denies.
    if (sqlstate === '42501') while (!(await denied())) await new Promise((done) => setTimeout(done, 10));
    t.equal(await denied(), sqlstate === '42501', `${text} on record`);
  }
});

for (const [place, before] of Object.entries(IN)) {
  test(place, { skip }, async (t) => {
    if (both === null) return;
    const [ours, theirs] = await Promise.all([open(await both.gateway('user:ada')), open(both.direct)]);
    t.teardown(() => Promise.all([ours.client.end(), theirs.client.end()]));
    for (const [who, messages] of Object.entries(SENT)) {
      for (const one of [false, true]) {
        // Of an empty text in a failed block Postgres refuses Bind; here it is answered as what it is.
        const texts = one ? singly(messages).filter((text) => !/^(--.*|[;\s])*$/.test(text)) : messages;
        const [ourAnswers, theirAnswers] = await Promise.all([
          said(ours, before, texts, one),
          said(theirs, before, texts, one),
        ]);
        t.strictSame(ourAnswers, theirAnswers, `${who}, ${one ? 'one by one' : 'as sent'}`);
      }
    }
  });
}

test('READ WRITE is taken by any name, is told as what it is, and writes nothing', { skip }, async (t) => {
  if (both === null) return;
  const script = `set default_transaction_read_only = off; set transaction_read_only to 'no';
    select set_config('default_transaction_read_only', 'off', false);
    begin read write; set transaction_read_only = off; delete from customer; rollback;
    show default_transaction_read_only; show transaction_read_only; set default_transaction_read_only = 'maybe';`;
  const said = await psqlScript(await both.gateway('user:ada'), script);
  t.match(said, /\nBEGIN\n.*\nSET\n.*\nROLLBACK\n.*\non\n.*\non\n/s);
  t.strictSame(said.match(/ERROR: {2}\w+/g), ['ERROR:  25006', 'ERROR:  22023']);
});
