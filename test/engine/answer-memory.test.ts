import { test } from 'tap';
import { AnswerMemory } from '../../src/engine/answer-memory.js';

const BOUNDS = { rowBytes: 1_000, bytes: 1_000 };

test('the gateway itself takes memory beyond the limit, and while others wait for it', async (t) => {
  const memory = new AnswerMemory(BOUNDS);
  t.ok(memory.take('user:ann', 900));
  t.notOk(memory.take('user:bob', 200));
  const waiting = memory.wait('user:bob', 200);
  t.ok(memory.take(null, 400), 'the first row of a statement of its own');
  t.ok(memory.take(null, 400), 'and the next one, though it holds memory and another caller waits');
  t.strictSame(memory.stats(), { held: 1_700, limit: 1_000, waiting: 1, refused: 0 });
  memory.giveBack(null, 800);
  memory.giveBack('user:ann', 900);
  t.ok(await waiting);
});

test('a caller that holds memory does not overtake those who wait', async (t) => {
  const memory = new AnswerMemory(BOUNDS);
  t.ok(memory.take('user:ann', 100));
  t.ok(memory.take('user:bob', 700));
  const waiting = memory.wait('user:cy', 300);
  t.notOk(memory.take('user:ann', 100), 'there is room, but another caller came first');
  memory.giveBack('user:bob', 700);
  t.ok(await waiting);
  t.ok(memory.take('user:ann', 100));
});

test('memory that a cache gives back while waiters are served is granted once', async (t) => {
  const memory = new AnswerMemory(BOUNDS);
  t.ok(memory.take('cache', 600));
  t.ok(memory.take('user:ann', 400));
  const waiting = memory.wait('user:bob', 200);
  let cached = 600; // of an answer that nobody reads any more
  memory.onShortage(() => {
    if (cached > 0) memory.giveBack('cache', cached);
    cached = 0;
  });
  memory.giveBack('user:ann', 50);
  t.ok(await waiting);
  t.strictSame(memory.stats(), { held: 550, limit: 1_000, waiting: 0, refused: 0 });
});
