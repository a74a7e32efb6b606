import { setImmediate } from 'node:timers/promises';

/** What `steps` come to, everybody else served before each of them. */
export async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    await setImmediate();
    const step = steps.next();
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
