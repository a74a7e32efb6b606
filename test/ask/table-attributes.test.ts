import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { test } from 'tap';
import { generatedSql, sql } from '../../src/base/sql.js';
import { manifestText } from '../support/model-text.js';
import { engineOfRun } from '../support/service.js';
import { servePg } from '../surfaces/pg/support.js';
import { type Reply, startRest } from '../surfaces/rest/fixture.js';
import { bind, describe, execute, flush, parse, sync } from '../wire/support/bytes.js';
import { Client } from '../wire/support/client.js';

/*
 * Attributes that the policy reads from entities: members of teams, administrators by a column of their profile, and
 * folders below those of a team.
 */

const TABLES = `
create schema work;
create table work.profile (user_id text primary key, admin boolean not null);
create table work.member (user_id text, team_id int, active boolean not null default true);
create table work.below (folder_id int, ancestor_id int);
create table work.folder (id int primary key, team_id int not null);
create table work.document (id int primary key, team_id int, folder_id int, title text not null);
insert into work.profile values ('ann', false), ('bob', false), ('root', true);
insert into work.member (user_id, team_id) values ('ann', 1), ('ann', 2), ('bob', 2), ('bob', 3), ('bob', null);
insert into work.member values ('cleo', 1, false);
insert into work.folder values (10, 1), (11, 2), (12, 3), (13, 3);
insert into work.below values (10, 10), (11, 11), (12, 12), (13, 12), (13, 13), (14, 11), (14, 14);
insert into work.document values (1, 1, 10, 'one'), (2, 2, 11, 'two'), (3, 3, 12, 'three'), (4, null, 14, 'below two');
`;

const MANIFEST = manifestText(
  'work',
  {
    'work.profile': 'user_id text secret, admin bool',
    'work.member': 'user_id text secret, team_id int4 secret, active bool',
    'work.below': 'folder_id int4, ancestor_id int4',
    'work.folder': 'id int4, team_id int4',
    'work.document': 'id int4, team_id int4, folder_id int4, title text not null',
  },
  `entities:
  profile: { source: db.work.profile, primary_key: [user_id], columns: [user_id, admin] }
  member: { source: db.work.member, primary_key: [user_id, team_id], columns: [user_id, team_id, active] }
  below: { source: db.work.below, primary_key: [folder_id, ancestor_id], columns: [folder_id, ancestor_id] }
  folder: { source: db.work.folder, primary_key: [id], columns: [id, team_id] }
  document: { source: db.work.document, primary_key: [id], columns: [id, team_id, folder_id, title] }
`,
);

interface PolicyParts {
  readonly rows: string;
  readonly attributes?: string;
  readonly maxAge?: number;
}

const policyOf = ({ rows, attributes = '', maxAge = 0 }: PolicyParts): string => `version: 1
tenant: work
subjects:
  user:ann: { ceiling: [reader], attributes: { uid: ann } }
  user:bob: { ceiling: [reader], attributes: { uid: bob } }
  user:cleo: { ceiling: [reader], attributes: { uid: cleo } }
  user:root: { ceiling: [reader], attributes: { uid: root } }
  user:lost: { ceiling: [reader] }
  user:all: { ceiling: [reader], attributes: { uid: { any: true } } }
  agent:bot: { ceiling: [reader], attributes: { uid: bob } }
  user:owner: { ceiling: [reader], admin: [TENANT_ADMIN], attributes: { uid: ann } }
attributes:
  teams: { on: member, column: team_id, rows: "user_id = attribute('uid') and active", max_age: ${maxAge} }
  admin: { on: profile, column: admin, rows: user_id = attribute('uid') }
  member: { on: member, rows: user_id = attribute('uid') }
  folders: { on: folder, column: id, rows: team_id = attribute('teams') }
  reachable: { on: below, column: folder_id, rows: ancestor_id = attribute('folders') }
${attributes}
roles:
  reader: { grants: [{ on: document, columns: [id, title], rows: "${rows}" }] }
masks: {}
limits: { query: 100000 }
`;

const NAMES = "  names: { on: document, column: title, rows: 'id > 4' }";
const BY_TEAM = "team_id = attribute('teams')";

const rest = await startRest({
  manifest: MANIFEST,
  policy: policyOf({ rows: BY_TEAM }),
  script: TABLES,
  schema: 'work',
});
const { connect, port } = await servePg(t, rest.test);
t.teardown(() => rest.server.close(1_000));

const { system } = rest.test.engine;
const serve = async (parts: PolicyParts): Promise<void> => {
  writeFileSync(rest.test.policyFile, policyOf(parts));
  await rest.test.open.reload();
};
const IDS = 'select id from document order by id';
const ask = (subject: string, chain?: readonly string[]): Promise<Reply> =>
  rest.ask(subject, { osql: IDS }, chain === undefined ? {} : { chain });
async function idsOf(subject: string, chain?: readonly string[]): Promise<unknown> {
  const reply = await ask(subject, chain);
  const { rows, code } = reply.json();
  return Array.isArray(rows) ? rows.map(({ id }: { id: unknown }) => Number(id)) : code;
}

/** By row filter: what each caller sees. */
const CASES: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  [BY_TEAM]: { ann: [1, 2], bob: [2, 3], cleo: [], root: [], lost: [], all: [1, 2, 3] },
  "team_id = attribute('teams') or true = attribute('admin')": { ann: [1, 2], root: [1, 2, 3, 4], lost: [] },
  "true = attribute('member')": { ann: [1, 2, 3, 4], cleo: [1, 2, 3, 4], root: [], lost: [] },
  "not true = attribute('member')": { ann: [], root: [1, 2, 3, 4], lost: [] },
  "not team_id = attribute('teams')": { ann: [3], bob: [1], cleo: [1, 2, 3, 4], lost: [] },
  "folder_id = attribute('reachable')": { ann: [1, 2, 4], bob: [2, 3, 4], cleo: [], lost: [] },
};

for (const [rows, callers] of Object.entries(CASES))
  test(`rows: ${rows}`, async (t) => {
    await serve({ rows });
    for (const [name, ids] of Object.entries(callers)) t.strictSame(await idsOf(`user:${name}`), ids, name);
  });

test('every subject of a chain must have the value', async (t) => {
  await serve({ rows: BY_TEAM });
  t.strictSame(await idsOf('agent:bot', ['user:ann', 'agent:bot']), [2]);
  t.strictSame(await idsOf('agent:bot', ['user:lost', 'agent:bot']), []);
});

test('a row that is added or removed counts at the next question, in every way to ask', async (t) => {
  await serve({ rows: BY_TEAM });
  const token = await rest.test.token('user:ann');
  const client = await connect('user:ann', token);
  const prepared = { name: 'ids', text: 'select id from document where id > $1 order by id', values: [0] };
  const asked: Readonly<Record<string, () => Promise<unknown>>> = {
    REST: () => idsOf('user:ann'),
    'a simple query': async () => (await client.query(IDS)).rows.map(({ id }) => id),
    'a prepared statement': async () => (await client.query(prepared)).rows.map(({ id }) => id),
  };
  for (let round = 0; round < 3; round++)
    for (const [teams, ids] of [
      ["insert into work.member values ('ann', 3)", [1, 2, 3]],
      ["delete from work.member where user_id = 'ann' and team_id <> 1", [1]],
      ["delete from work.member where user_id = 'ann'", []],
      ["insert into work.member values ('ann', 1), ('ann', 2)", [1, 2]],
    ] as const) {
      await system.script(generatedSql(teams));
      for (const [way, ask] of Object.entries(asked)) t.strictSame(await ask(), ids, `${way}: ${teams}`);
    }
  await client.end();
});

test('values are used again for as long as max_age says, and no longer', async (t) => {
  await serve({ rows: BY_TEAM, maxAge: 1 });
  t.strictSame(await idsOf('user:bob'), [2, 3]);
  const changed = Date.now();
  await system.script(sql`insert into work.member values ('bob', 1)`);
  const seen = [];
  while (Date.now() - changed < 2_000)
    seen.push({ after: Date.now() - changed, ids: await idsOf('user:bob') });
  await system.script(sql`delete from work.member where user_id = 'bob' and team_id = 1`);
  for (const { after, ids } of seen) if (after > 1_000) t.strictSame(ids, [1, 2, 3], `after ${after} ms`);
  t.strictSame(seen[0]?.ids, [2, 3], 'the first one is asked within the second');
});

test('a statement that was prepared with values read before runs with them no longer than max_age says', async (t) => {
  await serve({ rows: BY_TEAM, maxAge: 1 });
  const client = await Client.login(port, 'user:ann', await rest.test.token('user:ann'));
  let [read, began, parsed] = [0, 0, 0];
  do {
    await sleep(1_000); // values that were read before are used no more
    began = performance.now();
    t.strictSame(await idsOf('user:ann'), [1, 2]);
    read = performance.now();
    while (performance.now() - began < 700) await sleep(20);
    await client.ask(sync);
    await client.send(parse('', IDS), describe('S'), flush).until('T');
    parsed = performance.now();
  } while (parsed - began >= 1_000);
  await system.script(sql`update work.member set active = false where user_id = 'ann'`);
  while (performance.now() - read < 1_050) await sleep(20);
  const answer = await client.ask(bind('', '', { values: [] }), execute(), sync);
  await system.script(sql`update work.member set active = true where user_id = 'ann'`);
  t.equal(answer.filter((message) => message.startsWith('D')).length, 0, answer.join());
  client.socket.destroy();
});

test('nothing of what is read shows in an answer, an error or the catalog', async (t) => {
  await serve({ rows: BY_TEAM });
  const of = async (osql: string): Promise<unknown> => (await rest.ask('user:ann', { osql })).json()['code'];
  t.equal(await of('select * from member'), 'E0512');
  t.equal(await of('select * from profile'), 'E0512');
  const { plan } = (await rest.ask('user:ann', { osql: IDS })).json();
  t.equal(plan, undefined);
});

test('values that cannot be read refuse the question, and too many do', async (t) => {
  await serve({ rows: BY_TEAM });
  await system.script(sql`insert into work.member select 'cleo', n from generate_series(10, 10010) n`);
  t.equal(await idsOf('user:cleo'), 'E0511');
  await system.script(sql`delete from work.member where user_id = 'cleo' and team_id > 9`);
  await system.script(sql`alter table work.member rename to gone`);
  const reply = (await ask('user:ann')).json();
  const refused = reply['code'];
  t.notMatch(JSON.stringify(reply), /member|team/, 'names that the caller does not know');
  const client = await connect('user:ann', await rest.test.token('user:ann'));
  t.strictSame(
    (await client.query("set application_name = 'x'")).command,
    'SET',
    'what reads no rows is answered',
  );
  await t.rejects(client.query(IDS));
  await client.end();
  await system.script(sql`alter table work.gone rename to member`);
  t.match(refused, /^E05/);
});

test('nobody gets the error of a reading that somebody else began', async (t) => {
  const attributes = "  names: { on: profile, column: user_id, rows: 'admin', max_age: 60 }";
  await serve({ rows: "title = attribute('names')", attributes });
  const lock = 'begin; lock table work.profile in access exclusive mode; select pg_sleep(7); commit';
  const locked = system.script(generatedSql(lock));
  await sleep(300);
  const first = idsOf('user:ann');
  await sleep(3_000);
  const second = idsOf('user:bob');
  // The embedded engine has one session, so that both wait for the lock to end.
  const isServer = engineOfRun() === 'postgres';
  t.strictSame(await first, isServer ? 'E0510' : [], 'it waits five seconds for a lock');
  t.strictSame(await second, []);
  await locked;
});

test('values are limited by their bytes, too', async (t) => {
  await serve({ rows: "title = attribute('names')", attributes: NAMES });
  await system.script(sql`insert into work.document values (5, null, null, repeat('a', 600000))`);
  t.strictSame(await idsOf('user:ann'), [5], 'half of them');
  await system.script(sql`insert into work.document values (6, null, null, repeat('b', 600000))`);
  t.equal(await idsOf('user:ann'), 'E0511');
  await system.script(sql`delete from work.document where id > 4`);
});

test('the owner of the policy is told which row a member sees', async (t) => {
  await serve({ rows: BY_TEAM });
  const authorization = `Bearer ${await rest.test.token('user:owner', { roles: ['TENANT_ADMIN'] })}`;
  const explained = async (row: string): Promise<unknown> => {
    const body = { chain: ['user:bob'], object: 'document', row: [row] };
    const headers = { authorization, 'content-type': 'application/json' };
    const reply = await rest.send('/osl/access/explain', { method: 'POST', headers, body });
    return reply.json();
  };
  t.match(await explained('2'), { row: { visible: true, shown_by: ['roles.reader.grants[0]'] } });
  t.match(await explained('1'), { row: { visible: false }, grants: [{ lacking: [] }] });
});

/** Faults of a policy, and what its owner is told. */
const FAULTS: Readonly<Record<string, RegExp>> = {
  'x: { on: nothing, column: a, rows: "true" }': /P0102 there is no entity, bridge or facet `nothing`/,
  'x: { on: member, column: nothing, rows: "true" }': /P0103 there is no column of `member` `nothing`/,
  'x: { on: member, column: team_id, rows: "nothing = 1" }': /P0105 column `nothing` is not declared/,
  'x: { on: member, column: team_id, rows: "team_id = attribute(\'x\')" }': /P0110 `x` needs itself/,
  'uid: { on: member, column: user_id, rows: "active" }': /P0110 `uid` is read from `member`/,
  'x: { on: member, column: user_id, rows: "team_id = attribute(\'admin\')" }':
    /P0110 `admin` of `profile` is bool, and `member` compares it with int4/,
};

test('a policy whose attributes cannot be read is refused', async (t) => {
  for (const [attribute, fault] of Object.entries(FAULTS)) {
    writeFileSync(rest.test.policyFile, policyOf({ rows: BY_TEAM, attributes: `  ${attribute}` }));
    await t.rejects(rest.test.open.reload(), { message: fault }, attribute);
  }
  await serve({ rows: BY_TEAM });
});
