import t from 'tap';
import { sync } from '../../wire/support/bytes.js';
import { knock } from './fuzz/knock.js';
import { Player } from './fuzz/player.js';
import { openings, TRACES } from './fuzz/traces.js';
import { type Caller, openWorld } from './fuzz/world.js';

/** Every trace of the fuzzer, cut in two at every byte: the real frontend answers it as it answers the whole. */
const CALLERS = 24;

t.setTimeout(600_000);
const world = await openWorld(CALLERS);
t.teardown(() => world.close());

interface Piece {
  readonly name: string;
  readonly bytes: Buffer;
  readonly at: number;
}

function everyCut(traces: Readonly<Record<string, readonly Buffer[]>>, end: readonly Buffer[]): Piece[] {
  return Object.entries(traces).flatMap(([name, messages]) => {
    const bytes = Buffer.concat([...messages, ...end]);
    return Array.from({ length: bytes.length }, (_, at) => ({ name, bytes, at }));
  });
}

const halves = ({ bytes, at }: Piece): readonly Buffer[] =>
  at === 0 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)];

/** Every piece is answered by some caller; gives the answers that differ from that of the whole, by name. */
async function different(
  pieces: Piece[],
  asker: (who: Caller) => Promise<Asker>,
): Promise<readonly string[]> {
  const whole = new Map<string, string>();
  const wrong: string[] = [];
  const [first] = world.callers;
  if (first === undefined) throw new Error('a world without callers');
  const alone = await asker(first);
  for (const piece of pieces.filter((p) => p.at === 0)) whole.set(piece.name, await alone.ask(piece));
  await alone.end();
  const rest = pieces.filter((p) => p.at > 0).values();
  await Promise.all(
    world.callers.map(async (who) => {
      const { ask, end } = await asker(who);
      for (const piece of rest) {
        const answer = await ask(piece);
        if (answer !== whole.get(piece.name)) wrong.push(`${piece.name} at ${piece.at}: ${answer}`);
      }
      await end();
    }),
  );
  return wrong.slice(0, 5);
}

interface Asker {
  ask(piece: Piece): Promise<string>;
  end(): Promise<void>;
}

t.test('a session is answered the same wherever its bytes are cut', async (t) => {
  const pieces = everyCut(TRACES, [sync]);
  const wrong = await different(pieces, async (who) => {
    const player = await Player.login(world, who);
    return { ask: (piece) => player.play(halves(piece)), end: () => player.end() };
  });
  t.same(wrong, [], `${pieces.length} cuts`);
});

t.test('and so is what comes before it', async (t) => {
  const [first] = world.callers;
  if (first === undefined) throw new Error('a world without callers');
  t.match(
    await knock(world.port, openings(first)['token'] ?? []),
    /Z I$/,
    'the first of them opens a session',
  );
  const ask = async (piece: Piece): Promise<string> =>
    (await knock(world.port, halves(piece))).replaceAll(/^[KS] .*$/gm, '');
  const pieces = everyCut(openings(first), []);
  t.same(
    await different(pieces, async () => ({ ask, end: async () => undefined })),
    [],
    `${pieces.length} cuts`,
  );
});
