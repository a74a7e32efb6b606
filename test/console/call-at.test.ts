import { setTimeout as sleep } from 'node:timers/promises';
import { callAt } from 'osl-console/shell/call-at';
import { test } from 'tap';

test('a call far in the future is not made now; one that is due or soon is', async (t) => {
  const called: string[] = [];
  const day = 86_400_000;
  const cancels = [
    callAt(Date.now() + 25 * day, () => called.push('in 25 days')),
    callAt(Number.POSITIVE_INFINITY, () => called.push('never')),
    callAt(Date.now() + 20, () => called.push('soon')),
    callAt(Date.now() - day, () => called.push('at once')),
  ];
  t.strictSame(called, [], 'not before the caller goes on');
  await sleep(100);
  t.strictSame(called.toSorted(), ['at once', 'soon']);
  for (const cancel of cancels) cancel();
  callAt(Date.now() + 20, () => called.push('cancelled'))();
  await sleep(60);
  t.equal(called.length, 2);
});
