/**
 * Runs `asked` while the clock that limits are counted with stands still: what is counted by the second falls into one
 * second, however busy the machine is. What is timed with `Date` or by timers goes on.
 */
export async function inOneMoment<T>(asked: () => Promise<T>): Promise<T> {
  const { now } = performance;
  const moment = now.call(performance);
  performance.now = () => moment;
  try {
    return await asked();
  } finally {
    performance.now = now;
  }
}
