import { setTimeout } from 'node:timers/promises';
import { SignJWT } from 'jose';
import t, { type Test } from 'tap';
import { AuditUnavailable } from '../../../audit/index.js';
import {
  listAt,
  memberAt,
  postQuery,
  postRaw,
  reportOf,
  SURFACES,
  startFrontends,
  WireClient,
} from '../../support/frontends.js';
import * as wire from '../../wire/support/bytes.js';
import { CLERK, leaksIn, openShop, policy } from './shop.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

/** Attacks on the frontends themselves. Numbers are those of the list of attacks; without one they are our own. */

const shop = await openShop();
const fronts = await startFrontends(shop.open);
const { pgPort, httpPort } = fronts;
t.teardown(async () => {
  await fronts.stop();
  await shop.close();
});

const UNRECORDED = new AuditUnavailable('full', 'the disk of the audit log is full');
const MASKED = 'select ssn from customer where id = 1';

/** A session of the clerk's, ended with the test. */
async function session(t: Test, parameters: Record<string, string> = {}): Promise<WireClient> {
  const client = await WireClient.login(pgPort, CLERK.subject, await fronts.token(CLERK), parameters);
  t.teardown(() => client.end());
  return client;
}

/** Whoever did what came before still sees what a clerk sees, and nothing was shown meanwhile. */
async function stillGoverned(t: Test, client: WireClient): Promise<void> {
  t.strictSame(leaksIn(client.takeRaw()), [], 'nothing secret so far');
  const masked = await client.simple(MASKED);
  t.match(masked.outcome, { kind: 'rows', rows: [['[redacted]']] }, 'the session works, and the mask holds');
  const count = await client.extended('select count(*) from customer');
  t.match(count.outcome, { kind: 'rows', rows: [['3']] }, 'the row filter holds');
}

/** One line per message: its type, an error's SQLSTATE, a command's tag. */
function outline(messages: readonly { readonly type: string; readonly body: Buffer }[]): string {
  return messages
    .map(({ type, body }) => {
      if (type === 'E' || type === 'N') return `${type}(${reportOf(body).get('C') ?? ''})`;
      if (type === 'C') return `C(${body.toString('utf8', 0, body.length - 1)})`;
      return type;
    })
    .join(' ');
}

function decisions(): readonly string[] {
  return fronts
    .takeAudit()
    .filter((e) => e.kind === 'decision')
    .map((e) => `${e.action} ${e.decision === 'allow' ? 'allow' : 'refuse'} ${e.code ?? '-'}`);
}

t.test('18. settings: at startup, by SET, by options', async (t) => {
  for (const [name, value] of [
    ['search_path', 'shop'],
    ['options', '-c search_path=shop'],
    ['search_path', 'entities, pg_temp'],
    ['options', '-c search_path=entities,"shop"'],
    ['options', '-c role=postgres -c session_authorization=postgres'],
    ['role', 'postgres'],
    ['session_authorization', 'postgres'],
    ['osl.token', 'x'],
  ] as const) {
    const token = await fronts.token(CLERK);
    fronts.takeAudit();
    const { client, reply } = await WireClient.attempt(pgPort, CLERK.subject, token, { [name]: value });
    t.match(reply.outcome, { kind: 'refused' }, `startup ${name}=${value}`);
    t.equal(decisions().length, 1, 'one decision is recorded');
    client.end();
  }
  const client = await session(t);
  t.match((await client.simple('show search_path')).outcome, { rows: [['entities']] });
  for (const [text, sqlstate] of [
    ['set search_path to shop', '22023'],
    ["set search_path = 'shop, public'", '22023'],
    ['set local search_path to pg_temp', '22023'],
    ['set search_path to entities, information_schema', '22023'],
    ["set search_path = 'entities, public'", '22023'],
    ["set search_path = ''", '22023'],
    ['set role postgres', '42501'],
    ['set session authorization postgres', '42501'],
    ["set transaction_read_only = 'never'", '22023'],
    ["set osl.token = 'x'", '28000'],
    ['set row_security = off', '22023'],
    ['show nothing_of_the_kind', '42704'],
    ["set time zone 'Foo/Bar'", '22023'],
    ["set timezone = 'UTC''; set role postgres; --'", '22023'],
    ["set time zone interval '1 hour''; reset all; --' hour", '22023'],
    ['alter system set work_mem = 1', '25006'],
    ['set constraints everything deferred', '25006'],
  ] as const) {
    fronts.takeAudit();
    for (const how of ['simple', 'extended'] as const) {
      const { outcome } = await client[how](text);
      t.match(outcome, { kind: 'refused', sqlstate }, `${how}: ${text}`);
      t.equal(decisions().length, 1, 'one decision is recorded');
    }
  }
  // Drivers ask for transactions that may write; none may.
  for (const text of [
    'begin read write',
    'set transaction read write',
    'set transaction_read_only = off',
    'set default_transaction_read_only to off',
    'set constraints all deferred',
  ]) {
    t.match((await client.simple(text)).outcome, { kind: 'rows' }, text);
    t.match((await client.simple('show transaction_read_only')).outcome, { rows: [['on']] });
  }
  t.match((await client.simple("insert into customer values ('x')")).outcome, {
    kind: 'refused',
    sqlstate: '25006',
  });
  await client.simple('rollback');
  await stillGoverned(t, client);
});

t.test('20. COPY and cursors show what a question would, or are refused', async (t) => {
  const client = await session(t);
  for (const [text, sqlstate] of [
    ['copy shop.customer to stdout', '42P01'],
    ["copy customer to program 'cat'", '42501'],
    ["copy customer to '/tmp/customer'", '42501'],
    ['copy customer from stdin', '25006'],
    ['copy (select undeclared from customer) to stdout', '42703'],
    ['copy (delete from customer returning ssn) to stdout', '25006'],
    ['declare c cursor for select undeclared from customer', '42703'],
    ['declare c cursor for delete from customer returning ssn', '42601'],
    ['fetch all from c', '34000'],
    ['prepare p as select undeclared from customer', '42703'],
    ['prepare p as delete from customer returning ssn', '25006'],
    ['execute p', '26000'],
  ] as const) {
    fronts.takeAudit();
    t.match((await client.simple(text)).outcome, { kind: 'refused', sqlstate }, text);
    t.equal(decisions().length, 1, 'one decision is recorded');
  }
  await client.simple('begin');
  fronts.takeAudit();
  await client.simple(`declare c cursor for ${MASKED}`);
  t.same(decisions(), ['prepare allow -'], 'the question runs at FETCH');
  t.same((await client.simple('fetch all from c')).outcome, (await client.simple(MASKED)).outcome);
  await client.simple('rollback');
  fronts.takeAudit();
  await client.simple(`prepare p as ${MASKED}`);
  t.same(decisions(), ['prepare allow -'], 'the question runs at EXECUTE');
  t.same((await client.simple('execute p')).outcome, (await client.simple(MASKED)).outcome);
  t.same(decisions(), ['query allow -', 'query allow -']);
  for (const osql of ['prepare p as select ssn from customer', 'execute p']) {
    const { outcome } = await postQuery(httpPort, { osql }, await bearer());
    t.match(outcome, { kind: 'refused', sqlstate: '0A000', code: 'E0511' }, `over REST: ${osql}`);
    t.same(decisions().length, 1);
  }
  await stillGoverned(t, client);
});

t.test('24. RESET, DISCARD, SET ROLE', async (t) => {
  const client = await session(t);
  for (const [text, expected] of [
    ['reset all', 'C(RESET) Z'],
    ['discard all', 'C(DISCARD ALL) Z'],
    ['discard temp', 'C(DISCARD TEMP) Z'],
    ['reset role', 'C(RESET) Z'],
    ['reset session authorization', 'C(RESET) Z'],
    ['set role none', 'C(SET) Z'],
    ['set session authorization default', 'C(SET) Z'],
    ['deallocate all', 'C(DEALLOCATE ALL) Z'],
  ] as const) {
    const messages = await client.exchange(wire.query(text));
    t.equal(outline(messages.filter((m) => m.type !== 'S')), expected, text);
  }
  await stillGoverned(t, client);
});

t.test('25. a second statement', async (t) => {
  const client = await session(t);
  fronts.takeAudit();
  const both = await client.exchange(wire.query('select 1 as a; drop table shop.customer'));
  t.equal(outline(both), 'T D C(SELECT 1) E(25006) Z');
  t.strictSame(decisions(), ['query allow -', 'prepare refuse E0511'], 'each statement has its decision');
  const three = await client.exchange(wire.query(`${MASKED}; select note from customer; select 1`));
  t.equal(
    outline(three),
    'T D N(01000) C(SELECT 1) E(42703) Z',
    'nothing runs after the first that is refused',
  );
  fronts.takeAudit();
  t.match((await client.extended('select 1; drop table shop.customer')).outcome, {
    sqlstate: '42601',
    code: 'E0511',
  });
  t.strictSame(decisions(), ['prepare refuse E0511']);
  const rest = await postQuery(httpPort, { osql: 'select 1; drop table shop.customer' }, await bearer());
  t.match(rest.outcome, { sqlstate: '42601', code: 'E0511' });
  fronts.takeAudit();
  t.match(
    (await client.simple('select 1; selec 2')).outcome,
    { sqlstate: '42601' },
    'one that is no SQL at all',
  );
  t.strictSame(decisions(), ['prepare refuse E0511']);
  await stillGoverned(t, client);
});

t.test('26. policy tightened between Parse and Execute', async (t) => {
  const client = await session(t);
  t.teardown(() => shop.govern(policy()));
  for (const [text, columns, expected] of [
    ['select id, score from customer where id = 1', 'id, name, ssn, region', 'E0512'],
    ['select id, name from customer where id = 1', 'id, name, ssn, region', null],
    ['select * from customer where id = 1', 'id, name, ssn, region', 'any'],
    ['select ssn from customer where id = 1', 'id, name, region', 'E0512'],
  ] as const) {
    await shop.govern(policy());
    const before = await client.exchange(wire.parse('p', text), wire.describe('S', 'p'), wire.sync);
    t.match(outline(before), /^1 t T Z$/, text);
    t.equal(outline(await client.exchange(wire.query(`prepare named as ${text}`))), 'C(PREPARE) Z');
    await shop.govern(policy(columns));
    fronts.takeAudit();
    const after = await client.exchange(
      wire.bind('', 'p'),
      wire.describe('P'),
      wire.execute(),
      wire.close('S', 'p'),
      wire.sync,
    );
    const { outcome } = client.reply(after);
    if (expected === null) t.match(outcome, { kind: 'rows', rows: [['1', 'Ada']] });
    else if (expected === 'any')
      t.match(
        outcome,
        { kind: 'refused', code: 'E1001', sqlstate: '0A000' },
        'other columns than were described',
      );
    else t.match(outcome, { kind: 'refused', code: expected }, 'decided anew when it runs');
    t.equal(decisions().length, 1);
    const executed = (await client.simple('execute named')).outcome;
    t.equal(executed.kind, outcome.kind, 'EXECUTE likewise');
    if (executed.kind === 'refused') t.match(outcome, { code: executed.code, sqlstate: executed.sqlstate });
    t.equal(decisions().length, 1);
    await client.exchange(wire.query('deallocate named'));
    await client.exchange(wire.close('S', 'p'), wire.sync);
  }
  await shop.govern(policy().replaceAll('ceiling: [clerk]', 'ceiling: []'));
  t.match((await client.simple('select id from customer')).outcome, { code: 'E2102' }, 'a ceiling that fell');
  await shop.govern(policy());
  await stillGoverned(t, client);
});

t.test('27. NUL in a text', async (t) => {
  const client = await session(t);
  t.match((await client.simple('select 1\0drop table shop.customer')).outcome, { kind: 'refused' });
  t.match((await client.extended('select 1\0drop')).outcome, { kind: 'refused' });
  const rest = await postQuery(httpPort, { osql: 'select 1\0drop table shop.customer' }, await bearer());
  t.match(rest.outcome, { kind: 'refused', code: 'E0511' });
  await stillGoverned(t, client);
});

t.test('28. Bind that lies', async (t) => {
  const client = await session(t);
  const text = (...parts: (Buffer | string)[]) => wire.message('B', wire.text(''), wire.text(''), ...parts);
  const { int16, int32 } = wire;
  const statement = wire.parse('', 'select id from customer where id = $1', [23]);
  for (const [name, bind, sqlstate] of [
    ['a value of length -2', text(int16(0), int16(1), int32(-2), int16(0)), '08P01'],
    ['65,535 values', text(int16(0), int16(0xffff), int16(0)), '08P01'],
    ['65,535 formats', text(int16(0xffff), int16(1), int32(1), '1', int16(0)), '08P01'],
    ['a length beyond the message', text(int16(0), int16(1), int32(0x7fffffff), '1', int16(0)), '08P01'],
    ['no value', text(int16(0), int16(0), int16(0)), '08P01'],
    ['two values', text(int16(0), int16(2), int32(1), '1', int32(1), '2', int16(0)), '08P01'],
    ['format 7', text(int16(1), int16(7), int16(1), int32(1), '1', int16(0)), '22023'],
    ['a result format 7', text(int16(0), int16(1), int32(1), '1', int16(1), int16(7)), '22023'],
    ['bytes after the end', text(int16(0), int16(1), int32(1), '1', int16(0), 'rest'), '08P01'],
    ['three bytes as a binary int4', text(int16(1), int16(1), int16(1), int32(3), 'abc', int16(0)), '22P03'],
    ['five bytes as a binary int4', text(int16(1), int16(1), int16(1), int32(5), 'abcde', int16(0)), '22P03'],
    ['text that is not a number', text(int16(0), int16(1), int32(1), 'x', int16(0)), '22P02'],
    ['text that is no UTF-8', text(int16(0), int16(1), int32(1), Buffer.from([0xff]), int16(0)), '22021'],
    ['a NUL in text', text(int16(0), int16(1), int32(2), Buffer.from([0x31, 0]), int16(0)), '22021'],
  ] as const) {
    const reply = client.reply(await client.exchange(statement, bind, wire.execute(), wire.sync));
    t.match(reply.outcome, { kind: 'refused', sqlstate }, name);
    t.strictSame(leaksIn(reply.raw), []);
  }
  const torn = await WireClient.login(pgPort, CLERK.subject, await fronts.token(CLERK));
  torn.send(Buffer.from([0x42, 0xff, 0xff, 0xff, 0xff, 0, 0]));
  t.match(outline(await torn.messagesUntil('Z')), /^E\(08P01\)$/, 'a wrapping length ends the session');
  t.ok(torn.closed);
  await stillGoverned(t, client);
});

t.test('values that guess, and values of odd types', async (t) => {
  const client = await session(t);
  const asked = async (
    text: string,
    values: (string | Buffer | null)[],
    types: number[] = [],
    formats: number[] = [],
  ) => {
    const { outcome } = await client.extended(text, { values, formats }, types);
    return outcome.kind === 'rows' ? outcome.rows : `${outcome.code} ${outcome.sqlstate}`;
  };
  const int4 = (n: number) => wire.int32(n);
  for (const [text, right, wrong, types] of [
    ['select id from customer where ssn = $1', 'SECRET-SSN-1', 'SECRET-SSN-9', []],
    ['select id from customer where ssn like $1', 'SECRET%', 'TERCES%', []],
    ['select id from customer where 1/(amt - $1) < 5', '770077007', '770077008', [23]],
    ['select id from customer where 1/(amt - $1::int4) < 5', '770077007', '770077008', []],
    ['select id from customer where salary = $1', '770077010', '770077011', [23]],
    ['select id from customer where salary = any ($1)', '{770077010}', '{770077011}', []],
    ['select id from customer where amt > 100 and name ~ $1', '^S', '^T', []],
    ['select id from customer where region = $1', 'us', 'mars', []],
    ['select id from customer where id = $1', '880088055', '880088077', [20]],
    ['select case when ssn = $1 then 1/(id-id) else 1 end from customer', 'SECRET-SSN-1', 'x', []],
    ['select id from customer where ssn = $1', 'SECRET-SSN-1', 'SECRET-SSN-9', [2205]],
    ['select id from customer where ssn = $1', 'SECRET-SSN-1', 'SECRET-SSN-9', [705]],
    ['select id from customer where ssn = $1', 'SECRET-SSN-1', 'SECRET-SSN-9', [4294967295]],
  ] as const) {
    const [first, second] = [await asked(text, [right], [...types]), await asked(text, [wrong], [...types])];
    t.strictSame(second, first, `${text} [${types}]`);
  }
  t.strictSame(
    await asked('select id from customer where amt - $1 = 11', [int4(-1)], [23], [1]),
    [['1']],
    'minus a negative is no comment',
  );
  t.strictSame(await asked('select id from customer where amt -$1 = 11', ['-1'], [23]), [['1']]);
  t.strictSame(await asked('select id from customer limit $1', ['-1'], [20]), 'E0511 2201W');
  t.strictSame(await asked('select id from customer order by id limit $1', [null], [20]), [
    ['1'],
    ['2'],
    ['3'],
  ]);
  t.strictSame(await asked('select id from customer limit $1', ['x']), 'E0511 22P02');
  t.strictSame(await asked('select $1', ['x']), [['x']]);
  t.strictSame(
    await asked('select id from customer order by $1, id', ['ssn']),
    [['1'], ['2'], ['3']],
    'a value is not a column',
  );
  t.strictSame(await asked('select id from customer where id = $2', ['1', '2'], [23, 23]), [['2']]);
  t.strictSame(await asked('select id from customer where id = $65535', ['1']), 'E0511 42P18');
  const binary = await client.extended('select id, amt, salary, ssn, phone from customer order by id', {
    results: [1],
  });
  t.match(binary.outcome, { kind: 'rows' });
  t.strictSame(leaksIn(binary.raw), [], 'binary results are masked as well');

  const post = (osql: string, ...parameters: readonly unknown[]) =>
    bearer().then((h) => postQuery(httpPort, { osql, parameters }, h));
  for (const [right, wrong] of [['SECRET-SSN-1', 'SECRET-SSN-9']] as const) {
    const text = 'select id from customer where ssn = $1';
    t.strictSame((await post(text, wrong)).outcome, (await post(text, right)).outcome);
  }
  t.match((await post('select id from customer where id = $1', 2)).outcome, { rows: [['2']] });
  t.match((await post('select id from customer limit $1', -1)).outcome, { code: 'E0511', sqlstate: '2201W' });
  t.match((await post('select id from customer where id = $1', { toString: 1 })).outcome, { code: 'E0511' });
  t.match((await post('select id from customer where id = $1', [1])).outcome, { code: 'E0511' });
  const huge = '{"osql": "select id from customer where id = $1", "parameters": [1e400]}';
  t.match((await postQuery(httpPort, huge, await bearer())).outcome, { code: 'E0511' });
  t.match((await post('select id from customer where id = $1')).outcome, {
    code: 'E0511',
    sqlstate: '08P01',
  });
  await stillGoverned(t, client);
});

t.test('29. encryption asked for and startup sent in one segment', async (t) => {
  const client = await WireClient.open(pgPort);
  client.send(
    wire.sslRequest,
    wire.startup({ user: CLERK.subject, database: 'osl' }),
    wire.password(await fronts.token(CLERK)),
  );
  const messages = await client.messagesUntil('Z');
  t.notOk(
    messages.some((m) => m.type === 'Z'),
    'no session comes of it',
  );
  t.ok(client.closed);
});

t.test('30. cancelling what is not yours', async (t) => {
  const client = await session(t);
  const slow = client.extended(
    `select count(*) from customer a where ${'name || '.repeat(50)} name <> '' limit 1`,
  );
  for (let i = 0; i < 1_000; i++) {
    const other = await WireClient.open(pgPort);
    other.send(wire.cancelRequest(i, Buffer.from([0, 0, 0, i])));
    await other.messagesUntil('Z');
    t.equal(other.takeRaw().length, 0);
    other.end();
  }
  t.match((await slow).outcome, { kind: 'rows', rows: [['3']] });
  await stillGoverned(t, client);
});

t.test('31. what one session leaves behind for another', async (t) => {
  const [a, b] = [await session(t), await session(t)];
  await a.simple("set application_name = 'SECRET-APPLICATION'");
  await a.exchange(wire.parse('mine', MASKED), wire.sync);
  await a.simple('begin');
  await a.simple('savepoint s');
  await a.simple('create temp table t as select 1');
  t.match((await b.simple('show application_name')).outcome, { rows: [['']] });
  const stolen = await b.exchange(wire.bind('', 'mine'), wire.execute(), wire.sync);
  t.equal(outline(stolen), 'E(26000) Z');
  t.match((await b.simple('select * from t')).outcome, { code: 'E0512' });
  t.match((await b.simple('rollback to s')).outcome, { sqlstate: '25P01' });
  await stillGoverned(t, b);
});

t.test('32. function calls, replication, unknown messages', async (t) => {
  const client = await session(t);
  fronts.takeAudit();
  const call = wire.message('F', wire.int32(1598), wire.int16(0), wire.int16(0), wire.int16(0));
  t.equal(outline(await client.exchange(call)), 'E(0A000) Z');
  await stillGoverned(t, client);
  for (const replication of ['true', 'database', 'on']) {
    const { client: replica, reply } = await WireClient.attempt(
      pgPort,
      CLERK.subject,
      await fronts.token(CLERK),
      { replication },
    );
    if (reply.outcome.kind === 'rows') {
      const identified = await replica.simple('IDENTIFY_SYSTEM');
      t.match(
        identified.outcome,
        { kind: 'refused' },
        `replication=${replication}: no command of it is known`,
      );
      t.strictSame(leaksIn(identified.raw), []);
    } else t.match(reply.outcome, { kind: 'refused' }, `replication=${replication} is refused`);
    replica.end();
  }
  const { client: other, reply } = await WireClient.attempt(
    pgPort,
    CLERK.subject,
    await fronts.token(CLERK),
    { database: 'postgres' },
  );
  t.match(reply.outcome, { kind: 'refused', sqlstate: '3D000' }, 'there is one database');
  other.end();
  const odd = await session(t);
  odd.send(wire.message('!', 'x'));
  t.match(outline(await odd.messagesUntil('Z')), /^E\(08P01\)/);
});

t.test('33. tokens: another user, looped or widened chains, the end of a session', async (t) => {
  const token = await fronts.token(CLERK);
  const login = async (user: string, password: string) => {
    const { client, reply } = await WireClient.attempt(pgPort, user, password);
    client.end();
    return reply.outcome.kind === 'rows' ? 'in' : reply.outcome.sqlstate;
  };
  const rest = async (password: string) => {
    const { outcome } = await postQuery(
      httpPort,
      { osql: 'select 1' },
      { authorization: `Bearer ${password}` },
    );
    return outcome.kind === 'rows' ? 'in' : outcome.code;
  };
  t.equal(await login(CLERK.subject, token), 'in');
  t.equal(await login('user:auditor', token), '28000', 'a token of somebody else');
  t.equal(await login('', token), '28000');
  t.equal(await login(CLERK.subject, ''), '28P01');
  const [head, body, mac] = token.split('.');
  const claims = (over: object) =>
    Buffer.from(
      JSON.stringify({ ...JSON.parse(Buffer.from(body ?? '', 'base64url').toString()), ...over }),
    ).toString('base64url');
  for (const [name, forged] of [
    ['edited roles', `${head}.${claims({ acl_roles: ['auditor'] })}.${mac}`],
    [
      'no algorithm',
      `${Buffer.from('{"alg":"none","typ":"service-actor+jwt"}').toString('base64url')}.${body}.`,
    ],
    ['no signature', `${head}.${body}.`],
    ['a signature too long', `${token}AAAA`],
    ['two dots more', `${token}..`],
  ] as const) {
    t.equal(await login(CLERK.subject, forged), '28000', `wire: ${name}`);
    t.equal(await rest(forged), 'E3001', `REST: ${name}`);
  }
  const signed = (chain: readonly string[], over: object = {}) =>
    new SignJWT({
      version: 2,
      tenant_id: 'demo',
      chain: [...chain],
      sub: chain.at(-1) ?? '',
      roles: [],
      acl_roles: ['clerk', 'auditor'],
      iss: 'service',
      iat: Math.floor(Date.now() / 1000),
      exp: Math.floor(Date.now() / 1000) + 300,
      jti: 'x',
      ...over,
    })
      .setProtectedHeader({ alg: 'HS256', typ: 'service-actor+jwt' })
      .sign(shop.open.keys.signing);
  for (const [name, forged] of [
    ['a looped chain', await signed(['user:clerk', 'agent:helper', 'user:clerk'])],
    ['an empty chain', await signed([])],
    [
      'a subject that is not the last of its chain',
      await signed(['user:clerk', 'agent:helper'], { sub: 'user:clerk' }),
    ],
    ['another tenant', await signed(['user:clerk'], { tenant_id: 'other' })],
    ['301 s', await signed(['user:clerk'], { exp: Math.floor(Date.now() / 1000) + 301 })],
    ['version 1', await signed(['user:clerk'], { version: 1 })],
  ] as const) {
    t.equal(await login('user:clerk', forged), '28000', `wire: ${name}`);
    t.equal(await rest(forged), 'E3001', `REST: ${name}`);
  }
  const longer = await postQuery(
    httpPort,
    { osql: 'select id, ssn from customer where id = 1' },
    {
      authorization: `Bearer ${await signed(['user:clerk', 'user:auditor', 'agent:helper'])}`,
    },
  );
  t.match(longer.outcome, { rows: [['1', '[redacted]']] }, 'a longer chain sees no more');

  const now = Math.floor(Date.now() / 1000);
  const short = await WireClient.login(
    pgPort,
    CLERK.subject,
    await fronts.token(CLERK, { issuedAt: now - 300 - 28 }),
  );
  await short.exchange(wire.parse('p', MASKED), wire.sync);
  await setTimeout(3_000);
  const late = await short.exchange(wire.bind('', 'p'), wire.execute(), wire.sync);
  t.match(outline(late), /E\(28000\)$/, 'nothing runs after the token has ended');
  t.strictSame(leaksIn(short.takeRaw()), []);
});

t.test('39. counts, notices and parameter reports', async (t) => {
  const client = await session(t);
  for (const [text, expected] of [
    ['select id from customer', 'T D D D C(SELECT 3) Z'],
    ["select id from customer where region = 'us'", 'T C(SELECT 0) Z'],
    ['select id from customer where amt > 100', 'T C(SELECT 0) Z'],
    ['select ssn from customer', 'T D D D N(01000) C(SELECT 3) Z'],
    ['select count(*) from purchase', 'T D C(SELECT 1) Z'],
    ['select ln(score - 100) from customer', 'T E(2201E) Z'],
  ] as const) {
    t.equal(outline(await client.exchange(wire.query(text))), expected, text);
  }
  const portions = await client.exchange(
    wire.parse('', 'select id from customer order by id'),
    wire.bind('', ''),
    wire.execute('', 2),
    wire.execute('', 5),
    wire.sync,
  );
  t.equal(outline(portions), '1 2 D D s D C(SELECT 1) Z');
  await stillGoverned(t, client);
});

t.test('40. without an audit log nothing is answered', async (t) => {
  fronts.breakAudit(UNRECORDED);
  t.teardown(() => fronts.breakAudit(null));
  for (const surface of SURFACES) {
    fronts.breakAudit(null);
    const asker = await fronts.asker(surface, CLERK);
    t.teardown(() => asker.end());
    fronts.breakAudit(UNRECORDED);
    for (const text of ['select name from customer', 'select note from customer', 'drop table x']) {
      const reply = await asker.ask(text);
      t.match(reply.outcome, { kind: 'refused', code: 'E5030', sqlstate: '57P03' }, `${surface}: ${text}`);
      t.notOk(reply.raw.includes('Ada'), 'not a byte of an answer');
    }
  }
  t.rejects(fronts.asker('simple wire', CLERK), 'nor does anyone log in');
});

t.test('headers and bodies of REST that claim more', async (t) => {
  const text = 'select id, ssn from customer where id = 1';
  const authorization = `Bearer ${await fronts.token(CLERK)}`;
  const headers = {
    'x-actor-roles': 'auditor,TENANT_ADMIN',
    'x-osl-subject': 'user:auditor',
    'x-forwarded-user': 'user:auditor',
    'x-http-method-override': 'DELETE',
    forwarded: 'for=127.0.0.1',
  };
  t.match((await postQuery(httpPort, { osql: text }, { authorization, ...headers })).outcome, {
    rows: [['1', '[redacted]']],
  });
  t.match(
    await postQuery(httpPort, { osql: text }, headers),
    { status: 403, outcome: { code: 'E2102' } },
    'headers are no identity',
  );
  t.match(
    await postQuery(httpPort, { osql: text }, { authorization: authorization.replace('Bearer', 'Basic') }),
    { outcome: { kind: 'refused' } },
  );
  t.match(
    await postQuery(httpPort, { osql: text }, { authorization: `${authorization}, ${authorization}` }),
    { status: 401, outcome: { code: 'E3001' } },
  );
  for (const [name, body, code] of [
    ['roles in the body', { osql: text, acl_roles: ['auditor'] }, 'E0511'],
    ['a caller in the body', { osql: text, subject: 'user:auditor' }, 'E0511'],
    ['two shapes', { osql: text, sql: 'select ssn from shop.customer' }, 'E0513'],
    ['raw SQL', { sql: 'select ssn from shop.customer' }, 'E0512'],
    ['empty raw SQL', { sql: ' ' }, 'E0246'],
    ['a metric of what is hidden', { metrics: ['hoard'] }, 'E0512'],
    ['no shape', {}, 'E0511'],
    ['a list', [text], 'E0511'],
    ['a text that is none', { osql: { toString: text } }, 'E0511'],
    ['a prototype', '{"__proto__": {"osql": "select 1"}}', 'E0511'],
    ['a constructor', `{"osql": ${JSON.stringify(text)}, "constructor": 1}`, 'E0511'],
    ['a lone surrogate', '{"osql": "select \'\\ud800\'"}', 'E0511'],
    ['no JSON', 'select 1', 'E0511'],
  ] as const) {
    fronts.takeAudit();
    const reply = await postQuery(httpPort, body, { authorization });
    if (code !== null) t.match(reply.outcome, { kind: 'refused', code }, name);
    t.strictSame(leaksIn(reply.raw), [], name);
    t.equal(decisions().length, 1, `${name}: one decision is recorded`);
  }
  const twice = await postQuery(httpPort, `{"osql": "select 1 as a", "osql": ${JSON.stringify(text)}}`, {
    authorization,
  });
  t.notOk(twice.raw.includes('SECRET'), 'a key given twice');
  for (const accept of [
    'application/x-ndjson',
    'application/vnd.apache.arrow.stream',
    'text/csv',
    '*/*;q=0',
  ]) {
    const { raw } = await postRaw(httpPort, { osql: 'select * from customer' }, { authorization, accept });
    t.strictSame(leaksIn(raw), [], accept);
  }
});

t.test('explain tells neither filters nor names that are not the caller’s', async (t) => {
  const explain = (osql: string, headers: Record<string, string>) =>
    postQuery(httpPort, { osql, explain: true }, headers);
  const mine = await explain('select id, ssn from customer where amt > 5', await bearer());
  for (const hidden of [
    'shop.',
    'attribute',
    "'eu'",
    '"eu"',
    'clerk"',
    'note',
    'card',
    'undeclared',
    'SELECT ',
    'select ',
  ]) {
    t.notOk(mine.raw.includes(hidden), `not \`${hidden}\``);
  }
  t.ok(mine.raw.includes('customer'), 'but the objects that it touches');
  t.strictSame(listAt(mine.json, 'rows'), []);
  t.match((await explain('select note from customer', await bearer())).outcome, { code: 'E0512' });
  const admin = { subject: 'user:admin', aclRoles: ['clerk'], roles: ['TENANT_ADMIN'] };
  const theirs = await explain('select id, ssn from customer', {
    authorization: `Bearer ${await fronts.token(admin)}`,
  });
  t.ok(theirs.raw.includes('shop'), 'an admin sees the SQL');
  t.ok(memberAt(theirs.json, 'request_id'));
  const posing = { ...CLERK, roles: ['TENANT_ADMIN'] };
  const no = await explain('select id from customer', {
    authorization: `Bearer ${await fronts.token(posing)}`,
  });
  t.notOk(no.raw.includes('shop.'), 'a role that the ceiling does not hold is none');
});

async function bearer(): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await fronts.token(CLERK)}` };
}
