import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { NO_BINARIES } from '../../support/native-postgres.js';
import { type Member, startGroup } from '../../support/replicated-postgres.js';
import { BIN, osl, type Server } from '../../tools/cli/support.js';
import { ACCOUNTS_MANIFEST, files, tables } from './store.js';
import { asked, fileArgs, type Place, run, served, tokenFor } from './support.js';

/** Two streaming standbys that answer queries: how old an answer may be, seen from outside `osl serve`. */

const MAX_LAG_MS = 1_000;
const TABLE = 'shop.account: { columns: { id: { type: int4 }, name: { type: text } } }';
const MANIFEST =
  `${ACCOUNTS_MANIFEST}  counter: { source: db.shop.counter, primary_key: [id], columns: { id: { column: id }, name: { column: name } } }
features: { joins: any }
`
    .replace(TABLE, `${TABLE}\n      ${TABLE.replace('account', 'counter')}`)
    .replace(
      'url_env: STORE_URL',
      `url_env: STORE_URL
    standbys: { url_envs: [STANDBY_A, STANDBY_B], max_lag_ms: ${MAX_LAG_MS} }`,
    );

const POLICY = `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst] } }
roles: { analyst: { grants: [{ on: account, columns: [id, name] }, { on: counter, columns: [id, name] }] } }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;
/** Its answer is the number of the last change. */
const LAST = 'select name from osl.entities.account where id = 1';

const ACCOUNTS = 3_000;
/** It runs for a while. */
const PAIRS =
  'select count(*) as name from osl.entities.account a join osl.entities.account b on a.name = b.name or a.id > 0';

interface Answer {
  readonly id: string;
  readonly change: number;
  readonly from: 'live' | 'standby';
  /** ms since the epoch; when it was asked, if the primary answered. */
  readonly asOf: number;
}

const group = await startGroup(2);
if (group === null) {
  t.test('standbys', { skip: NO_BINARIES }, async () => undefined);
} else {
  t.teardown(() => group.stop());
  const { primary, standbys } = group;
  const [a, b] = standbys as readonly [Member, Member]; // it was started with two
  const counter = "create unlogged table shop.counter as select 1 as id, '7' as name;";
  await primary.query(tables(`select n, '0' from generate_series(1, ${ACCOUNTS}) n`, counter));
  for (const one of standbys)
    while ((await one.query("select to_regclass('shop.account') as t"))[0]?.['t'] === null) await sleep(20);

  const urlOf = (...members: readonly Member[]): string =>
    `postgres://osl_reader:osl@${members.map(({ port }) => `127.0.0.1:${port}`).join()}/postgres`;

  const opened = async (t: Test, env: Readonly<Record<string, string>> = {}, maxLagMs = MAX_LAG_MS) => {
    const limit = (ms: number): string => `max_lag_ms: ${ms} `;
    const where = files(MANIFEST.replace(limit(MAX_LAG_MS), limit(maxLagMs)), POLICY);
    const server = await served(t, where, {
      STORE_URL: urlOf(primary),
      STANDBY_A: urlOf(a),
      STANDBY_B: urlOf(b),
      OSL_POOL_SIZE: '4',
      ...env,
    });
    const token = await tokenFor(where.dataDir);
    const rest = async (headers: Readonly<Record<string, string>> = {}, osql = LAST): Promise<Answer> => {
      const more = { authorization: `Bearer ${token}`, ...headers };
      const askedAt = Date.now();
      const { status, body } = await asked(server, '/osl/query', { osql }, more);
      if (status !== 200) throw new Error(`${status} ${body}`);
      const { request_id, rows, freshness } = JSON.parse(body);
      const from = freshness?.from ?? 'live';
      return {
        id: request_id,
        change: Number(rows[0].name),
        from,
        asOf: from === 'live' ? askedAt : Date.parse(freshness.as_of),
      };
    };
    const wire = async (): Promise<pg.Client> => {
      const at = { host: '127.0.0.1', port: Number(server.record().pgPort), database: 'osl' };
      const client = new pg.Client({ ...at, user: 'user:analyst', password: token });
      await client.connect();
      t.teardown(() => client.end());
      return client;
    };
    const until = async (usable: string): Promise<void> => {
      while (usableIn((await asked(server, '/metrics')).body) !== usable) await sleep(20);
    };
    await until('11');
    return { where, server, rest, wire, until };
  };
  const lastOn = async (client: pg.Client): Promise<number> =>
    Number((await client.query(LAST)).rows[0].name);
  const sourceOn = async (client: pg.Client): Promise<string> =>
    String((await client.query('show osl.freshness')).rows[0]['osl.freshness']).split(',')[0] ?? '';

  let change = 0;
  const committed: number[] = [];
  /** Commits the next change, and notes when that was over. */
  const commit = async (): Promise<void> => {
    change += 1;
    await primary.query(`update shop.account set name = '${change}' where id = 1`);
    committed[change] = Date.now();
  };
  /** False if the answer lacks a change that was committed before the time that it names. */
  const isHonest = ({ change, asOf }: Answer): boolean =>
    committed.every((at, number) => number <= change || at > asOf);
  const pause = (...members: readonly Member[]) =>
    Promise.all(members.map((m) => m.query('select pg_wal_replay_pause()')));
  const resume = (...members: readonly Member[]) =>
    Promise.all(members.map((m) => m.query('select pg_wal_replay_resume()')));

  const delayed = async (member: Member, time: string): Promise<void> => {
    await member.query(`alter system set recovery_min_apply_delay = '${time}'`);
    await member.query('select pg_reload_conf()');
  };

  const sessionsAt = async (member: Member): Promise<number> => {
    const sql = "select count(*)::int as n from pg_stat_activity where application_name = 'osl-gateway'";
    return Number((await member.query(sql))[0]?.['n']);
  };
  const all = await opened(t);

  await t.test('standbys answer, and say how old their answers are', async (t) => {
    const { rest, wire } = all;
    const client = await wire();
    for (let i = 0; i < 10; i += 1) {
      const answer = await rest();
      t.equal(answer.from, 'standby');
      t.ok(Date.now() - answer.asOf < MAX_LAG_MS, 'within the limit');
      await lastOn(client);
      t.equal(await sourceOn(client), 'standby', 'prepared or not, fast lane or not');
    }
    const fast = async (): Promise<number> => {
      const { body } = await asked(all.server, '/metrics');
      return Number(/^osl_wire_fast_questions (\d+)/m.exec(body)?.[1]);
    };
    for (const before = await fast(); (await fast()) < before + 5; ) {
      await lastOn(client);
      t.equal(await sourceOn(client), 'standby', 'known queries take the fast path');
    }
    await client.query('begin isolation level repeatable read');
    await lastOn(client);
    t.equal(await sourceOn(client), 'standby');
    await client.query('commit; begin isolation level serializable');
    await lastOn(client);
    t.equal(await sourceOn(client), 'live', 'a standby cannot');
    await client.query('commit');
  });

  await t.test('the record of an answer names the standby that gave it', async (t) => {
    const { rest, wire, where } = all;
    const client = await wire();
    const answers: Answer[] = [];
    for (let i = 0; i < 8; i += 1) {
      answers.push(await rest(), await rest({ 'cache-control': 'no-cache' }));
      await client.query({ name: 'last', text: LAST, binary: true } as pg.QueryConfig);
      await lastOn(client);
    }
    answers.push(await rest({ prefer: 'receipt' }));
    await t.rejects(client.query('select 1 / (id - id) as n from osl.entities.account'), { code: '22012' });
    await client.query('set osl.cache = off');
    await t.rejects(client.query('select 1 / (id - id) as n from osl.entities.account'), { code: '22012' });
    const outcomes = await outcomesOf(where, answers.at(0)?.id ?? '');
    const sources = new Map(outcomes.map((one) => [one.request_id, one.standby ?? null]));
    for (const { id, from, asOf } of answers) {
      const named = sources.get(id);
      if (from === 'live') t.equal(named, null, 'the primary');
      else t.match(named, { as_of: new Date(asOf).toISOString(), name: /^STANDBY_[AB]$/ });
    }
    t.same(new Set(answers.map(({ from }) => from)), new Set(['live', 'standby']));
    const receipted = outcomes.find(({ receipt }) => receipt !== undefined);
    t.equal(receipted?.receipt?.as_of, receipted?.standby?.as_of, 'a receipt has it too');
    const ofWire = outcomes.filter(({ surface }) => surface === 'wire');
    t.same(
      ofWire.map(({ outcome, standby }) => [outcome, standby !== undefined]),
      [...Array.from({ length: 16 }, () => ['ok', true]), ['error', true], ['error', false]],
      'so has what a standby refuses',
    );
    const verdict = run(process.execPath, BIN, 'audit', 'verify', '--dir', join(where.dataDir, 'audit'));
    t.match(verdict, /intact/);
  });

  await t.test('a primary on which nothing happens does not make its standbys look old', async (t) => {
    const { rest } = all;
    // The next record begins a segment of the log, whose header a standby reaches only with that record.
    await primary.query('select pg_switch_wal()');
    await sleep(2 * MAX_LAG_MS);
    t.equal((await rest()).from, 'standby');
  });

  await t.test('who asks for current data gets them from the primary', async (t) => {
    const { rest, wire } = all;
    const client = await wire();
    await pause(a, b);
    await lastOn(client);
    for (let i = 0; i < 5; i += 1) {
      await commit();
      const answer = await rest({ 'cache-control': 'no-cache' });
      t.same([answer.change, answer.from], [change, 'live']);
    }
    await client.query('set osl.cache = off');
    t.equal(await lastOn(client), change);
    await client.query('set osl.cache = on');
    t.equal(await lastOn(client), change, 'and never again older ones');
    await resume(a, b);
    while ((await lastOn(client)) === change && (await sourceOn(client)) !== 'standby') await sleep(10);
    t.equal(await lastOn(client), change);
  });

  await t.test('no answer lacks what was committed before the time that it names', async (t) => {
    const { rest, wire, until } = all;
    const clients = await Promise.all([wire(), wire()]);
    let going = true;
    const answers: Answer[] = [];
    const load = [
      (async () => {
        while (going) {
          await commit();
          await sleep(5);
        }
      })(),
      ...[0, 1].map(async () => {
        while (going) answers.push(await rest());
      }),
      ...clients.map(async (client) => {
        while (going) {
          await lastOn(client);
          await sleep(1);
        }
      }),
    ];
    await sleep(300);
    await pause(a);
    await until('01');
    await resume(a);
    await until('11');
    await pause(a, b);
    await until('00');
    t.equal((await rest()).from, 'live', 'both lag: the primary answers');
    await resume(a, b);
    await until('11');
    await b.kill();
    await until('10');
    await b.up();
    await until('11');
    while ((await sessionsAt(b)) === 0) await sleep(20); // queries come to it again
    going = false;
    await Promise.all(load);
    t.same(answers.filter((answer) => !isHonest(answer)).slice(0, 3), []);
    const ages = answers.filter(({ from }) => from === 'standby').length;
    t.ok(ages > answers.length / 3, `${ages} of ${answers.length} answers are of standbys`);
  });

  await t.test('a session does not go back from one standby to another', async (t) => {
    const { wire } = all;
    const client = await wire();
    // The first is a little behind the second, by less than the time between two looks at their positions.
    await delayed(a, '40ms');
    let last = 0;
    const back: string[] = [];
    for (let i = 0; i < 60; i += 1) {
      await commit();
      for (let n = 0; n < 3; n += 1) {
        const now = await lastOn(client);
        if ((await sourceOn(client)) === 'live') continue;
        if (now < last) back.push(`${now} after ${last}`);
        last = now;
      }
    }
    t.same(back, []);
    await delayed(a, '0');
  });

  await t.test('after a reload nothing older than it is told', async (t) => {
    const { where, server, rest } = all;
    await pause(a, b);
    await commit();
    t.equal((await rest()).change, change - 1, 'of a standby, and a little old');
    writeFileSync(where.policy, `${POLICY}# another version\n`);
    await reloaded(server);
    t.same(await rest().then(({ change, from }) => [change, from]), [change, 'live']);
    await resume(a, b);
  });

  await t.test('behind a name of several servers, rows are of the server whose age is told', async (t) => {
    const { port, close } = await anyOf([a.port, b.port]);
    t.teardown(close);
    const url = `postgres://osl_reader:osl@127.0.0.1:${port}/postgres`;
    const { rest } = await opened(t, { STANDBY_A: url, STANDBY_B: url });
    const answers: Answer[] = [];
    const isEnough = (): boolean => answers.filter(({ from }) => from === 'standby').length > 20;
    // Now the one lags and now the other, since the positions may all be of one server.
    let [lagging, other] = [a, b];
    for (let i = 0; i < 60 || !isEnough(); i += 1) {
      if (i % 40 === 0) {
        await resume(lagging);
        [lagging, other] = [other, lagging];
        await pause(lagging);
      }
      if (i % 3 === 0) await commit();
      answers.push(...(await Promise.all([rest(), rest(), rest()])));
      await sleep(10);
    }
    await resume(lagging);
    t.same(answers.filter((answer) => !isHonest(answer)).slice(0, 3), []);
  });

  /** Statements that the standbys have cancelled for their replay, by cause. */
  const cancelled = async (): Promise<Readonly<Record<'lock' | 'snapshot', number>>> => {
    const sql =
      'select sum(confl_lock)::int as lock, sum(confl_snapshot)::int as snapshot from pg_stat_database_conflicts';
    const rows = await Promise.all(standbys.map(async (one) => (await one.query(sql))[0]));
    const sum = (name: string): number => rows.reduce((all, row) => all + Number(row?.[name]), 0);
    return { lock: sum('lock'), snapshot: sum('snapshot') };
  };
  const disturbances = [
    ['lock', ['begin; lock table shop.account in access exclusive mode; commit']],
    ['snapshot', ['update shop.account set name = name where id > 2', 'vacuum shop.account']],
  ] as const;

  await t.test('a statement that a standby cancels for its replay is answered by the primary', async (t) => {
    const { rest, wire } = all;
    for (const one of standbys) {
      await one.query("alter system set max_standby_streaming_delay = '0'");
      await one.query('select pg_reload_conf()');
    }
    for (const [cause, statements] of disturbances) {
      const before = (await cancelled())[cause];
      while ((await cancelled())[cause] === before) {
        const asking = rest({}, PAIRS);
        await sleep(100);
        for (const sql of statements) await primary.query(sql);
        t.match(await asking, { change: ACCOUNTS ** 2 });
      }
    }
    const client = await wire();
    for (let isOver = false; !isOver; await client.query('rollback')) {
      await client.query('begin isolation level repeatable read');
      await lastOn(client);
      if ((await sourceOn(client)) !== 'standby') continue;
      const asking = client.query(PAIRS).then(
        () => null,
        (error: unknown) => error,
      );
      await sleep(100);
      await primary.query(disturbances[0][1][0]);
      const error = await asking;
      isOver = error !== null;
      if (isOver) t.match(error, { code: '40001' }, 'a block has one state, so it ends, and may be repeated');
    }
  });

  /** What `osl doctor` finds about the standbys, with these URLs. */
  const doctor = async (where: Place, env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const urls = { STORE_URL: urlOf(primary), STANDBY_A: urlOf(a), STANDBY_B: urlOf(b) };
    const free = ['--http-port', '0', '--pg-port', '0'];
    const ran = await osl(['doctor', '--json', ...fileArgs(where), ...free], { env: { ...urls, ...env } });
    const { findings } = JSON.parse(ran.stdout) as { findings: readonly Record<string, string | null>[] };
    return findings
      .filter((one) => one['about']?.startsWith('database db, standby') === true)
      .map(({ about, state, message, hint }) => `${about?.at(-1)} ${state} ${message} ${hint ?? ''}`);
  };

  await t.test('osl doctor looks at standbys', async (t) => {
    const found = await doctor(all.where, { OSL_POOL_SIZE: '100', STANDBY_A: a.url });
    const expected = [
      /^A warn the gateway refuses role "postgres" .*: role "postgres" is superuser use the role of the primary/,
      /^A ok .*: a standby of the primary, at most \d+ ms behind it /,
      /^A warn cancels statements that hold up its replay for 0 ms \(SQLSTATE 40001\).* hot_standby_feedback = on/,
      /^A warn accepts 47 connections, and this gateway opens up to 105 raise max_connections/,
      /^A warn cannot read shop.counter, which is not logged: .* SET LOGGED/,
      /^B ok .*: a standby of the primary/,
    ];
    t.match(found.slice(0, 6), expected);
    await pause(a);
    await commit();
    const others = await doctor(all.where, { STANDBY_B: urlOf(b).replace(/:\d+\//, ':1/') });
    t.match(
      others[0],
      /^A warn .*: has not replayed within 1000 ms what the primary had see pg_stat_replication/,
    );
    t.match(others.at(-1), /^B warn .*nothing listens there correct the URL .*the primary answers/);
    await resume(a);
  });

  await t.test('what a standby cannot read is read from the primary', async (t) => {
    const { rest, wire } = all;
    const client = await wire();
    const sql = 'select name from osl.entities.counter';
    for (let i = 0; i < 5; i += 1) {
      t.match(await rest({}, sql), { change: 7, from: 'live' }, 'a table that is not logged');
      t.equal((await client.query(sql)).rows[0]?.name, '7');
    }
  });

  await t.test(
    'a long statement runs on the primary if its standby is shut down, not if it is ended',
    async (t) => {
      // Both names are of one server, which is never too old.
      const { rest } = await opened(t, { STANDBY_A: urlOf(b) }, 60_000);
      const holder = new pg.Client(primary.url);
      await holder.connect();
      await holder.query('begin; lock table shop.account in access exclusive mode');
      await primary.query('select pg_switch_wal()'); // the record of the lock alone is not flushed
      const held = `select 1 from pg_locks where relation = 'shop.account'::regclass and mode = 'AccessExclusiveLock'`;
      while ((await b.query(held)).length === 0) await sleep(20);
      const waiting = `select pid from pg_stat_activity
      where wait_event_type = 'Lock' and now() - query_start > '1.1 s' and application_name = 'osl-gateway'`;
      /** The session at the standby whose statement has waited for the lock for more than a second. */
      const waiter = async (): Promise<number> => {
        for (;;) {
          const [row] = await b.query(waiting);
          if (row !== undefined) return Number(row['pid']);
          await sleep(50);
        }
      };
      const ended = t.rejects(rest(), /E0523/);
      await b.query(`select pg_terminate_backend(${await waiter()})`);
      await ended;
      const asking = rest();
      await waiter();
      await b.down();
      await holder.query('commit');
      await holder.end();
      t.match(await asking, { change, from: 'live' });
      await b.up();
      await all.until('11');
    },
  );

  await t.test('a standby that becomes the primary is one, and the other follows it', async (t) => {
    const { rest, until } = await opened(t, {
      STORE_URL: `${urlOf(primary, a)}?target_session_attrs=primary`,
    });
    await primary.kill();
    await a.promote();
    await until('00');
    const answer = await rest();
    t.equal(answer.from, 'live');
    t.equal(answer.change, change, 'nothing is lost');
    await b.follow(a);
    await a.query(`update shop.account set name = '-1' where id = 1`);
    while ((await b.query('select name from shop.account where id = 1'))[0]?.['name'] !== '-1')
      await sleep(20);
    t.equal((await rest()).from, 'live', 'its control file does not tell the timeline yet');
    t.match(await doctor(all.where, { STORE_URL: urlOf(a) }), [
      /^A ok .*: is the primary now, so it is not used as a standby/,
      /^B warn .*: follows another timeline than the primary, so it is not used run CHECKPOINT/,
    ]);
    await b.query('checkpoint');
    await until('01');
    t.same(await rest().then(({ change, from }) => [change, from]), [-1, 'standby']);
  });
}

/** A port whose connections go to any of `ports`, as those to a name of several servers may. */
async function anyOf(
  ports: readonly number[],
): Promise<{ readonly port: number; readonly close: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(ports[Math.floor(Math.random() * ports.length)] ?? 0, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.pipe(upstream).pipe(client);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { port, close };
}

/** Outcomes of queries from that of request `first` on, once the log has them all. */
async function outcomesOf({ dataDir }: Place, first: string): Promise<readonly AuditRecord[]> {
  for (;;) {
    const open = new Set<string>();
    const outcomes: AuditRecord[] = [];
    for await (const record of readRecords(join(dataDir, 'audit'))) {
      const { kind, action, request_id, decision } = record;
      if (action !== 'query' || (open.size === 0 && outcomes.length === 0 && request_id !== first)) continue;
      if (kind === 'decision' && decision === 'allow') open.add(request_id);
      if (kind === 'outcome' && open.delete(request_id)) outcomes.push(record);
    }
    if (open.size === 0) return outcomes;
    await sleep(20);
  }
}

async function reloaded(server: Server): Promise<void> {
  const before = server.stderr.length;
  server.hangUp();
  while (!/reloaded/m.test(server.stderr.slice(before))) await sleep(20);
}

/** One digit for each standby, 1 if it answers. */
function usableIn(metrics: string): string {
  return [...metrics.matchAll(/^osl_standby_usable\{standby="\d"\} (\d)/gm)]
    .map(([, usable]) => usable)
    .join('');
}
