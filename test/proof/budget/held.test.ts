import pg from 'pg';
import t, { type Test } from 'tap';
import { BODIES } from './bodies.js';
import { Gateway, type Tokens } from './gateway.js';
import { FAMILIES, largest } from './texts.js';

/**
 * No text under 1 MiB holds the thread that serves everybody for more than 50 ms, by whatever way it comes. The gateway
 * runs in a process of its own and measures itself, in time on a processor.
 */

const MOST_MS = 50;
/** By how many ways each text comes, at each size; the ways take turns. Nightly: all of them, and more sizes. */
const EACH = Number(process.env['OSL_BUDGET_WAYS'] ?? 1);
/** Below 1 MiB with what stands around a text in a body; and sizes at which other limits are reached. */
const SIZES = EACH > 1 ? [2_048, 4_000, 16_000, 60_000, 180_000, 1_040_000] : [70_000, 1_040_000];
/** Families take turns between the sizes, but at night: `compile.test.ts` compiles each of them at every size. */
const sizesOf = (family: number): readonly number[] =>
  EACH > 1 ? SIZES : SIZES.filter((_, i) => i === family % SIZES.length);
/** A neighbour on the same core is not the text's fault, and gone after a while: what was slow is a suspect until the end. */
const ROUNDS = 3;

t.setTimeout(600_000);

const gateway = await Gateway.start();

const connected = async ({ token }: Tokens): Promise<pg.Client> => {
  const [host, port] = ['127.0.0.1', gateway.wirePort];
  const made = new pg.Client({ host, port, user: 'user:ann', password: token, database: 'osl' });
  made.on('error', () => undefined);
  await made.connect();
  return made;
};
let tokens = await gateway.tokens();
let client = await connected(tokens);

/** Before the token ends that the session came with. */
async function renewed(): Promise<void> {
  const fresh = await gateway.tokens();
  if (fresh === tokens) return;
  await client.end();
  tokens = fresh;
  client = await connected(tokens);
}

const query = (body: object): Promise<unknown> => gateway.post('/osl/query', JSON.stringify(body), 'token');
const asked = async (config: pg.QueryConfig & { queryMode?: string }): Promise<void> => {
  try {
    await client.query(config);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error; // only an answer of the gateway's is one
  }
};

const WAYS: Readonly<Record<string, (text: string) => Promise<unknown>>> = {
  explain: (text) => query({ osql: text, explain: true }),
  parse: (text) => asked({ text, queryMode: 'extended' }),
  sql: (text) => query({ sql: text }),
  simple: (text) => asked({ text }),
  osql: (text) => query({ osql: text }),
};

async function heldBy(ask: () => Promise<unknown>): Promise<number> {
  await renewed();
  return gateway.heldBy(ask, MOST_MS);
}

/** What was slow in each of its tries, to be tried again when all else has been. */
class Suspects {
  readonly #of = new Map<string, () => Promise<unknown>>();

  async ask(name: string, ask: () => Promise<unknown>): Promise<void> {
    if ((await heldBy(ask)) > MOST_MS) this.#of.set(name, ask);
  }

  async judge(t: Test): Promise<void> {
    for (const [name, ask] of this.#of) {
      let least = Number.POSITIVE_INFINITY;
      for (let round = 0; round < ROUNDS && least > MOST_MS; round++)
        least = Math.min(least, await heldBy(ask));
      t.ok(least <= MOST_MS, `${name}: held for ${least.toFixed(0)} ms`);
    }
  }
}

t.teardown(async () => {
  await client.end();
  gateway.end();
});

// Code that runs for the first time is slow whatever it is asked.
for (let i = 0; i < 20; i++)
  for (const way of Object.values(WAYS))
    await way(`select id, name from customer where id in (${i}, 2) order by name`);

t.test('no text holds it', { timeout: 600_000 }, async (t) => {
  const names = Object.keys(WAYS);
  const suspects = new Suspects();
  let turn = 0;
  for (const [i, family] of FAMILIES.entries()) {
    for (const size of sizesOf(i)) {
      const { text, n } = largest(family, size);
      const ways = Array.from(
        { length: Math.min(EACH, names.length) },
        () => names[turn++ % names.length] ?? 'osql',
      );
      for (const name of ways)
        await suspects.ask(
          `${family.name}: ${n}, ${text.length} units, by ${name}`,
          () => WAYS[name]?.(text) ?? Promise.resolve(),
        );
    }
  }
  await suspects.judge(t);
  t.ok(turn >= FAMILIES.length * sizesOf(0).length, 'all were asked');
});

t.test('nor do 100,000 values', { timeout: 300_000 }, async (t) => {
  const values = Array.from({ length: 100_000 }, (_, i) => i).join(',');
  const suspects = new Suspects();
  for (const [name, way] of Object.entries(WAYS)) {
    const world = name === 'sql' ? 'shop.customers' : 'customer';
    await suspects.ask(`by ${name}`, () => way(`select id from ${world} where id in (${values})`));
  }
  await suspects.judge(t);
  t.pass('all were asked');
});

t.test('nor does a body', { timeout: 300_000 }, async (t) => {
  const suspects = new Suspects();
  for (const family of BODIES) {
    for (const size of SIZES) {
      const { text, n } = largest(family, size);
      await suspects.ask(`${family.name}: ${n}, ${text.length} units, to ${family.path}`, () =>
        gateway.post(family.path, text, family.admin === true ? 'root' : 'token'),
      );
    }
  }
  await suspects.judge(t);
  t.pass('all were sent');
});
