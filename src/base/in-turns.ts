import { setImmediate } from 'node:timers/promises';

/** Runs `steps`, yielding to the event loop before each one. @param take runs a single step */
export async function inTurns<T>(
  steps: Generator<void, T>,
  take: (next: () => IteratorResult<void, T>) => IteratorResult<void, T> = (next) => next(),
): Promise<T> {
  for (;;) {
    await setImmediate();
    const step = take(() => steps.next());
    if (step.done === true) return step.value;
  }
}

/** Runs `steps` without yielding. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

const SLICE_MS = 5;

/** Maps `items`, yielding every few milliseconds. */
export function* mapInSteps<T, U>(items: Iterable<T>, map: (item: T) => U): Generator<void, U[]> {
  const results: U[] = [];
  let end = performance.now() + SLICE_MS;
  for (const item of items) {
    results.push(map(item));
    if (performance.now() < end) continue;
    yield;
    end = performance.now() + SLICE_MS;
  }
  return results;
}
