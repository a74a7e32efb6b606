import t from 'tap';
import { breakEverywhere, OFFSETS, type Plan, SEED } from './cases.js';
import { play, within } from './play.js';
import { TRACES } from './traces.js';
import { openWorld } from './world.js';

const UNANSWERED = 'the database does not answer';

/**
 * Connections to the Postgres behind the gateway that break at a byte: the statements that ran there fail with 08006, or
 * never knew of it; the client's session goes on, and the next client gets a new one upstream.
 */
const CODES = ['08006', '25P02', '34000'];
const world = await openWorld({ engine: 'native' });
const skip = world === null ? 'no native Postgres here' : false;

t.setTimeout(86_400_000);
t.comment(`seed ${SEED}, ${OFFSETS} places`);
t.teardown(() => world?.close());

t.test('between the gateway and its Postgres', { skip }, async (t) => {
  if (world?.back == null) return;
  const deeds: Plan['deeds'] = {
    reset: ['reset', 1],
    cut: ['cut', 0.3],
    'half-close': ['half-close', 0.3],
    pg_terminate_backend: [() => world.terminate(), 0.3],
    delay: ['delay', 0.3],
  };
  for (const port of [world.port, world.sharedPort]) {
    for (const [name, trace] of Object.entries(TRACES).filter(([name]) => name !== 'a login')) {
      const shared = port === world.sharedPort;
      // What has been short three times shares a session with other callers' statements.
      if (shared) for (let i = 0; i < 4; i++) await play(world, port, 'token', trace);
      const plan: Plan = {
        name: shared ? `${name}, on shared sessions` : name,
        login: 'token',
        trace,
        deeds,
        proxy: world.back,
        port,
        next: port,
        codes: CODES,
      };
      const { wrong } = await breakEverywhere(t, world, plan);
      t.same(wrong, [], plan.name);
    }
  }
});

t.test('while the gateway connects to it', { skip }, async (t) => {
  if (world?.back == null) return;
  const { back } = world;
  const plan: Plan = {
    name: 'a first statement',
    login: 'token',
    trace: TRACES['simple'] ?? [],
    deeds: {
      reset: ['reset', 1],
      cut: ['cut', 0.5],
      'half-close': ['half-close', 0.5],
      delay: ['delay', 0.3],
    },
    proxy: back,
    port: world.port,
    codes: CODES,
    next: world.port,
    prepare: async () => {
      // One that was on its way while the others were ended is ended next.
      const ended = async (): Promise<boolean> => {
        await world.terminate();
        return within(1_000, () => back.links === 0);
      };
      for (let tries = 0; !(await ended()); tries++)
        if (tries === 60) throw new Error('a session outlives its end');
    },
  };
  t.same((await breakEverywhere(t, world, plan)).wrong, []);
});

t.test('in the end the log holds and nothing of ours went wrong', { skip }, async (t) => {
  t.match(await world?.shop.verdict(), { integrity: 'intact', completeness: 'complete' }, 'the log holds');
  // Whoever looks after the database may have been cut off as well, and says so.
  const errors = world?.shop.lines.filter((l) => l.level === 'error' && l.message !== UNANSWERED);
  t.same(errors?.slice(0, 3), [], 'no internal error');
  t.ok(
    ((await world?.backends()) ?? []).every((b) => b.state === 'idle'),
    'and every session upstream is idle',
  );
});
