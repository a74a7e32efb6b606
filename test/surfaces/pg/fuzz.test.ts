import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { type Dice, diceFrom } from '../../proof/oracle/dice.js';
import { sync } from '../../wire/support/bytes.js';
import { exchange, knock, SILENCE_MS } from './fuzz/knock.js';
import { changeBytes, changeMessages } from './fuzz/mutations.js';
import { Player } from './fuzz/player.js';
import { openings, TRACES } from './fuzz/traces.js';
import { type Caller, openWorld, type World } from './fuzz/world.js';

/**
 * Traces of clients, changed at random, against the real frontend. OSL_FUZZ_RUNS: how many changes (3,000);
 * OSL_TEST_SEED: where the choices come from. What it finds becomes a line of a table.
 */
const RUNS = Number(process.env['OSL_FUZZ_RUNS'] ?? 3_000);
const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_121);
/** Changes against one service; the next gets a new one, and the log of the last is thrown away. */
const PER_WORLD = 100_000;
const CALLERS = 24;
/** Traces of one session whose messages stay whole; one more, whose bytes do not, ends it. */
const TRACES_PER_SESSION = 16;
/** The share of connections that are changed before they are a session. */
const OPENINGS = 0.94;
/** Of these, the share that is a whole exchange by SCRAM with one message changed, and of those, the share left as it is. */
const EXCHANGES = 0.1;
const UNCHANGED = 0.2;
/** The share of sessions that log in by password, and that run a statement which must be cancelled. */
const BY_PASSWORD = 0.3;
const CANCELS = 0.01;
/** Sessions hold a few KiB; one that stays costs more than this for each that there was. */
const GROWTH_MIB = 32;

t.setTimeout(86_400_000);
t.comment(`seed ${SEED}, ${RUNS} changes`);

const failures: string[] = [];
const crashed = (cause: unknown): void => {
  failures.push(`crash: ${cause instanceof Error ? cause.stack : String(cause)}`);
};
process.on('uncaughtException', crashed);
process.on('unhandledRejection', crashed);
setFlagsFromString('--expose_gc');
const collect: () => void = runInNewContext('gc');

const traces = Object.values(TRACES);
const everyMessage = traces.flat();
const everyTrace = traces.map((messages) => Buffer.concat(messages));

/** What there was since the start, for the record. */
interface Counts {
  sessions: number;
  knocks: number;
  /** Whole exchanges by SCRAM. */
  exchanges: number;
  cancels: number;
}

interface Round {
  /** Changes that are still to be made. */
  left: number;
  readonly counts: Counts;
}

/** One to nine changes of one trace. */
function changedTrace(dice: Dice): { bytes: Buffer; changes: number } {
  let messages = dice.of(traces);
  const changes = 1 + dice.upTo(8);
  for (let i = 0; i < changes; i++) messages = changeMessages(messages, everyMessage, dice);
  return { bytes: Buffer.concat([...messages, sync]), changes };
}

async function session(world: World, caller: Caller, dice: Dice, round: Round): Promise<void> {
  round.counts.sessions++;
  const player = await Player.login(world, caller, dice.chance(BY_PASSWORD) ? 'password' : 'token');
  if (dice.chance(CANCELS)) await cancel(player, dice, round);
  for (let i = 0; i < TRACES_PER_SESSION && !player.ended; i++) {
    const { bytes, changes } = changedTrace(dice);
    round.left -= changes;
    await named(bytes, () => player.play([bytes]));
    await player.settle();
  }
  if (!player.ended) {
    const bytes = changeBytes(dice.of(everyTrace), dice.of(everyTrace), dice);
    round.left--;
    await named(bytes, () => player.play([bytes]));
  }
  await player.end();
}

/** Each changed byte of the request is one change. */
async function cancel(player: Player, dice: Dice, round: Round): Promise<void> {
  round.counts.cancels++;
  round.left--;
  await player.cancelled((request) => changeBytes(request, request, dice));
}

/** A login by password, with at most one of its messages changed. */
async function exchangeChanged(world: World, { account }: Caller, dice: Dice, round: Round): Promise<void> {
  round.counts.exchanges++;
  round.left--;
  const which = dice.chance(UNCHANGED) ? null : dice.of(['startup', 'first', 'final'] as const);
  let sent = '';
  try {
    const change = (message: Buffer, now: string): Buffer => {
      const bytes = now === which ? changeBytes(message, message, dice) : message;
      sent += ` ${bytes.toString('hex')}`;
      return bytes;
    };
    const patience = which === null ? [] : [SILENCE_MS];
    const said = await exchange(world.port, account, change, ...patience);
    if (which === null && !/^Z I$/m.test(said)) throw new Error(`the right password opens nothing: ${said}`);
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : String(cause)}:${sent}`);
  }
}

/** So that what failed can be asked again. */
async function named(bytes: Buffer, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : String(cause)}: ${bytes.toString('hex')}`);
  }
}

async function caller(world: World, who: Caller, seed: number, round: Round): Promise<void> {
  const dice = diceFrom(seed);
  let firsts: readonly Buffer[] = [];
  let token = '';
  while (round.left > 0 && failures.length < 10) {
    if (token !== who.token) {
      token = who.token;
      firsts = Object.values(openings(who)).map((messages) => Buffer.concat(messages));
    }
    try {
      if (dice.chance(OPENINGS * EXCHANGES)) await exchangeChanged(world, who, dice, round);
      else if (dice.chance(OPENINGS)) {
        round.counts.knocks++;
        round.left--;
        const bytes = changeBytes(dice.of(firsts), dice.of(firsts), dice);
        await named(bytes, () => knock(world.port, [bytes], SILENCE_MS));
      } else await session(world, who, dice, round);
    } catch (cause) {
      failures.push(cause instanceof Error ? cause.message : String(cause));
    }
  }
}

/** Bytes that cannot be collected. */
function held(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** However few changes are asked for, one statement is cancelled. */
async function cancelOne(world: World, round: Round): Promise<void> {
  const dice = diceFrom(SEED);
  const player = await Player.login(world, dice.of(world.callers), 'password');
  await cancel(player, dice, round);
  await player.end();
}

async function play(world: World, seed: number, round: Round): Promise<void> {
  await Promise.all(world.callers.map((who, i) => caller(world, who, seed * 1_000 + i, round)));
  while (world.frontend.connections > 0) await new Promise((resolve) => setTimeout(resolve, 10));
}

t.test('whatever a client sends, the server keeps its place, its log and its secrets', async (t) => {
  const counts: Counts = { sessions: 0, knocks: 0, exchanges: 0, cancels: 0 };
  for (let done = 0, n = 0; done < RUNS && failures.length === 0; done += PER_WORLD, n++) {
    const world = await openWorld(CALLERS);
    const runs = Math.min(PER_WORLD, RUNS - done);
    try {
      const warm: Round = { left: runs / 5, counts };
      await cancelOne(world, warm);
      await play(world, SEED + 2 * n, warm);
      const before = held();
      const rest: Round = { left: runs - runs / 5, counts };
      await play(world, SEED + 2 * n + 1, rest);
      const grown = (held() - before) / 2 ** 20;
      t.ok(grown < GROWTH_MIB, `${grown.toFixed(1)} MiB grown`);
      t.equal(world.frontend.connections, 0, 'no connection is left');
      t.same(world.shop.lines.filter((l) => l.level === 'error').slice(0, 5), [], 'no internal error');
      t.match(await world.shop.verdict(), { integrity: 'intact', completeness: 'complete' }, 'the log holds');
    } finally {
      await world.close();
    }
  }
  const { sessions, knocks, exchanges, cancels } = counts;
  t.comment(`${sessions} sessions, ${knocks} openings, ${exchanges} exchanges by SCRAM, ${cancels} cancels`);
  t.same(failures, []);
});
