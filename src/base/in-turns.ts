import { setImmediate } from 'node:timers/promises';

/**
 * Result of `steps`; other work of the event loop runs before each of them.
 *
 * @param take takes one step
 */
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

/** Result of `steps`, without a pause. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Milliseconds of work between two pauses. */
const SLICE_MS = 5;

/** Steps that apply `map` to each of `items`; a step ends when it has worked for some milliseconds. */
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
