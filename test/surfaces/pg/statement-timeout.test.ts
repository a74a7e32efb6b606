import pg from 'pg';
import tap, { test } from 'tap';
import { sql } from '../../../src/base/sql.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { articlesWorld } from '../../language/forms/articles.js';
import { startForms } from '../../language/forms/fixture.js';
import { GRAPH_WORLD } from '../../language/forms/graph.js';
import { partOf } from '../../support/part.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService, type TestService } from '../../support/service.js';
import { connectTo } from './asked.js';
import { ENDLESS } from './fuzz/traces.js';
import { psqlScript, servePg, startBoth } from './support.js';

/** `statement_timeout` ends whatever a session runs, in Postgres' own words, however it was set. */

const both = await startBoth();
const embedded = await startTestService({ embedded: true });
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const { gateway } = await servePg(tap, embedded);
const skip = both === null ? 'no native Postgres' : false;

const MESSAGE = /ERROR: {2}57014: canceling statement due to statement timeout/;
/** Of a statement that would run for minutes, and keeps few rows meanwhile. */
const MANY = 'select count(*) from generate_series(1, 40000) a, generate_series(1, 40000) b';

/** What psql says, and how long the whole script took. */
async function timed(env: NodeJS.ProcessEnv, script: string): Promise<{ said: string; ms: number }> {
  const begun = performance.now();
  const said = await psqlScript(env, `\\set VERBOSITY verbose\n${script}`);
  return { said, ms: performance.now() - begun };
}

const SCRIPTS: Readonly<Record<string, string>> = {
  'a question': `set statement_timeout = '300ms'; ${ENDLESS};`,
  'a question, by a number': `set statement_timeout = 300; ${ENDLESS};`,
  'a question, by set_config': `select set_config('statement_timeout', '0.3s', false); ${ENDLESS};`,
  'SET LOCAL': `begin; set local statement_timeout = '300ms'; ${ENDLESS}; rollback; show statement_timeout;`,
  COPY: `set statement_timeout = '300ms'; copy (${ENDLESS}) to stdout;`,
  'a cursor': `begin; declare c cursor for ${ENDLESS}; set statement_timeout = '300ms'; fetch 1 from c; rollback;`,
  'a statement without a table': `set statement_timeout = '300ms'; ${MANY};`,
  'a question of the catalog': `set statement_timeout = '300ms';
    select count(*) from pg_class a, pg_class b, pg_class c, pg_class d;`,
};

for (const [what, script] of Object.entries(SCRIPTS)) {
  test(`native: ${what}`, { skip }, async (t) => {
    if (both === null) return;
    const env = await both.gateway('user:ada');
    const { said } = await timed(env, `${script}\nset statement_timeout = 0; select count(*) from customer;`);
    t.match(said, MESSAGE);
    t.match(said, /\n4\n/, 'and the session goes on');
  });
}

for (const what of partOf('embedded', ['a question', 'SET LOCAL', 'COPY', 'a cursor'] as const, 2)) {
  test(`embedded: ${what}`, async (t) => {
    const { said } = await timed(
      await gateway('user:ada'),
      `${SCRIPTS[what]}\nset statement_timeout = 0; select count(*) from customer;`,
    );
    t.match(said, MESSAGE);
    t.match(said, /\n4\n/, 'another engine has begun');
  });
}

for (const [what, start] of [
  ['a parameter', { statement_timeout: 300 }],
  ['options', { options: '-c statement_timeout=300ms' }],
  ['options, with a space', { options: '--statement-timeout=0.3\\ s' }],
] as const) {
  test(`from the startup packet: ${what}`, { skip }, async (t) => {
    if (both === null) return;
    const env = await both.gateway('user:ada');
    const client = await connectPg({
      port: both.port,
      user: 'user:ada',
      password: env['PGPASSWORD'],
      ...start,
    });
    t.teardown(() => client.end());
    t.same((await client.query('show statement_timeout')).rows, [{ statement_timeout: '300ms' }]);
    await t.rejects(client.query(ENDLESS), {
      code: '57014',
      message: 'canceling statement due to statement timeout',
    });
    await t.rejects(client.query({ text: ENDLESS, values: [], name: 'extended' }), { code: '57014' });
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }]);
  });
}

test('a value that is none is refused at the start', { skip }, async (t) => {
  if (both === null) return;
  const env = { ...(await both.gateway('user:ada')), PGOPTIONS: '-c statement_timeout=soon' };
  await t.rejects(
    psqlScript(env, 'select 1;'),
    /FATAL: {2}invalid value for parameter "statement_timeout": "soon"/,
  );
});

test('the shorter of two limits counts: the server has its own', async (t) => {
  const shop = await startTestService({
    settings: { caps: { ...settingsFrom({}, '/').caps, timeoutMs: 400 } },
  });
  const env = await (await servePg(t, shop)).gateway('user:ada');
  const { said } = await timed(env, `set statement_timeout = '1h'; ${ENDLESS};`);
  t.match(said, /57014: the statement ran longer than 0.4 s and was stopped/);
});

/** While it runs, the embedded engine has no session for anybody else. */
function occupy({ engine }: TestService): Promise<unknown> {
  return engine.system.query(sql`SELECT count(*) FROM generate_series(1, 10000000)`);
}

test('RETRIEVE and TRAVERSE', async (t) => {
  const worlds = [
    [
      articlesWorld(),
      'user:ann',
      "select text from RETRIEVE(facet => 'notes', query => 'river', top_k => 3)",
    ],
    [
      GRAPH_WORLD,
      'user:all',
      "select id, depth from TRAVERSE(anchor => 'node', target => 'node', keys => ('1'), max_hops => 3)",
    ],
  ] as const;
  for (const [options, subject, question] of worlds) {
    const forms = await startForms({ ...options, embedded: true });
    t.teardown(() => forms.close());
    const client = await forms.wire(subject);
    await client.simple("set statement_timeout = '200ms'");
    let free = false;
    const occupied = occupy(forms.test).finally(() => {
      free = true;
    });
    t.match(
      JSON.stringify(await client.simple(question)),
      /57014.*canceling statement due to statement timeout/s,
    );
    t.notOk(free, 'it does not wait for the engine');
    await occupied;
    await client.simple('set statement_timeout = 0');
    t.notMatch(JSON.stringify(await client.simple(question)), /57014/);
  }
});

test('lock_timeout is told to the database', { skip }, async (t) => {
  if (both === null) return;
  const blocker = await connectTo(both.direct);
  t.teardown(() => blocker.end());
  await blocker.query('begin; lock table shop.products in access exclusive mode');
  const env = await both.gateway('user:ada');
  const { said } = await timed(env, `set lock_timeout = '0.2s'; select count(*) from product;`);
  t.match(said, /ERROR: {2}55P03/);
  await blocker.query('rollback');
});

test('a session that rests for too long is ended', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:ada');
  for (const [setting, begin, code] of [
    ['idle_session_timeout', '', '57P05'],
    ['idle_in_transaction_session_timeout', 'begin', '25P03'],
  ] as const) {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: both.port,
      user: 'user:ada',
      password: env['PGPASSWORD'],
      database: 'osl',
    });
    const ended = new Promise((resolve) => client.on('error', resolve)); // the first is what counts
    await client.connect();
    await client.query(`set ${setting} = '150ms'; ${begin}`);
    t.match(await ended, { code, message: /^terminating connection due to idle/ });
  }
});
