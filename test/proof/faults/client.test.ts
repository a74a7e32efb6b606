import t from 'tap';
import { breakEverywhere, OFFSETS, type Plan, SEED } from './cases.js';
import { TRACES } from './traces.js';
import { openWorld } from './world.js';

/**
 * Connections of clients that break at a byte: whatever the client is left with, its upstream session is free again, each
 * decision has its outcome, and the next client is served.
 */
const DEEDS: Plan['deeds'] = {
  reset: ['reset', 1],
  cut: ['cut', 0.5],
  'half-close': ['half-close', 0.5],
  delay: ['delay', 0.25],
};
/** The embedded engine starts anew where a statement has to be stopped, so it is tried with fewer. */
const EMBEDDED: readonly string[] = ['simple', 'extended, with a row limit', 'a stream'];

t.setTimeout(86_400_000);
t.comment(`seed ${SEED}, ${OFFSETS} places`);

for (const engine of ['native', 'embedded'] as const) {
  t.test(`between a client and the gateway, on the ${engine} engine`, async (t) => {
    const world = await openWorld({ engine });
    if (world === null) {
      t.pass('# SKIP: no native Postgres here');
      return;
    }
    t.teardown(() => world.close());
    const plan = {
      deeds: DEEDS,
      proxy: world.front,
      port: world.front.port,
      codes: ['57014'],
      next: world.port,
    } as const;
    for (const [name, trace] of Object.entries(TRACES)) {
      if (engine === 'embedded' && !EMBEDDED.includes(name)) continue;
      const { wrong } = await breakEverywhere(t, world, { ...plan, name, login: 'token', trace });
      t.same(wrong, [], name);
    }
    const login = TRACES['a login'] ?? [];
    const { wrong } = await breakEverywhere(t, world, {
      ...plan,
      name: 'a login by SCRAM',
      login: 'password',
      trace: login,
    });
    t.same(wrong, [], 'a login by SCRAM');
    t.match(await world.shop.verdict(), { integrity: 'intact', completeness: 'complete' }, 'the log holds');
    t.same(world.shop.lines.filter((l) => l.level === 'error').slice(0, 3), [], 'no internal error');
  });
}
