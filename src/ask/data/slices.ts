import { setImmediate } from 'node:timers/promises';

/** Items that are worked on before others get their turn. */
const SLICE = 4_096;

/** `list` in parts, with a turn for everybody else between them. */
export async function* slices<T>(list: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < list.length; from += SLICE) {
    if (from > 0) await setImmediate();
    yield list.slice(from, from + SLICE);
  }
}

/** What `steps` come to, everybody else served between them. */
export async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    await setImmediate();
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
