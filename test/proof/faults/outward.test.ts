import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { SKIP } from '../../control/support.js';
import {
  ACCOUNTS,
  type Part,
  STOCK,
  type Surrounded,
  type Surroundings,
  surroundings,
} from '../../service/operations/surroundings.js';
import { osl } from '../../tools/cli/support.js';

/**
 * Every connection that a started gateway makes by itself, broken in every state in every way, one after another while
 * questions are asked: the process lives, questions that do not need the connection are answered, those that do have
 * their code, and afterwards all is as before, without a restart. `OSL_FAULT_ROUNDS` says how often all of the table is
 * gone through; without it, as in CI, half of it is, with each part in each state and with each fault.
 */

const ROUNDS = Number(process.env['OSL_FAULT_ROUNDS'] ?? 0);

t.setTimeout(Math.max(1, ROUNDS) * 300_000);

/** What a question may hear while a part is broken; all of them are answered where nothing stands here. */
const HEARD: Readonly<Partial<Record<Part, RegExp>>> = {
  data: /^(200|502 E0523)$/,
  audit: /^(200|503 E5030)$/,
};

/** Broken at once, whatever is under way. */
const DEEDS = ['reset', 'cut', 'half-close', 'garbage'] as const;

/** What waits for its turn in the database while it is broken, by the table that is locked. */
const WAITS: readonly (readonly [Part, string])[] = [
  ['control', 'osl_control.policy_activation'],
  ['limits', 'osl_control.limit_count'],
  ['audit', 'osl_audit.record'],
  ['witness', 'osl_witness.checkpoint'],
  ['system', 'shop.stock'],
];

/** How long a part that is silent is bound to be noticed: nobody waits for it any longer. ms */
const SILENCES: Readonly<Record<Part, number>> = {
  data: 300,
  system: 2_500,
  control: 1_000,
  limits: 1_500,
  audit: 5_600,
  issuer: 500,
  witness: 500,
  collector: 500,
};

/** What has a connection at any time. */
const KEPT: ReadonlySet<Part> = new Set([
  'data',
  'system',
  'control',
  'audit',
  'limits',
  'witness',
  'collector',
]);

interface Case {
  readonly part: Part;
  readonly state: string;
  readonly fault: string;
  readonly inCi: boolean;
  /** Breaks it, and mends it. */
  readonly strike: (world: Surroundings) => Promise<void>;
}

const PARTS = Object.keys(SILENCES) as readonly Part[]; // of the same union

/** By turns, so that a part has a while between two of its own. */
const CASES: readonly Case[] = [
  ...inTurns(
    PARTS.map((part, n): readonly Case[] => [
      ...DEEDS.map(
        (deed, i): Case => ({
          part,
          inCi: i === 0 || i === 1 + (n % 3),
          state: 'idle, or in the middle of a statement',
          fault: deed,
          strike: async ({ proxies }) => proxies[part].strike(deed),
        }),
      ),
      ...[0, 20].flatMap((after) =>
        (['reset', 'half-close', 'garbage'] as const).map(
          (deed, i): Case => ({
            part,
            inCi: i === (n + after) % 3,
            state: after === 0 ? 'connecting' : 'logging in',
            fault: deed,
            strike: async ({ proxies }) => {
              proxies[part].arm({ direction: 'down', after, deed });
              proxies[part].strike('reset');
              await sleep(50);
              proxies[part].arm(null);
            },
          }),
        ),
      ),
      {
        part,
        inCi: true,
        state: 'any',
        fault: 'nothing listens',
        strike: async ({ proxies }) => {
          await proxies[part].shut();
          await sleep(300);
          await proxies[part].open();
        },
      },
      {
        part,
        inCi: true,
        state: 'any',
        fault: 'silence',
        strike: async ({ proxies }) => {
          proxies[part].silence();
          await sleep(SILENCES[part]);
          proxies[part].restore();
        },
      },
    ]),
  ),
  ...WAITS.map(
    ([part, table]): Case => ({
      part,
      inCi: true,
      state: 'a statement that waits for a lock',
      fault: 'reset',
      strike: async (world) => {
        const url = part === 'audit' ? world.table.postgres.url : world.house.postgres.url;
        await whileLocked(url, table, async () => world.proxies[part].strike('reset'));
      },
    }),
  ),
];

function inTurns<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}

async function whileLocked(url: string, table: string, strike: () => Promise<void>): Promise<void> {
  const holder = new pg.Client(url);
  await holder.connect();
  await holder.query(`begin; lock table ${table} in access exclusive mode`);
  await sleep(250);
  await strike();
  await sleep(50);
  await holder.query('rollback');
  await holder.end();
}

/** Asks for as long as it is told to. Gives all that was heard. */
function asking(gateway: Surrounded): { stop(): Promise<ReadonlySet<string>> } {
  const heard = new Set<string>();
  let over = false;
  const ask = async (osql: string, token?: string): Promise<void> => {
    while (!over) {
      heard.add(await gateway.asks(osql, token).catch((error: unknown) => `no answer: ${String(error)}`));
      await sleep(60);
    }
  };
  const issued = gateway.issued();
  const all = [ask(ACCOUNTS), ask(STOCK), ask(ACCOUNTS, issued)];
  return {
    stop: async () => {
      over = true;
      await Promise.all(all);
      return heard;
    },
  };
}

/** Until everything is as before. */
async function healed(gateway: Surrounded): Promise<void> {
  const issued = gateway.issued();
  for (let calm = 0; calm < 2; calm += 1) {
    const heard = [
      await gateway.asks(ACCOUNTS),
      await gateway.asks(STOCK),
      await gateway.asks(ACCOUNTS, issued),
    ];
    const isReady = (await gateway.get('/ready')).status === 200;
    if (heard.some((one) => one !== '200') || !isReady) calm = -1;
    await sleep(25);
  }
}

t.test('connections outward', { skip: SKIP }, async (t) => {
  const world = await surroundings(t);
  const gateway = await world.serve(t);
  await healed(gateway);
  const cases =
    ROUNDS === 0 ? CASES.filter(({ inCi }) => inCi) : Array.from({ length: ROUNDS }, () => CASES).flat();
  for (const { part, state, fault, strike } of cases) {
    const name = `${part}, ${state}: ${fault}`;
    const questions = asking(gateway);
    await sleep(30);
    while (KEPT.has(part) && world.proxies[part].links === 0) await sleep(20);
    await strike(world);
    await sleep(30);
    const heard = await questions.stop();
    const wrong = [...heard].filter((one) => !(HEARD[part] ?? /^200$/).test(one));
    t.same(wrong, [], name);
    await healed(gateway);
    if (!gateway.alive) throw new Error(`${name}: the gateway ended: ${gateway.server.stderr}`);
  }
  t.comment(`${cases.length} of ${CASES.length} cases`);

  await t.test('a publish whose transaction is cut is told so, and goes well the next time', async (t) => {
    const holder = new pg.Client(world.house.postgres.url);
    await holder.connect();
    await holder.query("select pg_advisory_lock(hashtextextended('osl_control policy demo', 0))");
    const told = gateway.publishes('cut');
    while ((await holder.query(IN_TRANSACTION)).rows.length === 0) await sleep(20);
    world.proxies.control.strike('reset');
    t.equal(await told, '503 E5036');
    await holder.end();
    t.equal(await gateway.publishes('whole'), '201');
  });

  await t.test('a control database that is silent for longer than it may is not a policy', async (t) => {
    world.proxies.control.silence();
    while ((await gateway.asks()) !== '503 E2001') await sleep(50);
    world.proxies.control.restore();
    await healed(gateway);
    t.pass('and it goes on by itself');
  });

  t.notMatch(gateway.server.stderr, /an error that nothing handled/);
  t.same(
    await world.table.owner(RECORDED, [gateway.recorded]),
    [],
    `each of ${gateway.recorded.length} requests is on record`,
  );
  await gateway.server.signal('SIGTERM');
  const verified = await osl(['audit', 'verify', '--data-dir', gateway.server.dataDir], {
    env: { OSL_AUDIT_SINK: 'postgres', OSL_AUDIT_URL: world.table.readerUrl },
  });
  t.equal(verified.code, 0, verified.stdout + verified.stderr);
});

const IN_TRANSACTION = `
  select pid from pg_stat_activity
   where datname = current_database() and application_name = 'osl control' and wait_event = 'advisory'`;

const RECORDED = `
  select id from unnest($1::text[]) as id
   where id not in (select record::jsonb->>'request_id' from osl_audit.record where record::jsonb->>'kind' = 'decision')`;
