import { isDeepStrictEqual } from 'node:util';
import type { Test } from 'tap';

/** Asserts that two values differ by more than their prototypes. For long answers: `t.notSame` formats all differences. */
export function differ(t: Test, one: unknown, other: unknown, name = 'they differ'): void {
  t.notOk(isDeepStrictEqual(structuredClone(one), structuredClone(other)), name);
}
