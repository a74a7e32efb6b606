import { writeFileSync } from 'node:fs';
import pg from 'pg';
import tap, { test } from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { sql } from '../../../src/base/sql.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { proveAtOnce } from '../../proof/lanes/thrice.js';
import { selfSigned } from '../../support/certificate.js';
import { connectPg } from '../../support/pg-client.js';
import { nativeOfRun, startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { bind, cancelRequest, describe, execute, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { servePg } from './support.js';

/*
 * The fast lane answers what was asked before, with other literals or parameters. It stands on sessions that callers
 * share, which the embedded engine has none of: there nothing goes fast, and this file has nothing to ask.
 */

/** Asked so often at the most, a question has proved short, has made a route, and goes by it: the machine may be busy. */
const OFTEN = 300;

const postgres = await nativeOfRun();
if (postgres === null) tap.pass('no native Postgres for this run');
else {
  proveAtOnce();
  const shop = await startTestService({ postgres });
  const { port, frontend } = await servePg(tap, shop);
  tap.teardown(() => postgres.stop());
  await suite(shop, port, () => frontend.fastQuestions);
}

async function suite(
  shop: Awaited<ReturnType<typeof startTestService>>,
  port: number,
  taken: () => number,
): Promise<void> {
  const login = async (user: string): Promise<Client> => Client.login(port, user, await shop.token(user));
  const serve = async (policy: string): Promise<void> => {
    writeFileSync(shop.policyFile, policy);
    await shop.open.reload();
  };

  /** Asks until a question goes fast, at most so often, and says whether the last one did. */
  async function ask(client: Client, messages: () => Buffer[], times = OFTEN) {
    let answer: string[] = [];
    let fast = 0;
    for (let i = 0; i < times && fast === 0; i++) {
      const before = taken();
      answer = await client.ask(...messages());
      fast = taken() - before;
    }
    return { answer, fast };
  }

  /** The same question where none goes fast: in a transaction block. Without ReadyForQuery, which tells of the block. */
  async function slowly(client: Client, messages: Buffer[]): Promise<string[]> {
    await client.ask(query('begin'));
    const answer = await client.ask(...messages);
    await client.ask(query('rollback'));
    return answer.slice(0, -1);
  }

  const recordsOf = async (subject: string): Promise<AuditRecord[]> =>
    (await shop.records()).filter((r) => r.subject === subject && r.action === 'query');

  /** Everything that two records of one question have in common. */
  const common = ({ request_id: _id, seq: _seq, ts: _ts, duration_us: _duration, ...rest }: AuditRecord) =>
    rest;

  /** What was asked often, and what is then asked of the same shape. */
  const SIMPLE: Readonly<Record<string, readonly [user: string, often: string, then: string]>> = {
    'one row by its key': [
      'user:ada',
      'select name from customer where id = 1',
      'select name from customer where id = 3;  ',
    ],
    'no row': [
      'user:ada',
      'select name from customer where id = 1',
      'select name from customer where id = 999',
    ],
    'a filter of policy with an attribute': [
      'user:eu',
      'select id, email from customer where id < 2',
      'select id, email from customer where id < 9',
    ],
    'the same question of another': [
      'user:us',
      'select id, email from customer where id < 2',
      'select id, email from customer where id < 9',
    ],
    'masked columns, and the notice of them': [
      'user:ann',
      'select email, tax_no, born from customer where id = 1',
      'select email, tax_no, born from customer where id = 2',
    ],
    strings: [
      'user:ada',
      "select id from customer where name = 'Ada'",
      "select id from customer where name = 'x; drop table'",
    ],
    'a pattern': [
      'user:eu',
      "select id from customer where name like 'A%'",
      "select id from customer where name like '%o'",
    ],
    'several literals': [
      'user:ada',
      "select id from customer where id in (1, 2) and region = 'eu' limit 5",
      "select id from customer where id in (3, 4) and region = 'us' limit 5",
    ],
    'another plan of the same shape': [
      'user:ada',
      'select id from customer order by id limit 2',
      'select id from customer order by id limit 3',
    ],
    aggregates: [
      'user:ada',
      'select count(*), sum(amount) from "order" where quantity > 30',
      'select count(*), sum(amount) from "order" where quantity > 5',
    ],
    'every type': ['user:ann', 'select * from sample where id = 1', 'select * from sample where id = 2'],
    'negative numbers': [
      'user:ann',
      'select id from sample where small > -9',
      'select id from sample where small > -1',
    ],
    'what fails for some values': [
      'user:ada',
      'select 100 / (id - 1) from customer where id = 2',
      'select 100 / (id - 1) from customer where id = 1',
    ],
    'a text that is not a number': [
      'user:ada',
      "select id from customer where id = '1'",
      "select id from customer where id = '9999999999'",
    ],
    'no relation': ['user:ada', 'select 1 + 1', 'select 1 + 41'],
  };
  for (const [name, [user, often, then]] of Object.entries(SIMPLE)) {
    test(`simple: ${name}`, async (t) => {
      const client = await login(user);
      t.teardown(() => client.end());
      const before = await ask(client, () => [query(often)]);
      t.equal(before.fast, 1, 'it goes fast');
      t.strictSame(
        before.answer.slice(0, -1),
        await slowly(client, [query(often)]),
        'and answers as the one way does',
      );
      const now = taken();
      const answer = await client.ask(query(then));
      const fast = taken() - now;
      const slow = await slowly(client, [query(then)]);
      const isNamed = (line: string): string => line.replace(/request [0-9a-f-]{36}/, 'request');
      t.strictSame(
        answer.slice(0, -1).map(isNamed),
        slow.map(isNamed),
        `so does the other (${fast === 1 ? 'fast' : 'not fast'})`,
      );
      const records = (await recordsOf(user)).slice(-4).map(common);
      t.strictSame(records.slice(0, 2), records.slice(2), 'with the same records');
    });
  }

  const WAYS = [
    ['prepared and described', true, true],
    ['prepared', false, true],
    ['parsed each time and described', true, false],
    ['parsed each time', false, false],
  ] as const;
  const EXTENDED: Readonly<
    Record<
      string,
      readonly [user: string, text: string, values: readonly (string | null)[], formats?: readonly (0 | 1)[]]
    >
  > = {
    'by key': ['user:ada', 'select name from customer where id = $1', ['1']],
    NULL: ['user:ada', 'select name from customer where id = $1', [null]],
    masked: ['user:ann', 'select email from customer where id = $1', ['2']],
    'two parameters, one of them twice': [
      'user:eu',
      'select id from customer where name = $1 or (name <> $1 and id = $2)',
      ['Ada', '2'],
    ],
    'a literal beside': ['user:eu', "select id from customer where region = 'eu' and id = $1", ['2']],
    'a value that does not fit': ['user:ada', 'select name from customer where id = $1', ['x']],
    'binary results': ['user:ada', 'select id, amount, placed_at from "order" where id = $1', ['7'], [1]],
  };
  for (const [name, [user, text, values, formats]] of Object.entries(EXTENDED)) {
    for (const [way, described, named] of WAYS) {
      test(`${way}: ${name}`, async (t) => {
        const client = await login(user);
        t.teardown(() => client.end());
        if (named) await client.ask(parse('s', text), sync);
        const run = (given: readonly (string | null)[]): Buffer[] => [
          ...(named ? [] : [parse('', text)]),
          bind('', named ? 's' : '', {
            values: given.map((v) => (v === null ? null : Buffer.from(v))),
            results: [...(formats ?? [])],
          }),
          ...(described ? [describe('P')] : []),
          execute(),
          sync,
        ];
        const good = await ask(client, () => run(values.map(() => '1')));
        t.equal(good.fast, 1, 'it goes fast');
        const isNamed = (line: string): string => line.replace(/request [0-9a-f-]{36}/, 'request');
        const answer = await client.ask(...run(values));
        const slow = await slowly(client, run(values));
        t.strictSame(answer.slice(0, -1).map(isNamed), slow.map(isNamed), 'and answers as the one way does');
        const records = (await recordsOf(user)).slice(-4).map(common);
        t.strictSame(records.slice(0, 2), records.slice(2), 'with the same records');
      });
    }
  }

  test('whatever ends a Query, its statement has the fingerprint that the one way gives it', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const text = 'select name from customer where id = 2';
    for (const known of [text, `${text};`]) {
      const run = [bind('', '', {}), execute(), sync];
      t.equal((await ask(client, () => [parse('', known), ...run])).fast, 1);
    }
    for (const end of ['', ';', ' ; ', ';;', '; ;', ' ;;']) {
      await client.ask(query(text + end));
      await slowly(client, [query(text + end)]);
      const [fast, slow] = (await recordsOf('user:ada')).filter((r) => r.kind === 'decision').slice(-2);
      t.equal(fast?.statement_hmac, slow?.statement_hmac, JSON.stringify(end));
    }
  });

  test('an unnamed statement that was parsed the fast way is there for the messages behind it', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const text = 'select name from customer where id = $1';
    const run = [bind('', '', { values: ['2'] }), execute(), sync];
    t.equal((await ask(client, () => [parse('', text), ...run])).fast, 1);
    t.match((await client.ask(...run)).join(), /D Bo/, 'to be run');
    t.equal((await ask(client, () => [parse('', text), ...run], 1)).fast, 1);
    t.match((await client.ask(describe('S'), sync)).join(), /^t .*T name/, 'to be described');
    t.equal((await ask(client, () => [parse('', text), ...run], 1)).fast, 1);
    await client.ask(query('select name from customer where id = 1'));
    t.match((await client.ask(...run)).join(), /26000/, 'and gone with the next Query');
  });

  test('values in another encoding, for an unnamed statement that was parsed the fast way', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await client.ask(parse('latin', "set client_encoding to 'latin1'"), sync);
    const run = (value: string): Buffer[] => [
      bind('', '', { values: [Buffer.from(value, 'latin1')], formats: [1] }),
      execute(),
      sync,
    ];
    const text = 'select id from customer where name <> $1 order by id limit 1';
    t.equal((await ask(client, () => [parse('', text), ...run('Zoe')])).fast, 1, 'it goes fast');
    t.match(await client.ask(bind('', 'latin'), execute(), sync), [
      '2',
      'C SET',
      /S client_encoding=LATIN1/,
      'Z I',
    ]);
    t.match(await client.ask(...run('Zo\u00eb')), ['2', /^D /, 'C SELECT 1', 'Z I']);
  });

  test('what a policy takes away is gone with the next question', async (t) => {
    await serve(SHOP_POLICY);
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const text = 'select email from customer where id = 2';
    const before = await ask(client, () => [query(text)]);
    t.equal(before.fast, 1);
    t.match(before.answer.join(), /bo@eu\.example/);
    await serve(SHOP_POLICY.replace('ceiling: [auditor, analyst]', 'ceiling: [analyst]'));
    t.notMatch((await client.ask(query(text))).join(), /bo@/);
    const after = await ask(client, () => [query(text)]);
    t.equal(after.fast, 1, 'which goes fast in its turn');
    t.notMatch(after.answer.join(), /bo@/);
    await serve(SHOP_POLICY);
    t.match((await client.ask(query(text))).join(), /bo@eu\.example/);
  });

  test('the limit is the same, to the request', async (t) => {
    await serve(SHOP_POLICY.replace('query: 100000', 'query: 12'));
    t.teardown(() => serve(SHOP_POLICY));
    const [one, two] = [await login('user:us'), await login('user:us')];
    for (const client of [one, two]) t.teardown(() => client.end());
    await ask(one, () => [query('select id from customer where id = 3')]);
    const before = (await recordsOf('user:us')).filter((r) => r.kind === 'decision').length;
    const started = performance.now();
    for (let i = 0; i < 15; i++) {
      one.send(query('select id from customer where id = 3'));
      two.send(query('select id from customer where id = 3'));
    }
    for (let i = 0; i < 15; i++) await Promise.all([one.until('Z'), two.until('Z')]);
    const seconds = (performance.now() - started) / 1_000;
    const records = (await recordsOf('user:us')).filter((r) => r.kind === 'decision').slice(before);
    const allowed = records.filter((r) => r.decision === 'allow').length;
    t.ok(allowed <= 12 * (Math.floor(seconds) + 2), `${allowed} in ${seconds.toFixed(1)} s`);
    t.ok(allowed >= 12, `${allowed} of 30 were let in`);
  });

  test('an answer that is long after all comes whole, under one decision', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await shop.engine.system.script(
      sql`insert into shop.orders select n, 1, 'far', 1, 1, now(), null from generate_series(1001, 1500) n`,
    );
    const text = (n: number): Buffer[] => [query(`select id from "order" where id > ${n}`)];
    const short = await ask(client, () => text(1498));
    t.equal(short.fast, 1);
    const before = taken();
    const long = await client.ask(...text(1000));
    t.equal(taken() - before, 1, 'it began fast');
    t.equal(long.filter((line) => line.startsWith('D ')).length, 500);
    t.match(long.at(-2), /SELECT 500/);
    const records = (await recordsOf('user:ada')).slice(-2);
    t.match(records, [
      { kind: 'decision', decision: 'allow' },
      { kind: 'outcome', outcome: 'ok', rows: 500 },
    ]);
  });

  test('messages in one packet are answered in their order, fast or not', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const by = (id: number): Buffer => query(`select name from customer where id = ${id}`);
    await ask(client, () => [by(1)]);
    client.send(
      by(1),
      query('select 1 where false'),
      by(2),
      query('nonsense'),
      by(3),
      query('begin'),
      by(4),
      query('commit'),
      by(1),
    );
    const lines: string[] = [];
    for (let i = 0; i < 9; i++) lines.push(...(await client.until('Z')));
    t.strictSame(
      lines.filter((line) => /^[DE] /.test(line)).map((line) => line.slice(0, 4)),
      ['D Ad', 'D Bo', 'E ER', 'D Cy', 'D Di', 'D Ad'],
    );
  });

  test('a token that ends, ends the session before its next question', async (t) => {
    const token = await shop.token('user:ada', { issuedAt: Math.floor(Date.now() / 1_000) - 315 });
    const client = await Client.login(port, 'user:ada', token);
    t.teardown(() => client.end());
    const text = query('select name from customer where id = 1');
    let said: string[] = [];
    while (!said.join().includes('FATAL') && said.at(-1) !== 'closed') {
      client.send(text);
      said = await client.until('Z');
    }
    t.match(said.join(), /the token of this session has expired/);
  });

  test('a cancel and a lost client are on record, and hold nobody up', async (t) => {
    const client = await login('user:ada');
    const text = query('select name from customer where id = 1');
    await ask(client, () => [text]);
    client.send(text);
    const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(4) };
    const canceller = await Client.open(port);
    canceller.send(cancelRequest(pid, key));
    const said = (await client.until('Z')).join();
    t.match(said, /SELECT 1|57014/, 'either it was quicker, or it was cancelled');
    client.send(text);
    client.end();
    const other = await login('user:ada');
    t.teardown(() => other.end());
    t.match((await ask(other, () => [text])).answer.join(), /SELECT 1/);
    const records = await recordsOf('user:ada');
    const open = new Set(records.filter((r) => r.kind === 'decision').map((r) => r.request_id));
    for (const r of records) if (r.kind === 'outcome') open.delete(r.request_id);
    t.equal(open.size, 0, 'every decision has an outcome');
  });

  test('settings of the session that answers depend on take the one way', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const text = 'select placed_at from "order" where id = 1';
    t.equal((await ask(client, () => [query(text)])).fast, 1);
    await client.ask(query("set timezone = 'Asia/Tokyo'"));
    const elsewhere = await ask(client, () => [query(text)], 10);
    t.equal(elsewhere.fast, 0);
    t.match(elsewhere.answer.join(), /\+09/);
    await client.ask(query('reset timezone'));
    const back = await ask(client, () => [query(text)], 1);
    t.equal(back.fast, 1);
    t.match(back.answer.join(), /\+00/);
    await client.ask(query("set client_min_messages = 'error'"));
    const quiet = await ask(client, () => [query('select email from customer where id = 1')]);
    t.equal(quiet.fast, 1);
  });

  test('bytes that are no text, or no value of their type, end as they do slowly', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await client.ask(parse('by-name', 'select id from customer where name = $1'), sync);
    await client.ask(parse('by-id', 'select name from customer where id = $1'), sync);
    const run = (name: string, value: Buffer, format: 0 | 1 = 0): Buffer[] => [
      bind('', name, { values: [value], formats: [format] }),
      execute(),
      sync,
    ];
    t.equal((await ask(client, () => run('by-name', Buffer.from('Ada')))).fast, 1);
    t.equal((await ask(client, () => run('by-id', Buffer.from('1')))).fast, 1);
    const wrong: readonly (readonly [string, Buffer, (0 | 1)?])[] = [
      ['by-name', Buffer.from([0xff, 0xfe])],
      ['by-name', Buffer.from('A\0da')],
      ['by-name', Buffer.from([0xed, 0xa0, 0x80])],
      ['by-name', Buffer.from([0xff]), 1],
      ['by-name', Buffer.from([0]), 1],
      ['by-id', Buffer.from([0, 0, 0]), 1],
      ['by-id', Buffer.from([0, 0, 0, 1, 0]), 1],
      ['by-id', Buffer.alloc(0), 1],
      ['by-id', Buffer.from('')],
      ['by-id', Buffer.from('1; select 2')],
    ];
    const isNamed = (line: string): string => line.replace(/request [0-9a-f-]{36}/, 'request');
    for (const [name, value, format = 0] of wrong) {
      const what = `${name} ${format} ${value.toString('hex')}`;
      const answer = await client.ask(...run(name, value, format));
      t.strictSame(
        answer.slice(0, -1).map(isNamed),
        (await slowly(client, run(name, value, format))).map(isNamed),
        what,
      );
      t.match(answer.join(), /E ERROR/, what);
      t.match(
        (await client.ask(...run('by-id', Buffer.from('2')))).join(),
        /D Bo/,
        'and the next is answered',
      );
    }
    const broken = Buffer.concat([query("select id from customer where name = 'Ada'")]);
    broken[broken.indexOf('Ada')] = 0xff;
    t.equal((await ask(client, () => [query("select id from customer where name = 'Ada'")])).fast, 1);
    t.strictSame(
      (await client.ask(broken)).slice(0, -1).map(isNamed),
      (await slowly(client, [broken])).map(isNamed),
      'a text of broken UTF-8',
    );
  });

  test('what was asked by COPY or by a cursor opens no way that a question of its own would not have', async (t) => {
    const client = await login('user:ann');
    t.teardown(() => client.end());
    const text = 'select id, email from customer where id = 2';
    for (let i = 0; i < 20; i++) {
      await client.ask(query(`copy (${text}) to stdout`));
      await client.ask(query(`begin; declare c cursor for ${text}; fetch all from c; commit`));
    }
    const slow = await slowly(client, [query(text)]);
    const plain = await ask(client, () => [query(text)]);
    t.equal(plain.fast, 1);
    t.strictSame(plain.answer.slice(0, -1), slow);
    t.match(slow.join(), /redacted/);
    const copied = await client.ask(query(`copy (${text}) to stdout`));
    t.match(copied.join(), /d 2\t\[redacted\]/, 'and COPY stays COPY');
  });

  test('a service account that changes ends its session, however it asked', async (t) => {
    const scram = await makeScramVerifier('correct horse');
    const account = (subject: string, verifier = scram): string =>
      `${SHOP_POLICY}\nservice_accounts:\n  dash: { subject: ${subject}, scram: "${verifier}" }\n`;
    await serve(account('user:eu'));
    t.teardown(() => serve(SHOP_POLICY));
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'dash',
      password: 'correct horse',
      database: 'osl',
    });
    const ended = new Promise((resolve) => client.on('error', resolve));
    await client.connect();
    const text = 'select id from customer where id < 9';
    for (let before = taken(), i = 0; taken() === before && i < OFTEN; i++) await client.query(text);
    const before = taken();
    const { rows } = await client.query(text);
    t.equal(taken(), before + 1, 'it goes fast');
    await serve(`${account('user:eu')}# another text`);
    t.same((await client.query(text)).rows, rows, 'an account that is the same goes on');
    await serve(account('user:us'));
    t.notSame((await client.query(text)).rows, rows, 'as another subject it sees what that one sees');
    await serve(account('user:us', await makeScramVerifier('another')));
    t.match(await client.query(text).catch((e) => e), {
      code: '28000',
      message: /service account .* has changed/,
    });
    await ended;
  });

  test('over TLS too', async (t) => {
    const { key, cert } = selfSigned();
    const secure = createPgFrontend(shop.service, { tls: { key, cert } });
    const { port: tlsPort } = await secure.listen(0, '127.0.0.1');
    t.teardown(() => secure.stop(0));
    const client = await connectPg({
      port: tlsPort,
      user: 'user:eu',
      password: await shop.token('user:eu'),
      ssl: { ca: cert, servername: 'localhost' },
    });
    t.teardown(() => client.end());
    const text = 'select id, email from customer where id < 9 order by id';
    const slow = (await client.query(text)).rows;
    for (let i = 0; secure.fastQuestions === 0 && i < OFTEN; i++)
      t.strictSame((await client.query(text)).rows, slow);
    t.ok(secure.fastQuestions > 0);
  });
}
