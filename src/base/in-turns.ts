import { setImmediate } from 'node:timers/promises';

/**
 * What `steps` come to, everybody else served before each of them.
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

/** What `steps` come to, without a pause. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
