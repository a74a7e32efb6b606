import { readFileSync } from 'node:fs';
import t from 'tap';
import { SURFACES } from '../../support/frontends.js';
import { REGISTER, type Registered } from './register.js';
import { ATTACKS } from './table.js';

/** The list of attacks has 46; each is made somewhere, on every surface that it has a form on. */
const LISTED = 46;

function sourceOf(file: string): string {
  return readFileSync(new URL(`../../../../test/${file}.test.ts`, import.meta.url), 'utf8');
}

/** Tests of a file by the beginnings of their names, whichever quotes they stand in. */
function hasTest(file: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => sourceOf(file).includes(`${quote}${name}`));
}

for (let n = 1; n <= LISTED; n++) {
  t.test(`${n}`, async (t) => {
    const entry: Registered | undefined = REGISTER.find((r) => r.n === n);
    const table = ATTACKS.filter((a) => a.n === n).flatMap((a) => a.tries);
    t.ok(table.length > 0 || (entry?.made.length ?? 0) > 0, 'it is made');
    for (const { file, test } of entry?.made ?? []) t.ok(hasTest(file, test), `${file}: ${test}`);
    const tried = new Set([
      ...(table.length > 0 ? SURFACES : []),
      ...(entry?.made ?? []).flatMap((m) => m.on),
    ]);
    const untried = SURFACES.filter((s) => !tried.has(s));
    if (entry?.why == null) t.strictSame(untried, [], 'on every surface');
    else t.not(untried.length, 0, `not on ${untried.join(', ')}: ${entry.why}`);
  });
}

t.test('nothing is registered that is not listed', async (t) => {
  const numbers = REGISTER.map((r) => r.n);
  t.equal(new Set(numbers).size, numbers.length);
  t.ok(numbers.every((n) => n >= 1 && n <= LISTED));
});
