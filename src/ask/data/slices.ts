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
