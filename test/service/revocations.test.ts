import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Revocation, RevokedTokens, tokenIdIn } from '../../policy/index.js';
import { RevocationFiles, type RevocationParts, Revocations } from '../../src/service/revocations.js';
import { until } from '../control/support.js';
import { ANN, type Failure, failureOf, ROOT, type Who, World } from '../proof/records/world.js';
import type { WireClient } from '../support/frontends.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import * as wire from '../wire/support/bytes.js';

/** Tokens that were revoked, as whoever holds one would still use it. */

t.setTimeout(120_000);

const ADA: Who = { subject: 'user:ada' };
const SAME = 'select name from customer where id = 1';
/** What the tests lock. */
const WAITS = 'select count(*) from "order"';

const E3001 = { code: 'E3001', message: /it was revoked/ };
const ENDED = { sqlstate: '28000', message: 'the token of this session was revoked' };
const E2003 = { code: 'E2003' };

/** Uses of a token of `who`; null where it was good. */
const USES: Readonly<Record<string, (world: World, token: string, who: Who) => Promise<Failure | null>>> = {
  REST: (world, token) => world.http(token, '/osl/query', { body: { osql: SAME } }),
  'REST, for something else': (world, token) => world.http(token, '/osl/conformance'),
  MCP: (world, token) => world.mcp(token, 'semantic_query', { osql: SAME }),
  'a login': (world, token, { subject }) => world.login(world.server.pgPort, subject, token),
};

/** Sessions, and what their clients send once their tokens are revoked. */
const SESSIONS: Readonly<
  Record<string, { readonly before: readonly Buffer[]; readonly after: readonly Buffer[] }>
> = {
  'a question as before': { before: [wire.query(SAME), wire.query(SAME)], after: [wire.query(SAME)] },
  'a statement that was prepared': {
    before: [Buffer.concat([wire.parse('s', SAME), wire.bind('', 's'), wire.execute(), wire.sync])],
    after: [wire.bind('', 's'), wire.execute(), wire.sync],
  },
  'a portal with rows left': {
    before: [
      wire.query('begin'),
      Buffer.concat([
        wire.parse('', 'select id from customer order by id'),
        wire.bind('p', ''),
        wire.execute('p', 1),
        wire.sync,
      ]),
    ],
    after: [wire.execute('p', 1), wire.sync],
  },
  'a cursor': {
    before: ['begin', 'declare c cursor for select id from customer', 'fetch 1 from c'].map((q) =>
      wire.query(q),
    ),
    after: [wire.query('fetch 1 from c')],
  },
  'a cursor WITH HOLD': {
    before: ['declare c cursor with hold for select id from customer', 'fetch 1 from c'].map((q) =>
      wire.query(q),
    ),
    after: [wire.query('fetch all from c')],
  },
};

/** Questions that run while their token is revoked. */
const RUNNING: Readonly<Record<string, (world: World, token: string) => Promise<Failure | null>>> = {
  REST: (world, token) => world.http(token, '/osl/query', { body: { osql: WAITS } }),
  'a stream of REST': (world, token) =>
    world.http(token, '/osl/query', { body: { osql: WAITS }, headers: { accept: 'application/x-ndjson' } }),
  MCP: (world, token) => world.mcp(token, 'semantic_query', { osql: WAITS }),
  'a simple query': (world, token) => inSession(world, token, wire.query(WAITS)),
  'an extended query': (world, token) =>
    inSession(world, token, wire.parse('', WAITS), wire.bind('', ''), wire.execute(), wire.sync),
  COPY: (world, token) => inSession(world, token, wire.query(`copy (${WAITS}) to stdout`)),
};

async function inSession(world: World, token: string, ...parts: Buffer[]): Promise<Failure | null> {
  const client = await world.session(ANN, token);
  client.send(...parts);
  const all = await client.messagesUntil('the end');
  const end = failureOf(all.filter(({ type }) => type === 'E').slice(-1));
  return end?.message === ENDED.message ? failureOf(all) : null;
}

/** What an admin is told of the sessions. */
async function sessions(
  world: World,
): Promise<readonly { readonly id: string; readonly token_id: string }[]> {
  const reply = await fetch(`http://127.0.0.1:${world.server.adminPort}/admin/sessions`, {
    headers: { authorization: `Bearer ${await world.token(ROOT)}` },
  });
  const body = (await reply.json()) as { sessions: { id: string; token_id: string }[] }; // by the API's document
  return body.sessions;
}

function revocation(what: Pick<Revocation, 'kind' | 'name'>, until = Date.now() + 360_000): Revocation {
  return { ...what, id: randomUUID(), at: Date.now(), until };
}

async function revoke(t: Test, world: World, what: object): Promise<void> {
  t.equal(await world.http(ROOT, '/admin/tokens/revoke', { body: what }), null, JSON.stringify(what));
}

const postgres = await startNativePostgres();
if (postgres === null) t.test('revoked tokens', { skip: NO_NATIVE }, async () => undefined);
else
  await t.test('revoked tokens', async (t) => {
    const world = await World.start(postgres);
    t.teardown(async () => {
      await world.stop();
      await postgres.stop();
    });
    await t.test('by its id: no use of it goes on, and others of its subject do', async (t) => {
      const [token, other] = [await world.token(ANN), await world.token(ANN)];
      for (const [name, use] of Object.entries(USES))
        for (let i = 0; i < 3; i++) t.equal(await use(world, token, ANN), null, `${name}, before`);
      await revoke(t, world, { token_id: tokenIdIn(token) });
      for (const [name, use] of Object.entries(USES)) {
        t.match(await use(world, token, ANN), E3001, name);
        t.equal(await use(world, other, ANN), null, `${name}, with another token`);
      }
      const client = await world.session(ANN, other);
      t.match(failureOf(await client.exchange(wire.query(`set osl.token = '${token}'`))), E3001, 'a renewal');
      t.equal(failureOf(await client.exchange(wire.query(SAME))), null, 'which leaves the session as it was');
      client.end();
      const denied = (await world.recorded(() => true)).filter(({ code }) => code === 'E3001');
      t.equal(denied.length, Object.keys(USES).length + 1);
      for (const { decision, subject } of denied)
        t.match(
          { decision, subject },
          { decision: 'deny', subject: 'user:ann' },
          'on record, with who it was',
        );
    });

    for (const [name, { before, after }] of Object.entries(SESSIONS))
      await t.test(`${name} gives nothing more, and the session has ended`, async (t) => {
        const token = await world.token(ANN);
        const client = await world.session(ANN, token);
        for (const message of before) t.equal(failureOf(await client.exchange(message)), null);
        await revoke(t, world, { token_id: tokenIdIn(token) });
        await said(t, client, after);
      });

    await t.test('what runs ends, on every surface', async (t) => {
      for (const [name, ask] of Object.entries(RUNNING)) {
        const token = await world.token(ANN);
        await world.whileOrdersAreLocked(async (blocked) => {
          const ended = ask(world, token);
          await blocked();
          await revoke(t, world, { token_id: tokenIdIn(token) });
          t.match(await ended, E2003, name);
        });
      }
    });

    await t.test('by a session: the token that it goes on under by then', async (t) => {
      const [first, second] = [await world.token(ANN), await world.token(ANN)];
      const client = await world.session(ANN, first);
      t.equal(failureOf(await client.exchange(wire.query(`set osl.token = '${second}'`))), null);
      const { id } = (await sessions(world)).find(({ token_id }) => token_id === tokenIdIn(second)) ?? {};
      await revoke(t, world, { session: id });
      await said(t, client, []);
      t.match(await USES['REST']?.(world, second, ANN), E3001);
      t.equal(await USES['REST']?.(world, first, ANN), null);
      for (const session of ['1', String(id), 'nonsense'])
        t.match(await world.http(ROOT, '/admin/tokens/revoke', { body: { session } }), { code: 'E4040' });
    });

    await t.test('by another process, which could not tell this one', async (t) => {
      const token = await world.token(ANN);
      const client = await world.session(ANN, token);
      const began = Date.now();
      await new RevocationFiles(world.dataDir).write(
        revocation({ kind: 'token', name: tokenIdIn(token) }),
        false,
      );
      await until(async () => (await USES['REST']?.(world, token, ANN)) !== null);
      t.comment(`refused ${Date.now() - began} ms later`);
      await said(t, client, []);
    });

    await t.test(
      'by its subject: all that were issued by then, also where somebody acts for it',
      async (t) => {
        const acting: Who = { subject: ANN.subject, chain: [ADA.subject, ANN.subject] };
        const [own, through, other] = [
          await world.token(ADA),
          await world.token(acting),
          await world.token(ANN),
        ];
        t.equal(await USES['REST']?.(world, through, acting), null);
        await revoke(t, world, { subject: ADA.subject });
        for (const [name, use] of Object.entries(USES)) {
          t.match(await use(world, own, ADA), E3001, name);
          t.match(await use(world, through, acting), E3001, `${name}, by who acts for it`);
          t.match(await use(world, await world.token(ADA), ADA), E3001, `${name}, as clocks may differ`);
          t.equal(await use(world, other, ANN), null, `${name}, of somebody else`);
        }
      },
    );

    await t.test('who revoked what is on record, and nobody but an admin may', async (t) => {
      const made = (await world.records()).filter((r) => r.action === 'admin_revoke' && r.kind === 'outcome');
      t.match(made[0], { subject: ROOT.subject, outcome: 'ok' });
      const kinds = made.map(({ detail }) => Object.keys(JSON.parse(String(detail)) as object).join());
      t.ok(
        kinds.includes('token') && kinds.includes('subject') && kinds.includes('session,token'),
        kinds.join(),
      );
      const body = { subject: 'user:den' };
      t.match(await world.http(ANN, '/admin/tokens/revoke', { body }), { code: 'E2101' });
      t.match(await world.http(ANN, '/admin/tokens/revoked'), { code: 'E2101' });
      const admin = await world.token(ROOT);
      t.equal(await world.http(admin, '/admin/tokens/revoke', { body }), null);
      t.match(
        await world.http(admin, '/admin/tokens/revoke', { body }),
        { message: /already used for a change/ },
        'once',
      );
      for (const wrong of [
        {},
        { ...body, token_id: 'x' },
        { subject: '' },
        { subject: 'a\u0000' },
        { jti: 'x' },
      ])
        t.match(await world.http(ROOT, '/admin/tokens/revoke', { body: wrong }), { code: 'E0511' });
    });
  });

/** The client is told that its token was revoked, and nothing else. */
async function said(t: Test, client: WireClient, after: readonly Buffer[]): Promise<void> {
  const messages = await client.exchange(...after);
  t.match(failureOf(messages), ENDED);
  t.equal(messages.filter(({ type }) => type === 'D').length, 0, 'no row comes');
  client.end();
}

const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Processes of one data directory; `share` tells other gateways. */
function opened(dataDir: string, more: Partial<RevocationParts> = {}): Promise<Revocations> {
  const files = new RevocationFiles(dataDir);
  const told = async () => undefined;
  return Revocations.open({
    ...{
      files,
      log: LOG,
      removesExpired: true,
      notifyProcesses: told,
      lifetimeMs: () => 360_000,
      share: null,
    },
    ...more,
  });
}

const ONE = { chain: ['user:ann'], tokenId: 'one', issuedAt: 1_700_000_000 };

t.test('what is revoked outlives the process, until it has ended by itself', async (t) => {
  const dir = t.testdir();
  let lifetime = 60_000;
  const first = await opened(dir, { lifetimeMs: () => lifetime });
  t.match(await first.revoke({ kind: 'token', name: 'one' }), { shared: null, revocation: { name: 'one' } });
  lifetime = 0;
  await first.revoke({ kind: 'subject', name: 'user:bob' });
  first.close();
  const second = await opened(dir);
  t.same(
    second.revoked.all().map(({ name }) => name),
    ['one'],
  );
  t.equal(second.revoked.has(ONE), true);
  t.equal(readdirSync(join(dir, 'revoked')).length, 1, 'what has ended is swept');
  second.close();
});

t.test('a file that is not as it was written keeps a server from starting without it', async (t) => {
  for (const text of ['', '{', '{}', '{"id":"x","kind":"all","name":"x","at":1,"until":2}']) {
    const dir = t.testdir();
    mkdirSync(join(dir, 'revoked'), { recursive: true });
    writeFileSync(join(dir, 'revoked', `${randomUUID()}.json`), text);
    await t.rejects(opened(dir), /is not as it was written/, text);
  }
});

t.test('what other gateways could not be told stays so, until they are', async (t) => {
  const dir = t.testdir();
  const files = new RevocationFiles(dir);
  const revocations = await opened(dir, { share: async () => false });
  const { shared, revocation: made } = await revocations.revoke({ kind: 'token', name: 'one' });
  revocations.close();
  t.equal(shared, false);
  t.same(await files.unshared(), [made]);
  await files.markShared(made);
  t.same(await files.unshared(), []);
  t.same(await files.read(), [made]);
});

t.test('several may note at once that a revocation is shared, and store it again', async (t) => {
  const dir = t.testdir();
  const [one, two] = [new RevocationFiles(dir), new RevocationFiles(dir)];
  for (let i = 0; i < 100; i++) {
    const made: Revocation = { id: randomUUID(), kind: 'token', name: `t-${i}`, at: 1, until: 2 };
    await one.write(made, true);
    // The request that revoked, the poll of the control database, and what that one reads there.
    await Promise.all([one.markShared(made), two.markShared(made), two.write(made, false)]);
    t.same((await two.read()).at(0), made);
    await one.remove(made.id);
  }
  t.same(await one.unshared(), []);
});

t.test('while nothing is revoked, nothing of a token is looked at', (t) => {
  const revoked = new RevokedTokens();
  const nothing = new Proxy(ONE, {
    get: () => {
      throw new Error('looked at');
    },
  });
  t.equal(revoked.has(nothing), false);
  t.end();
});
