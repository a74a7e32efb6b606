import t, { test } from 'tap';
import { partOf, range } from '../../support/part.js';
import { bind, execute, join, message, parse, query, sync, terminate } from '../../wire/support/bytes.js';
import { Conversation, cut } from './fuzz/conversation.js';
import { knock } from './fuzz/knock.js';
import { Player } from './fuzz/player.js';
import { openings, TRACES } from './fuzz/traces.js';
import { type Caller, hiddenIn, openWorld } from './fuzz/world.js';

t.setTimeout(600_000);

/** Every trace of the fuzzer, cut in two at every third byte, at night at each: the real frontend answers it as it answers the whole. */
const CALLERS = 24;

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
    const cuts = partOf(`cuts of ${name}`, range(0, bytes.length), 3, (at) => at === 0);
    return cuts.map((at) => ({ name, bytes, at }));
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

const error = (severity: string, code: string): Buffer => message('E', `S${severity}\0C${code}\0Mx\0\0`);
const Z = message('Z', 'I');
const D = message('D', '\0\0');
const C = message('C', 'SELECT 1\0');
const EXTENDED = join(parse('', 'x'), bind('', ''), execute(), sync);

/** What a client sends, what a server answers, and what the judge must say of it; null: all is well. */
const CASES: Readonly<Record<string, readonly [Buffer, readonly Buffer[], string | null]>> = {
  'an answer': [query('x'), [message('T'), D, D, C, Z], null],
  'two statements': [query('x'), [message('T'), D, C, message('T'), C, Z], null],
  'no ReadyForQuery': [query('x'), [C], 'unanswered'],
  'one too many': [query('x'), [C, Z, Z], 'Z, though nothing was asked'],
  'a ReadyForQuery alone': [query('x'), [Z], 'Z for Q'],
  'rows after their end': [query('x'), [message('T'), D, C, D, Z], 'TDCD for Q'],
  'an answer after an error': [query('x'), [error('ERROR', '42601'), C, Z], 'EC for Q'],
  extended: [EXTENDED, [message('1'), message('2'), D, C, Z], null],
  'an answer to what an error discards': [EXTENDED, [error('ERROR', '42601'), message('2')], '2 for S'],
  discarded: [EXTENDED, [error('ERROR', '42601'), Z], null],
  'no answer to Bind': [EXTENDED, [message('1'), D], 'D for B'],
  'an internal error': [query('x'), [error('ERROR', 'XX000')], 'an internal error'],
  'a FATAL out of nothing': [query('x'), [error('FATAL', '08P01')], 'FATAL 08P01 for Q'],
  'a FATAL where it is due': [Buffer.from('?garbage'), [error('FATAL', '08P01')], null],
  'no FATAL where it is due': [Buffer.from('?garbage'), [], 'unanswered'],
  'what no Sync asks for yet': [parse('', 'x'), [], null],
  'what a Flush asks for': [join(parse('', 'x'), message('H')), [], 'unanswered'],
  'a length that lies': [Buffer.from('S\xff\xff\xff\xff', 'latin1'), [error('FATAL', '08P01')], null],
  'words after the end': [terminate, [Z], 'Z after the end'],
};

test('the judge of the fuzzer knows right from wrong', async (t) => {
  for (const [name, [asked, said, verdict]] of Object.entries(CASES)) {
    const talk = new Conversation();
    talk.sends(cut(asked, 'client'));
    for (const m of cut(Buffer.concat(said), 'server').messages) talk.hears(m);
    const found = talk.fault ?? (talk.answered ? null : 'unanswered');
    t.equal(found?.slice(0, verdict?.length) ?? null, verdict, name);
  }
});

test('and counts what must be recorded', async (t) => {
  const talk = new Conversation();
  talk.sends(cut(join(EXTENDED, execute(), sync, query('x; y')), 'client'));
  const answers = [message('1'), message('2'), C, Z, C, Z, C, error('ERROR', '22012'), Z];
  for (const m of cut(Buffer.concat(answers), 'server').messages) talk.hears(m);
  t.equal(talk.fault, null);
  t.equal(talk.statements, 3, 'a portal that runs again was recorded when it ran first');
});

test('bytes that are no messages, and values that are hidden, are found', async (t) => {
  t.match(cut(Buffer.from('?'), 'server').fault, /message type/);
  t.match(cut(Buffer.from('Z\0\0\0\x01I'), 'server').fault, /length 1/);
  t.equal(cut(Z.subarray(0, 4), 'server').rest.length, 4);
  t.same(hiddenIn(Buffer.from('xada@eu.exampley')), ['ada@eu.example']);
  t.same(hiddenIn(Buffer.from('1990-01-01 [redacted]')), []);
});
