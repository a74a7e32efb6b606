import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { PermittedRequest } from '../../../src/ask/request/permitted-request.js';
import { RouteBook, type TextRoutes } from '../../../src/ask/routes/route.js';
import { Lanes } from '../../../src/engine/lanes.js';
import { FrontendEncoder } from '../../../src/engine/protocol/encoder.js';
import type { SentValue } from '../../../src/engine/statement.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { proveAtOnce } from '../lanes/thrice.js';
import { diceFrom } from '../oracle/dice.js';
import { Caller, type Difference } from './caller.js';
import { CALLERS, startWorld, type World } from './world.js';

/**
 * Ten callers of different rights share one upstream session while the policy changes under them, statements fail,
 * outgrow the session, time out, are cancelled, and clients die; the manifest comes to mean another table, the policy to
 * know a caller no more, a metric is published, changed and rolled back, and the database ends all sessions: what anybody is told, only its own rights explain, on the
 * fast lane as on the slow one.
 */

const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20261122);
const ACTS = Number(process.env['OSL_SHARING_ACTS'] ?? 500);

/** Reloads, changes and kills that a crowd lives through at least: a busy machine has fewer in as many acts. */
const LEAST_STORMS = 12;

t.setTimeout(3 * 3_600_000);
proveAtOnce();

/** Runs `acts` acts of ten callers at once, with a policy reload, a change of what is published and a locked table now and then; over after `most` differences. */
async function crowd(world: World, acts: number, seed: number, most = Number.POSITIVE_INFINITY) {
  const callers = Array.from({ length: CALLERS }, (_, n) => new Caller(n, world, diceFrom(seed + n)));
  const differences: Difference[] = [];
  let left = acts;
  let storms = 0;
  const live = async (caller: Caller): Promise<void> => {
    while ((left-- > 0 || storms < LEAST_STORMS) && differences.length < most) {
      const difference = await caller.act();
      if (difference !== null) differences.push(difference);
    }
  };
  let over = false;
  const weather = async (): Promise<void> => {
    for (let n = 0; !over; n++) {
      storms = n;
      await pause(60);
      // Longer than a shared session waits: what stands behind the lock is run again, alone.
      if (n % 12 === 5) await world.kill();
      else if (n % 8 === 7)
        await world.beside('begin; lock table sharing.deals; select pg_sleep(0.25); commit');
      else if (n % 4 === 2) await world.publish();
      else await world.reload();
    }
  };
  const weathering = weather();
  await Promise.all(callers.map(live));
  over = true;
  await weathering;
  for (const caller of callers) caller.die();
  return { differences, answered: callers.reduce((sum, c) => sum + c.answered, 0) };
}

/** Notes how often and how deep the shared session was used. */
function watchLanes() {
  const seen = { statements: 0, deepest: 0 };
  const pick = Lanes.prototype.pick;
  Lanes.prototype.pick = function (this: Lanes, statement) {
    const session = pick.call(this, statement);
    if (session !== null) {
      seen.statements++;
      seen.deepest = Math.max(seen.deepest, session.load + 1);
    }
    return session;
  };
  return { seen, restore: () => (Lanes.prototype.pick = pick) };
}

t.test('what one caller does on a shared session touches no other', async (t) => {
  const postgres = await startNativePostgres();
  if (postgres === null) return t.plan(0, NO_NATIVE);
  const world = await startWorld(postgres);
  const lanes = watchLanes();
  const { differences, answered } = await crowd(world, ACTS, SEED);
  lanes.restore();
  t.same(differences, [], `seed ${SEED}`);
  // On a busy machine fewer statements prove short.
  t.ok(lanes.seen.statements > answered / 20, `${lanes.seen.statements} of ${answered} statements shared it`);
  t.ok(world.fast() > answered / 50, `${world.fast()} of ${answered} statements went fast`);
  t.ok(lanes.seen.deepest >= 2, `${lanes.seen.deepest} at once`);
  t.ok(world.version() >= 3, `${world.version()} reloads`);
  t.ok(world.published().count >= 3, `${world.published().count} changes of what is published`);

  const records = await world.shop.records();
  const decisions = records.filter((r) => r.kind === 'decision' && r.action === 'query');
  const outcomes = new Map(records.filter((r) => r.kind === 'outcome').map((r) => [r.request_id, r.outcome]));
  const allowed = decisions.filter((r) => r.decision === 'allow');
  t.ok(
    records.filter((r) => r.kind === 'decision' && (r.action === 'query' || r.action === 'prepare')).length >=
      answered,
    'every statement that was answered is on record',
  );
  t.same(
    allowed.filter((r) => !outcomes.has(r.request_id)),
    [],
    'and every one that was let in has its outcome',
  );
  t.match(await world.shop.verdict(), { integrity: 'intact', openDecisions: 0 });
  await world.close();
  await postgres.stop();
  return undefined;
});

/** The fast lane with a part left out; what each gives puts it back. */
const FORGETFUL: Readonly<Record<string, { readonly acts: number; readonly forget: () => () => void }>> = {
  'routes outlive the manifest and the policy': {
    acts: 3_000,
    forget: () => {
      const { routesOf: of } = RouteBook.prototype;
      const books = new Map<string, TextRoutes>();
      RouteBook.prototype.routesOf = function (this: RouteBook, caller) {
        const key = caller.identity.chain.join();
        const known = books.get(key) ?? of.call(this, caller);
        books.set(key, known);
        return known;
      };
      return () => (RouteBook.prototype.routesOf = of);
    },
  },
  'no outcome is recorded': {
    acts: 400,
    forget: () => {
      const { recordAnswer: answered } = PermittedRequest.prototype;
      PermittedRequest.prototype.recordAnswer = () => undefined;
      return () => (PermittedRequest.prototype.recordAnswer = answered);
    },
  },
};

for (const [name, { acts, forget }] of Object.entries(FORGETFUL)) {
  t.test(`the crowd notices where ${name}`, async (t) => {
    const postgres = await startNativePostgres();
    if (postgres === null) return t.plan(0, NO_NATIVE);
    const world = await startWorld(postgres);
    const remember = forget();
    const { differences } = await crowd(world, acts, SEED, 1);
    remember();
    const { openDecisions } = await world.shop.verdict();
    t.ok(
      differences.length + openDecisions > 0,
      `${differences.length} replies differ, ${openDecisions} decisions`,
    );
    await world.close();
    await postgres.stop();
    return undefined;
  });
}

t.test('the crowd notices a session that mixes up its callers', async (t) => {
  const postgres = await startNativePostgres();
  if (postgres === null) return t.plan(0, NO_NATIVE);
  const world = await startWorld(postgres);
  const bind = FrontendEncoder.prototype.bind;
  let before: readonly SentValue[] = [];
  let binds = 0;
  FrontendEncoder.prototype.bind = function (this: FrontendEncoder, name, values, formats) {
    const given = ++binds % 5 === 0 && before.length === values.length ? before : values;
    before = values;
    return bind.call(this, name, given, formats);
  };
  const { differences } = await crowd(world, 600, SEED);
  FrontendEncoder.prototype.bind = bind;
  t.ok(differences.length > 0, `${differences.length} replies differ`);
  await world.close();
  await postgres.stop();
  return undefined;
});
