import { existsSync } from 'node:fs';
import { test } from 'tap';
import { IS_WHOLE, PART, partOf, range, seedOf, turnOf } from '../support/part.js';
import { IN_TURNS, isLeftOut, ON_BOTH, TURNS } from '../turns.js';

test('files in turns are there, each once, and a run has one part of them', (t) => {
  for (const name of [...IN_TURNS, ...ON_BOTH]) t.ok(existsSync(`test/${name}.test.ts`), name);
  t.equal(new Set(IN_TURNS).size, IN_TURNS.length);
  const left = IN_TURNS.filter(isLeftOut);
  const most = Math.ceil(IN_TURNS.length / TURNS);
  t.ok(IS_WHOLE ? left.length === 0 : IN_TURNS.length - left.length <= most, `${left.length} are left out`);
  t.notOk(isLeftOut('proof/golden/golden'), 'others run each time');
  t.end();
});

test('every case has its turn, some run each time, and all at night', (t) => {
  const cases = range(0, 10);
  if (IS_WHOLE) {
    t.strictSame(partOf('suite', cases, 3), cases);
    t.equal(seedOf('suite', 5), 5);
    t.end();
    return;
  }
  const parts = range(0, 60).map((n) => partOf(`suite ${n}`, cases, 3, (one) => one === 7));
  for (const part of parts) t.ok(part.length === 4 && part.includes(7), part.join());
  t.strictSame(new Set(parts.flat()), new Set(cases));
  t.strictSame(partOf('suite 0', cases, 3), partOf('suite 0', cases, 3), 'the same text has the same part');
  t.strictSame(new Set(range(0, 60).map((n) => seedOf(`suite ${n}`, 5))), new Set([5, 6, 7]));
  t.ok(
    range(0, 60).every((n) => turnOf(`suite ${n}`, 3) < 3),
    PART,
  );
  t.end();
});
