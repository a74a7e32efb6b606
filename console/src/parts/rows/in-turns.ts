/** Time in ms after which long work yields to the browser, so that the page stays responsive. */
export const TURN_MS = 24;

/**
 * Runs long work that yields often, and returns its result. The browser handles input at least every `TURN_MS`, plus
 * the time between two yields.
 *
 * @throws the reason of `signal` if it is aborted
 */
export async function inTurns<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  let since = performance.now();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    if (performance.now() - since <= TURN_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    signal.throwIfAborted();
    since = performance.now();
  }
}
