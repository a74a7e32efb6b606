import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { type Test, test } from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import type { Service } from '../../../src/service/service.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { connectPg } from '../../support/pg-client.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { startTestService, type TestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { bind, describe, execute, flush, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { decisionsAfter, servePg } from './support.js';

/** Compiling counts and is on record; what is prepared and run in one go is one question. */

const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
tap.setTimeout(600_000);
tap.teardown(() => catalogs.close());

interface World {
  readonly shop: TestService;
  readonly port: number;
  /** What was counted against the limits since the last call. */
  counted(): Counted;
  client(): Promise<Client>;
  /** The decisions that `ask` leaves, as `action objects`. */
  decided(count: number, ask: () => Promise<unknown>): Promise<readonly string[]>;
}

/** What a limiter was asked to count. */
type Counted = readonly string[];

async function start(t: Test, limits = ''): Promise<World> {
  const policy = limits === '' ? SHOP_POLICY : SHOP_POLICY.replace(/limits:[\s\S]*$/, `limits: ${limits}\n`);
  const shop = await startTestService({ policy });
  const { limiter } = sealedParts(shop.service);
  const counted: string[] = [];
  const service: Service = sealing(shop.service, {
    limiter: {
      ...limiter,
      take(bucket, identity) {
        counted.push(bucket);
        return limiter.take(bucket, identity);
      },
      takeIfLeft(bucket, identity) {
        const left = limiter.takeIfLeft(bucket, identity);
        if (left) counted.push(bucket);
        return left;
      },
    },
  });
  const { port } = await servePg(t, { ...shop, service }, { catalogs });
  return {
    shop,
    port,
    counted: () => counted.splice(0),
    client: async () => Client.login(port, 'user:ada', await shop.token('user:ada')),
    async decided(count, ask) {
      const known = (await shop.records()).length;
      await ask();
      const decisions = await decisionsAfter(shop, known, count);
      await new Promise((resolve) => setTimeout(resolve, 30)); // one more would come now
      const all = (await shop.records()).slice(known).filter((r) => r.kind === 'decision');
      t.equal(all.length, decisions.length);
      return all.map(told);
    },
  };
}

function told({ action, decision, objects }: AuditRecord): string {
  return `${decision} ${action} ${(objects ?? []).join()}`.trim();
}

const DATA = 'select id from customer where id = $1';
const CATALOG = 'select relname from pg_class where relname = $1';
const bound = bind('', '', { values: ['1'] });
const RUN = 'allow query osl.entities.customer';
const PREPARED = 'allow prepare osl.entities.customer';

test('a question that is prepared and run in one go has one decision', async (t) => {
  const { client: open, decided } = await start(t);
  const client = await open();
  const inOneGo: Readonly<Record<string, () => Promise<unknown>>> = {
    'one series': () => client.ask(parse('', DATA), bound, describe('P'), execute(), sync),
    'described first': () => client.ask(parse('', DATA), describe('S'), bound, execute(), sync),
    'with a flush between': async () => {
      client.send(parse('', DATA), describe('S'), flush);
      await client.until('T');
      await client.ask(bound, execute(), sync);
    },
    'a simple query': () => client.ask(query('select id from customer where id = 1')),
  };
  for (const [name, ask] of Object.entries(inOneGo)) t.same(await decided(1, ask), [RUN], name);
  t.same(await decided(1, () => client.ask(parse('', CATALOG), bound, execute(), sync)), ['allow catalog']);
  t.same(await decided(1, () => client.ask(parse('', 'show timezone'), bind('', ''), execute(), sync)), [
    'allow session',
  ]);
  client.end();
});

test('what is prepared and not run is on record by the end of its series', async (t) => {
  const { shop, client: open, decided } = await start(t);
  const client = await open();
  t.same(await decided(1, () => client.ask(parse('', DATA), sync)), [PREPARED]);
  t.same(await decided(1, () => client.ask(parse('', CATALOG), describe('S'), sync)), ['allow prepare']);
  t.same(await decided(1, () => client.ask(parse('', 'show timezone'), sync)), ['allow prepare']);
  const two = () =>
    client.ask(parse('a', DATA), parse('b', DATA), bind('', 'b', { values: ['1'] }), execute(), sync);
  t.same(await decided(2, two), [PREPARED, RUN], 'the next one puts the first on record');
  t.same(await decided(1, () => client.ask(bind('', 'a', { values: ['1'] }), execute(), sync)), [RUN]);
  t.same(await decided(1, () => client.ask(parse('', 'select nothing from customer'), sync)), [
    'error prepare osl.entities.customer',
  ]);
  const leaves = async (): Promise<void> => {
    client.send(parse('', DATA), flush);
    await client.until('1');
    client.end();
  };
  t.same(await decided(1, leaves), [PREPARED], 'and so does leaving');
  while ((await shop.verdict()).openDecisions !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const last = (await shop.records()).filter((r) => r.action === 'prepare' && r.kind === 'outcome');
  t.match(last.at(-1), { outcome: 'ok', rows: 0 });
  t.equal(new Set(last.map((r) => r.request_id)).size, last.length, 'each under its own id');
});

test('a cursor has two records, of DECLARE and of its question, however often it is fetched', async (t) => {
  const { client: open, decided } = await start(t);
  const client = await open();
  const ask = async (): Promise<void> => {
    await client.ask(query('declare c cursor for select id from customer order by id'));
    for (let i = 0; i < 4; i++) await client.ask(query('fetch 1 from c'));
  };
  await client.ask(query('begin'));
  t.same(await decided(2, ask), [PREPARED, RUN]);
  t.same(await decided(1, () => client.ask(query('fetch 1 from c'))), ['allow session'], 'nothing is left');
  client.end();
});

test('PREPARE is on record as what it prepares, and each EXECUTE as the question that it runs', async (t) => {
  const { client: open, decided } = await start(t);
  const client = await open();
  const ask = (text: string) => client.ask(query(text));
  t.same(await decided(1, () => ask(`prepare q as ${DATA}`)), [PREPARED]);
  t.same(await decided(3, async () => void (await ask('execute q(1); execute q(2); execute q(1)'))), [
    RUN,
    RUN,
    RUN,
  ]);
  t.same(await decided(1, () => client.ask(parse('', 'execute q(1)'), bind('', ''), execute(), sync)), [RUN]);
  t.same(await decided(1, () => client.ask(parse('', 'execute q(1)'), sync)), ['allow prepare']);
  t.same(await decided(1, () => client.ask(parse('', `prepare r as ${DATA}`), sync)), ['allow prepare']);
  t.same(await decided(1, () => ask(`prepare c as ${CATALOG}`)), ['allow prepare']);
  t.same(await decided(1, () => ask("execute c('x')")), ['allow catalog']);
  t.same(await decided(1, () => ask('execute q')), ['error session']);
  t.same(await decided(1, () => ask('execute none')), ['error session']);
  client.end();
});

const LIMITS = '{ query: 5, sample: 5, schema: 5, catalog: 5 }';

test('preparing counts as running does, and is refused as running is', async (t) => {
  const { client: open } = await start(t, LIMITS);
  const kinds: readonly (readonly [string, string])[] = [
    ['questions', DATA],
    ['the catalog', CATALOG],
    ['commands', 'show timezone'],
  ];
  for (const [what, text] of kinds) {
    const own = await open();
    await new Promise((resolve) => setTimeout(resolve, 1_100)); // into a window that nothing was counted in
    const begun = performance.now();
    const storm = Array.from({ length: 14 }, (_, i) => parse(`${what} ${i}`, `${text} -- ${i}`)).flatMap(
      (p) => [p, sync],
    );
    own.send(...storm);
    const lines: string[] = [];
    for (let i = 0; i < 14; i++) lines.push(...(await own.until('Z')));
    const seconds = (performance.now() - begun) / 1_000;
    const compiled = lines.filter((l) => l.startsWith('1')).length;
    const refused = lines.filter((l) => l.includes('53400')).length;
    t.ok(compiled <= 5 * (Math.floor(seconds) + 2), `${what}: ${compiled} in ${seconds.toFixed(1)} s`);
    t.ok(seconds > 0.9 || refused > 0, `${what}: they wait, or are refused`);
    own.end();
  }
});

test('what is prepared and run in one go counts once', async (t) => {
  const { shop, port, counted } = await start(t);
  const client = await connectPg({ port, user: 'user:ada', password: await shop.token('user:ada') });
  t.teardown(() => client.end());
  counted();
  for (let i = 0; i < 5; i++) await client.query({ text: DATA, values: [i] });
  t.same(counted(), Array(5).fill('query'));
  for (let i = 0; i < 5; i++) await client.query({ text: CATALOG, values: [`t${i}`] });
  t.same(counted(), Array(5).fill('catalog'));
});
