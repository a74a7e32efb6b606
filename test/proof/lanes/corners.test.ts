import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import tap, { test } from 'tap';
import { type AuditLog, AuditUnavailable } from '../../../audit/index.js';
import { quotaOf } from '../../../policy/index.js';
import { PermittedRequest } from '../../../src/ask/request/permitted-request.js';
import { QuestionRouter } from '../../../src/ask/routes/questions.js';
import { Route } from '../../../src/ask/routes/route.js';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { createPgFrontend, type PgFrontend } from '../../../src/surfaces/pg/index.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { nativeOfRun, startTestService, type TestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { watchedLog } from '../../support/watched-log.js';
import {
  bind,
  cancelRequest,
  describe,
  execute,
  flush,
  parse,
  query,
  sync,
} from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { proveAtOnce } from './thrice.js';

/**
 * What a caller could try at the fast lane: to hear what is not on record, to leave no trace, to keep rights that are
 * gone, to be told what another asked for. On the embedded engine nothing goes fast, and nothing is tried here.
 */

tap.setTimeout(600_000);

/** A question goes fast once it has proved short and a session that statements share stands, which may take a while. */
const PATIENCE_MS = 300_000;

/** A log that keeps everybody waiting for a decision of the fast lane while it is held. */
interface HeldLog {
  readonly log: AuditLog;
  hold(): void;
  /** Resolves once so many wait. */
  reached(count?: number): Promise<void>;
  /** Tells those who wait. With `failure`, that their decision is not on record, which it is not. */
  release(failure?: AuditUnavailable): void;
}

function heldLog(log: AuditLog): HeldLog {
  let waiting: ((failure: AuditUnavailable | undefined) => void)[] | null = null;
  const appendForm: AuditLog['appendForm'] = (form, requestId, hmac, rows, us, done, standby) => {
    const append = (): void => log.appendForm(form, requestId, hmac, rows, us, done, standby);
    if (waiting === null || rows !== null) append();
    else waiting.push((failure) => (failure === undefined ? append() : done(failure, -1)));
  };
  return {
    log: { ...watchedLog(log, () => undefined), appendForm },
    hold() {
      waiting = [];
    },
    async reached(count = 1) {
      while ((waiting?.length ?? 0) < count) await pause(2);
    },
    release(failure) {
      const told = waiting ?? [];
      waiting = null;
      for (const tell of told) tell(failure);
    },
  };
}

interface Stage {
  readonly shop: TestService;
  readonly log: HeldLog;
  readonly frontend: PgFrontend;
  readonly port: number;
  login(user: string): Promise<Client>;
  /** Asks until it goes fast. */
  warm(client: Client, messages: () => readonly Buffer[]): Promise<string[]>;
  /** True if `ask` took the fast path. */
  isFast(ask: () => Promise<unknown>): Promise<boolean>;
  serve(policy: string): Promise<void>;
}

async function stageOn(shop: TestService, service: TestService['service'] = shop.service): Promise<Stage> {
  await shop.engine.system.script(generatedSql(MORE));
  const log = heldLog(sealedParts(shop.service).audit);
  const frontend = createPgFrontend(sealing(service, { audit: log.log }));
  const { port } = await frontend.listen(0, '127.0.0.1');
  return {
    shop,
    log,
    frontend,
    port,
    login: async (user) => Client.login(port, user, await shop.token(user)),
    async warm(client, messages) {
      const until = performance.now() + PATIENCE_MS;
      while (performance.now() < until) {
        const before = frontend.fastQuestions;
        const answer = await client.ask(...messages());
        if (frontend.fastQuestions > before) return answer;
      }
      throw new Error('it never went fast');
    },
    async isFast(ask) {
      const before = frontend.fastQuestions;
      await ask();
      return frontend.fastQuestions > before;
    },
    async serve(policy) {
      writeFileSync(shop.policyFile, policy);
      await shop.open.reload();
    },
  };
}

const NAME = query('select name from customer where id = 1');
const from = (id: number, what = 'id'): Buffer =>
  query(`select ${what} from "order" where id >= ${id} order by id`);
const MORE = "insert into shop.orders select n, 1, 'far', 1, 1, now(), null from generate_series(41, 1500) n";

async function suite(): Promise<void> {
  const stage = await stageOn(await startTestService());
  const { shop, log, login, warm, isFast, serve } = stage;
  tap.teardown(async () => {
    await stage.frontend.stop(0);
    await shop.close();
  });

  const openDecisions = async (): Promise<number> => {
    const records = await shop.records();
    const ended = new Set(records.filter((r) => r.kind === 'outcome').map((r) => r.request_id));
    return records.filter((r) => r.decision === 'allow' && r.action === 'query' && !ended.has(r.request_id))
      .length;
  };

  /** A while in which the frontend could do what it must not. */
  const settled = (): Promise<void> => pause(150);

  test('nothing is told before the decision is on record', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await warm(client, () => [NAME]);
    log.hold();
    client.send(NAME);
    let told = false;
    const answer = client.until('Z').then((lines) => {
      told = true;
      return lines;
    });
    await settled();
    t.equal(told, false);
    log.release();
    t.match((await answer).join(), /Ada/);
  });

  // A statement that turned out to be long does not go fast for a while, so each has one of its own.
  for (const [end, what] of [
    ['is recorded', 'quantity'],
    ['cannot be recorded', 'amount'],
  ] as const) {
    test(`a long answer that is cancelled before its decision ${end}`, async (t) => {
      const client = await login('user:ada');
      t.teardown(() => client.end());
      await warm(client, () => [from(1490, what)]);
      log.hold();
      client.send(from(1, what));
      let told = false;
      const answer = client.until('Z').then((lines) => {
        told = true;
        return lines.join();
      });
      await log.reached();
      await settled();
      const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(4) };
      const canceller = await Client.open(stage.port);
      canceller.send(cancelRequest(pid, key));
      await canceller.rest();
      await settled();
      t.equal(told, false, 'nobody is told before');
      log.release(end === 'is recorded' ? undefined : new AuditUnavailable('full', 'no space'));
      t.match(await answer, end === 'is recorded' ? /57014/ : /E5030/);
      t.match((await client.ask(NAME)).join(), /Ada/, 'the session goes on');
      t.equal(await openDecisions(), 0);
    });
  }

  test('a decision that cannot be recorded is refused, and leaves nothing behind', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const other = query('select name from customer where id = 2');
    await warm(client, () => [NAME]);
    log.hold();
    client.send(NAME);
    await log.reached();
    log.release(new AuditUnavailable('full', 'no space'));
    t.match((await client.until('Z')).join(), /E5030/);
    t.match((await client.ask(other)).join(), /Bo/, 'the next answer is its own');
    log.hold();
    client.send(NAME);
    log.release(new AuditUnavailable('full', 'no space'));
    client.send(other);
    t.match((await client.until('Z')).join(), /Ada|E5030/);
    t.match((await client.until('Z')).join(), /Bo/);
    t.equal(await openDecisions(), 0);
  });

  test('the answer of a question that was cancelled is not that of the next one', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    const by = (id: number): Buffer => query(`select name from customer where id = ${id}`);
    await warm(client, () => [by(1)]);
    const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(4) };
    for (let i = 0; i < 10; i++) {
      client.send(by(1), by(2), by(3));
      const canceller = await Client.open(stage.port);
      canceller.send(cancelRequest(pid, key));
      for (const name of [/Ada/, /Bo/, /Cy/]) {
        const said = (await client.until('Z')).join();
        t.ok(name.test(said) || said.includes('57014'), said);
      }
      canceller.end();
    }
    t.equal(await openDecisions(), 0);
  });

  test('rights that change end with the next question, of texts and of prepared statements', async (t) => {
    t.teardown(() => serve(SHOP_POLICY));
    const client = await login('user:eu');
    t.teardown(() => client.end());
    const text = 'select id from customer where id < 9 order by id';
    await client.ask(parse('kept', text), sync);
    const ways = {
      text: () => [query(text)],
      prepared: () => [bind('', 'kept'), describe('P'), execute(), sync],
      unnamed: () => [parse('', text), bind('', ''), describe('P'), execute(), sync],
    };
    const rows = (lines: readonly string[]): string => lines.filter((l) => /^[DE] /.test(l)).join();
    for (const [name, ask] of Object.entries(ways)) {
      t.equal(rows(await warm(client, ask)), 'D 1,D 2', name);
    }
    await serve(SHOP_POLICY.replace('attributes: { region: eu }', 'attributes: { region: us }'));
    for (const [name, ask] of Object.entries(ways)) {
      t.equal(rows(await client.ask(...ask())), 'D 3,D 4', `another attribute: ${name}`);
      t.equal(rows(await warm(client, ask)), 'D 3,D 4', `another attribute, fast: ${name}`);
    }
    await serve(SHOP_POLICY.replace(/^ {2}user:eu: .*$/m, ''));
    for (const [name, ask] of Object.entries(ways)) {
      const said = await client.ask(...ask());
      t.match(rows(said), /42501/, `no subject any more: ${name}`);
      t.equal(await isFast(() => client.ask(...ask())), false, name);
    }
    await serve(SHOP_POLICY);
    for (const [name, ask] of Object.entries(ways))
      t.equal(rows(await client.ask(...ask())), 'D 1,D 2', `and back: ${name}`);
  });

  test('an answer that waits for its record is not given once the rights are gone', async (t) => {
    t.teardown(() => serve(SHOP_POLICY));
    const client = await login('user:eu');
    t.teardown(() => client.end());
    const text = query('select region from customer where id < 9 order by id');
    const changes = [
      ['another policy', SHOP_POLICY.replace(/^ {2}user:eu: .*$/m, ''), /55000/],
      ['another policy, and the same rights', SHOP_POLICY.replace(/^ {2}user:us: .*$/m, ''), /D eu/],
    ] as const;
    for (const [what, policy, said] of changes) {
      await serve(SHOP_POLICY);
      await warm(client, () => [text]);
      log.hold();
      client.send(text);
      await log.reached();
      await settled(); // the database has answered
      await serve(policy);
      log.release();
      t.match((await client.until('Z')).join(), said, what);
    }
    t.equal(await openDecisions(), 0);
  });

  test('a question that fails on the fast lane costs its time, as it does on the other', async (t) => {
    t.teardown(() => serve(SHOP_POLICY));
    await serve(SHOP_POLICY.replace('\nlimits:\n', '\nlimits:\n  subject: [{ per: day, seconds: 1000 }]\n'));
    const { snapshot } = shop.service.model();
    const user = { tenant: shop.service.tenant, subject: 'user:ada', chain: ['user:ada'], task: null };
    const quotas = (snapshot?.quotas ?? []).map((rule) => quotaOf(rule, user));
    const msUsed = async (): Promise<number> =>
      (await sealedParts(shop.service).limiter.quotas.state(quotas))[0]?.used ?? 0;
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await client.ask(parse('over', 'select 8 / (id - $1) as q from customer where id = 2'), sync);
    const over = (id: string): Buffer[] => [bind('', 'over', { values: [Buffer.from(id)] }), execute(), sync];
    await warm(client, () => over('1'));
    const before = await msUsed();
    t.ok(before > 0);
    let said = '';
    t.equal(await isFast(async () => (said = (await client.ask(...over('2'))).join())), true);
    t.match(said, /22012/);
    t.ok((await msUsed()) > before);
  });

  test('a newer token with fewer roles shows less at once', async (t) => {
    const [client, other] = [await login('user:ada'), await login('user:ada')];
    for (const c of [client, other]) t.teardown(() => c.end());
    const text = query('select email from customer where id = 2');
    t.match((await warm(client, () => [text])).join(), /bo@/);
    await client.ask(query(`set osl.token = '${await shop.token('user:ada', { aclRoles: ['analyst'] })}'`));
    t.notMatch((await client.ask(text)).join(), /bo@/);
    t.notMatch((await warm(client, () => [text])).join(), /bo@/, 'by a route of its own');
    t.match((await warm(other, () => [text])).join(), /bo@/, 'and the other session sees what it saw');
    t.notMatch((await warm(client, () => [text])).join(), /bo@/);
  });

  test('another chain to the same subject has other records', async (t) => {
    const chain = ['agent:bot', 'user:eu'];
    const token = await shop.token('user:eu', { chain });
    const [own, lent] = [await login('user:eu'), await Client.login(stage.port, 'user:eu', token)];
    for (const c of [own, lent]) t.teardown(() => c.end());
    const text = query('select id from customer where id = 2');
    await warm(own, () => [text]);
    await warm(lent, () => [text]);
    await own.ask(text);
    await lent.ask(text);
    const records = (await shop.records()).slice(-4);
    t.strictSame(
      records.map((r) => r.chain),
      [['user:eu'], ['user:eu'], chain, chain],
    );
  });

  test('a token that is revoked ends its own long answer, and none by a route that it made', async (t) => {
    const router = new QuestionRouter(sealing(shop.service, { audit: log.log }));
    const ask = async (token: string, id: number, column: string): Promise<number> => {
      const text = `select ${column} from "order" where id >= ${id} order by id`;
      const credentials = { kind: 'bearer', token, address: '127.0.0.1' } as const;
      const body = { kind: 'osql', text } as const;
      let count = 0;
      const sink = { write: (_: Uint8Array, rows: number) => void (count += rows) };
      await router.answer(
        { requestId: randomUUID(), surface: 'rest', credentials, body, parameterOids: [] },
        { parameters: [], resultFormats: [], maxRows: 0, signal: null, sink },
      );
      return count;
    };
    const warmBy = async (token: string, column: string): Promise<void> => {
      for (const known = router.fastPathCount; router.fastPathCount === known; )
        await ask(token, 1490, column);
    };
    const revoke = (token: string): Promise<unknown> => {
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
        jti: string;
      };
      return shop.service.revocations.revoke({ kind: 'token', name: claims.jti });
    };
    const [first, second] = [await shop.token('user:ada'), await shop.token('user:ada')];
    for (const column of ['region', 'placed_at']) await warmBy(first, column);
    await ask(second, 1490, 'id');
    await revoke(first);
    const before = router.fastPathCount;
    t.equal(await ask(second, 1, 'region'), 1_500, 'the route is of another token, which is revoked');
    t.equal(router.fastPathCount, before + 1);
    log.hold();
    const ended = t.rejects(ask(second, 1, 'placed_at'), { code: 'E2003' });
    await log.reached();
    await settled();
    await revoke(second);
    log.release();
    await ended;
    t.equal(router.fastPathCount, before + 2);
    t.equal(await openDecisions(), 0);
  });

  test('a series that comes byte by byte, and one that ends in Flush', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await client.ask(parse('s', 'select name from customer where id = $1'), sync);
    const run = (id: string): Buffer[] => [
      bind('', 's', { values: [Buffer.from(id)] }),
      describe('P'),
      execute(),
      sync,
    ];
    const whole = await warm(client, () => run('2'));
    for (const byte of Buffer.concat(run('2'))) {
      client.send(Buffer.from([byte]));
      if (byte % 7 === 0) await pause(1);
    }
    t.strictSame(await client.until('Z'), whole);
    client.send(...run('2').slice(0, 3), flush);
    const lines = await client.until('C');
    t.strictSame(lines, whole.slice(0, -1));
    client.send(sync);
    t.strictSame(await client.until('Z'), whole.slice(-1));
  });

  test('a session that only asks fast is idle as soon as it rests, and not before', async (t) => {
    const client = await login('user:ada');
    t.teardown(() => client.end());
    await warm(client, () => [NAME]);
    await client.ask(query("set idle_session_timeout = '3s'"));
    t.equal(await isFast(() => client.ask(NAME)), true);
    const started = performance.now();
    for (let i = 0; i < 7; i++) {
      await pause(500); // far less than the time-out: a busy machine may make more of it
      t.match((await client.ask(NAME)).join(), /Ada/);
    }
    const rested = performance.now();
    t.ok(rested - started > 3_000);
    t.match((await client.until('closed')).join(), /57P05/);
    t.ok(performance.now() - rested > 2_900, 'not too early');
  });

  test('an answer beyond the cap ends as it does slowly', async (t) => {
    const capped = await startTestService({ settings: { caps: { ...shop.service.caps, rows: 1_000 } } });
    const here = await stageOn(capped);
    const client = await here.login('user:ada');
    await here.warm(client, () => [from(1490)]);
    let fast: string[] = [];
    t.equal(await here.isFast(async () => (fast = await client.ask(from(1)))), true);
    await client.ask(query('begin'));
    const slow = await client.ask(from(1));
    const plain = (l: string): string => l.replace(/request [0-9a-f-]{36}/, 'request');
    t.strictSame(fast.slice(0, -1).map(plain), slow.slice(0, -1).map(plain));
    const outcomes = (await capped.records()).filter((r) => r.kind === 'outcome' && r.action === 'query');
    t.match(outcomes.slice(-2), [{ outcome: outcomes.at(-1)?.outcome, code: outcomes.at(-1)?.code }, {}]);
    client.end();
    await here.frontend.stop(0);
    await capped.close();
  });

  test('what takes longer than it may ends as it does slowly', async (t) => {
    const hurried = await startTestService({
      settings: { caps: { ...shop.service.caps, timeoutMs: 1_000 } },
    });
    const here = await stageOn(hurried);
    const client = await here.login('user:ann');
    const text = query('select label from product where id = 1');
    await here.warm(client, () => [text]);
    const behindLock = async (): Promise<string> => {
      return hurried.engine.system.transaction(async (tx) => {
        await tx.script(sql`lock table shop.products`);
        return (await client.ask(text)).join();
      });
    };
    let fast = '';
    t.equal(await here.isFast(async () => (fast = await behindLock())), true);
    t.match(fast, /57014/);
    await client.ask(query('begin'));
    t.match(await behindLock(), /57014/);
    const [was, is] = (await hurried.records()).filter((r) => r.kind === 'outcome' && r.code !== null);
    t.match(was, { outcome: is?.outcome ?? 'none', code: is?.code ?? 'none', rows: 0 });
    client.end();
    await here.frontend.stop(0);
    await hurried.close();
  });

  test('a fast lane that forgets the epoch, or the log, is caught', async (t) => {
    t.teardown(() => serve(SHOP_POLICY));
    const client = await login('user:eu');
    t.teardown(() => client.end());
    const { isFor: isOf } = Route.prototype;
    const run = [bind('', 'kept'), execute(), sync];
    await client.ask(parse('kept', 'select name from customer where id < 9 order by id'), sync);
    await warm(client, () => run);
    await serve(SHOP_POLICY.replace('attributes: { region: eu }', 'attributes: { region: us }'));
    Route.prototype.isFor = () => true;
    const stale = (await client.ask(...run)).join();
    Route.prototype.isFor = isOf;
    t.match(stale, /Ada/, 'the epoch');
    t.notMatch((await client.ask(...run)).join(), /Ada/);

    const { begin } = PermittedRequest.prototype;
    const text = query('select name from customer where id = 3');
    await warm(client, () => [text]);
    PermittedRequest.prototype.begin = function (this: PermittedRequest, ...given) {
      const begun = begin.apply(this, given);
      if (begun) this.recorded = 'recorded';
      return begun;
    };
    log.hold();
    client.send(text);
    t.match((await client.until('Z')).join(), /Cy/, 'the log: it is told while it is held');
    PermittedRequest.prototype.begin = begin;
    log.release();
  });

  test('a fast lane that forgets the limit is caught', async (t) => {
    const limited = await startTestService();
    const { limiter } = sealedParts(limited.service);
    const here = await stageOn(
      limited,
      sealing(limited.service, { limiter: { ...limiter, takeIfLeft: () => true } }),
    );
    const client = await here.login('user:ada');
    await here.serve(SHOP_POLICY.replace('query: 100000', 'query: 12'));
    await here.warm(client, () => [NAME]);
    const known = (await limited.records()).length;
    const started = performance.now();
    const asked = 200;
    for (let i = 0; i < asked; i++) client.send(NAME);
    for (let i = 0; i < asked; i++) await client.until('Z');
    const seconds = Math.floor((performance.now() - started) / 1_000) + 2;
    const allowed = (await limited.records()).slice(known).filter((r) => r.decision === 'allow').length;
    t.ok(allowed > 12 * seconds, `${allowed} were let in, in ${seconds} s at the most`);
    client.end();
    await here.frontend.stop(0);
    await limited.close();
  });

  test('a gateway that is stopped has an outcome for each of its decisions', async (t) => {
    const stopped = await startTestService();
    const here = await stageOn(stopped);
    const clients = await Promise.all(['user:ada', 'user:ada', 'user:eu'].map((u) => here.login(u)));
    for (const client of clients) await here.warm(client, () => [NAME]);
    here.log.hold();
    for (const client of clients) client.send(NAME);
    await settled();
    const stopping = here.frontend.stop(0);
    await settled();
    here.log.release();
    await stopping;
    await stopped.open.close();
    t.match(await stopped.verdict(), { integrity: 'intact', openDecisions: 0 });
    await stopped.close();
  });
}

const postgres = await nativeOfRun();
if (postgres === null) tap.pass('no native Postgres for this run');
else {
  proveAtOnce();
  await postgres.stop();
  await suite();
}
