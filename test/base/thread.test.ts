import { once } from 'node:events';
import t from 'tap';
import { answerOf, startThread } from '../../src/base/threads/thread.js';

t.test('a thread that ended before it was asked is told at once, not after the deadline', async (t) => {
  const worker = startThread(new URL('data:text/javascript,process.exit(0)'), {});
  worker.ref();
  await once(worker, 'exit');
  const answer = answerOf(
    worker,
    60_000,
    () => null,
    (why) => new Error(why),
  );
  await t.rejects(answer, { message: 'failed' });
});
