import t from 'tap';
import { type ConnectionChange, ConnectionStatus } from '../../src/engine/connection-status.js';

const failing = (code: string) => (): Promise<never> =>
  Promise.reject(Object.assign(new Error(`it failed with ${code}`), { code }));

/** A status whose pauses are the longest that they may be, and the changes it reported. */
function start(): { readonly status: ConnectionStatus; readonly heard: string[] } {
  const heard: string[] = [];
  const hear = (change: ConnectionChange): void => {
    heard.push(change.kind === 'mended' ? 'mended' : String((change.cause as { code?: unknown }).code)); // of `failing`
  };
  return { status: new ConnectionStatus(hear, () => 1), heard };
}

t.test('a server without free connections is full, one that fails otherwise is lost', async (t) => {
  const { status, heard } = start();
  t.equal(status.state, 'open');
  await t.rejects(status.attempt(failing('53300')), { code: '53300' });
  t.equal(status.state, 'full');
  await t.rejects(status.attempt(failing('ECONNREFUSED')), { code: 'ECONNREFUSED' });
  t.equal(status.state, 'lost');
  const several = (): Promise<never> =>
    Promise.reject(new AggregateError([Object.assign(new Error('no'), { code: '53300' })]));
  await t.rejects(status.attempt(several));
  t.equal(status.state, 'full', 'of several addresses the first decides');
  t.equal(await status.attempt(async () => 'made'), 'made');
  t.equal(status.state, 'open');
  t.same(heard.slice(0, 2), ['53300', 'ECONNREFUSED']);
  t.equal(heard.at(-1), 'mended');
});

t.test('each failure doubles the pause, up to two seconds, and a success ends it', async (t) => {
  const { status, heard } = start();
  const { now } = performance;
  const moment = now.call(performance);
  performance.now = () => moment;
  t.teardown(() => {
    performance.now = now;
  });
  const rests: number[] = [];
  for (let n = 0; n < 8; n++) {
    await t.rejects(status.attempt(failing('ECONNREFUSED')));
    rests.push(Math.round(status.pauseMs));
  }
  t.same(rests, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  t.same(heard, ['ECONNREFUSED'], 'reported once');
  performance.now = () => moment + 1;
  await status.attempt(async () => undefined);
  t.equal(status.pauseMs, 0);
  t.same(heard, ['ECONNREFUSED', 'mended']);
});

t.test('an attempt that began before the last failure proves nothing', async (t) => {
  const { status } = start();
  let settle: () => void = () => undefined;
  const early = status.attempt(() => new Promise<void>((resolve) => (settle = resolve)));
  await t.rejects(status.attempt(failing('ECONNREFUSED')));
  settle();
  await early;
  t.equal(status.state, 'lost');
});
