import t from 'tap';
import { WindowCounter } from '../../policy/limits/window.js';

t.test('nobody is told to wait longer than a window, whatever fraction the clock reads', (t) => {
  const { now } = performance;
  t.teardown(() => {
    performance.now = now;
  });
  const waits = new Set<number>();
  for (let i = 1; i <= 20_000; i++) {
    const moment = i * 17.123_456_789;
    performance.now = () => moment;
    const counter = new WindowCounter(1, 10);
    counter.take('anybody');
    const second = counter.take('anybody');
    waits.add(second.ok ? 0 : second.retryAfterSeconds);
  }
  t.strictSame([...waits], [1]);
  t.end();
});
