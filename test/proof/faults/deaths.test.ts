import t from 'tap';
import type { Deed, FaultProxy } from '../../support/fault-proxy.js';
import { NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import type { Message } from '../../surfaces/pg/fuzz/conversation.js';
import { cancelRequest, query } from '../../wire/support/bytes.js';
import { diceFrom } from '../oracle/dice.js';
import { OFFSETS, SEED } from './cases.js';
import { judge } from './judge.js';
import { Peer } from './peer.js';
import { play, steps, unsettled, within } from './play.js';
import { loginSteps, TRACES } from './traces.js';
import { ENDLESS, openWorld, type World } from './world.js';

/** Upstreams that die or fall silent, clients that go while their statement runs, and cancels that are lost. */
const CODES = ['08006', '25P02', '34000'];
const DEATHS = Math.min(OFFSETS, 20);
const dice = diceFrom(SEED);

t.setTimeout(86_400_000);
t.comment(`seed ${SEED}, ${DEATHS} deaths of each kind`);

const server = await startOwnPostgres();
const world = server === null ? null : await openWorld({ engine: 'native', server });
const skip = world === null ? NO_BINARIES : false;
t.teardown(async () => {
  await world?.close();
  await server?.stop();
});

function ours(): World & { readonly back: FaultProxy; readonly crash: () => Promise<void> } {
  if (server === null || world?.back == null) throw new Error('skipped without them');
  return Object.assign(world, { back: world.back, crash: () => server.crash() });
}

/** What kills the upstream while its answer is on the way. */
const DEATHS_OF_POSTGRES: Readonly<Record<string, (world: ReturnType<typeof ours>) => Promise<void>>> = {
  // Postgres then ends every other backend, and starts anew.
  'kill -9 of a backend': async (world) => {
    for (const { pid } of await world.backends()) process.kill(pid, 'SIGKILL');
  },
  'a crash of the server': (world) => world.crash(),
};

for (const [what, kill] of Object.entries(DEATHS_OF_POSTGRES)) {
  t.test(`${what} in the middle of a stream`, { skip }, async (t) => {
    const world = ours();
    const trace = TRACES['a stream'] ?? [];
    world.back.arm(null);
    const whole = await play(world, world.port, 'token', trace);
    const total = world.back.passed('down');
    for (let i = 0; i < DEATHS; i++) {
      const after = dice.upTo(total - 10_000);
      world.back.arm({ direction: 'down', after, deed: () => kill(world) });
      const played = await play(world, world.port, 'token', trace);
      const fault =
        played.fault ?? judge(played.heard, whole.heard, CODES) ?? (await unsettled(world, CODES));
      t.equal(fault, null, `after ${after} of ${total} bytes`);
      t.ok(world.back.fired, 'it came');
    }
  });
}

/** A client whose statement runs upstream and does not end by itself. */
async function endless(world: World, port: number): Promise<{ readonly peer: Peer; readonly key: Buffer }> {
  const peer = new Peer(port);
  await steps(peer, loginSteps('token', world.caller));
  peer.send(query(ENDLESS));
  const running = async (): Promise<boolean> => (await world.backends()).some((b) => b.state === 'active');
  if (!(await within(120_000, running))) throw new Error('the statement does not run');
  const key = peer.heard.find((m) => m.type === 'K')?.body ?? Buffer.alloc(0);
  return { peer, key };
}

const quiet = async (world: World): Promise<boolean> =>
  (await world.backends()).every((b) => b.state === 'idle');

t.test('a client that goes while its statement runs takes the statement with it', { skip }, async (t) => {
  const world = ours();
  const ways: Readonly<Record<string, (peer: Peer) => void>> = {
    'it resets': (peer) => peer.socket.resetAndDestroy(),
    'it closes': (peer) => peer.socket.destroy(),
    'it closes its side': (peer) => peer.socket.end(),
  };
  for (const [way, leave] of Object.entries(ways)) {
    const { peer } = await endless(world, world.port);
    leave(peer);
    t.ok(await within(120_000, () => quiet(world)), `${way}: the upstream rests`);
    t.equal(await unsettled(world), null, way);
    await peer.end();
  }
});

/** One connection that asks for a cancel; resolves when the gateway has closed it. */
async function cancelThrough(port: number, key: Buffer): Promise<void> {
  const asker = new Peer(port);
  asker.send(cancelRequest(key.readInt32BE(0), key.subarray(4)));
  await asker.end();
}

const isError = (code: string) => (heard: readonly Message[]) =>
  heard.some((m) => m.type === 'E' && m.body.includes(`C${code}`));

t.test('a cancel of a client works when it came whole, and otherwise hurts nobody', { skip }, async (t) => {
  const world = ours();
  const length = 16;
  const places = OFFSETS > length ? [...Array(length + 1).keys()] : [0, 1 + dice.upTo(14), 15, 16];
  for (const deed of ['reset', 'cut', 'half-close'] as const) {
    const { peer, key } = await endless(world, world.port);
    for (const after of places) {
      world.front.arm({ direction: 'up', after, deed });
      await cancelThrough(world.front.port, key);
      if (after < length) t.notOk(isError('57014')(peer.heard), `${deed} after ${after} of ${length} bytes`);
    }
    world.front.arm(null);
    await cancelThrough(world.front.port, key);
    t.ok(await peer.until(isError('57014')), `${deed}: the statement is cancelled`);
    await peer.end();
    t.equal(await unsettled(world), null, deed);
  }
});

t.test('a cancel that is lost on its way upstream does not keep the session', { skip }, async (t) => {
  const world = ours();
  const places = OFFSETS > 16 ? [0, 1, 8, 15, 16] : [0, 7];
  const deeds: readonly Deed[] = ['reset', 'cut', 'half-close', 'stall'];
  for (const deed of deeds) {
    // A silent one costs five seconds.
    for (const after of deed === 'stall' ? places.slice(0, 1) : places) {
      const { peer, key } = await endless(world, world.port);
      world.back.arm({ direction: 'up', after, deed });
      await cancelThrough(world.port, key);
      t.ok(await peer.until(isError('57014')), `${deed} after ${after}: the client is told at once`);
      await peer.end();
      const served = await unsettled(world, ['53300']);
      t.equal(served, null, `${deed} after ${after}: the next client is served`);
      world.back.arm(null);
    }
  }
});
