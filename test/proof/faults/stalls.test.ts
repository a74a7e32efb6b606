import { setTimeout } from 'node:timers/promises';
import t from 'tap';
import { startNativePostgres } from '../../support/native-postgres.js';
import { proveAtOnce } from '../lanes/thrice.js';
import { OFFSETS, SEED } from './cases.js';
import { judge } from './judge.js';
import { ask, play, unsettled, within } from './play.js';
import { TRACES } from './traces.js';
import { openWorld, type World } from './world.js';

/**
 * An upstream that falls silent, and nobody says so: the client hears of it when its time is over, and what it waited for
 * is given up a few seconds later.
 */
const TIMEOUT_MS = 1_000;
/** A session that owes an answer for so long is given up. */
const GIVEN_UP_MS = 10_000;
const COUNT = /^D 4$/m;

t.setTimeout(600_000);
t.comment(`seed ${SEED}, ${OFFSETS} places`);
proveAtOnce('unless run again');
const server = await startNativePostgres();
const skip = server === null ? 'no native Postgres here' : false;
t.teardown(() => server?.stop());

type Stalled = (world: World & { back: NonNullable<World['back']> }) => Promise<string | null>;

const CASES: Readonly<Record<string, Stalled>> = {
  'an answer that stops in the middle': async (world) => {
    const stream = TRACES['a stream'] ?? [];
    const whole = await play(world, world.port, 'token', stream);
    world.back.arm({ direction: 'down', after: 300_000, deed: 'stall' });
    const { heard, fault } = await play(world, world.port, 'token', stream);
    return fault ?? judge(heard, whole.heard, ['57014']) ?? unsettled(world, ['57014']);
  },
  'a session that is shared': async (world) => {
    const port = world.sharedPort;
    const question = 'select count(*) from customer';
    let [first, before] = ['', await world.backends()];
    // Shared sessions are made when a statement first asks for one. One that is on its way when the fault is armed may
    // take it; then the client is answered, and the fault is armed again.
    for (let tries = 0; tries < 5 && !first.includes('C57014'); tries += 1) {
      for (let calm = 0; calm < 3; ) {
        for (let i = 0; i < 4; i++) await ask(world, question, port);
        await setTimeout(300);
        const now = await world.backends();
        calm = now.length === before.length ? calm + 1 : 0;
        before = now;
      }
      world.back.arm({ direction: 'down', after: 3, deed: 'stall' });
      first = await ask(world, question, port);
      if (!first.includes('C57014') && !COUNT.test(first)) break;
    }
    if (!first.includes('C57014')) return `the first client is told ${first}`;
    const started = Date.now();
    do {
      const next = await ask(world, question, port);
      if (!COUNT.test(next)) return `while one is silent, the next client is told ${next}`;
    } while (Date.now() - started < GIVEN_UP_MS);
    const gone = async (): Promise<boolean> => {
      const now = (await world.backends()).map((b) => b.pid);
      return before.some(({ pid }) => !now.includes(pid));
    };
    if (!(await within(120_000, gone))) return 'the silent session is still held';
    return unsettled(world, [], port);
  },
  'a session that is being set up': async (world) => {
    await world.terminate();
    world.back.arm(null);
    await ask(world, 'select count(*) from customer');
    const total = world.back.passed('down');
    await world.terminate();
    world.back.arm({ direction: 'down', after: total - 400, deed: 'stall' });
    const first = await ask(world, 'select count(*) from customer');
    if (!first.includes('C57014')) return `the first client is told ${first}`;
    return unsettled(world, ['57014', '08006']);
  },
};

t.test('what falls silent is given up, and the next client is served', { skip }, async (t) => {
  if (server === null) return;
  const opened: [name: string, work: Stalled, world: World][] = [];
  // One after the other, since a service is told by its environment where its database is.
  for (const [name, work] of Object.entries(CASES)) {
    const world = await openWorld({ engine: 'native', server, timeoutMs: TIMEOUT_MS });
    if (world === null) throw new Error('a server is given');
    t.teardown(() => world.close());
    opened.push([name, work, world]);
  }
  await Promise.all(
    opened.map(async ([name, work, world]) => {
      const { back } = world;
      if (back === null) throw new Error('a native world has a proxy behind it');
      t.equal(await work(Object.assign(world, { back })), null, name);
    }),
  );
});
