/** Longest delay that a timer accepts, in ms; one with a longer delay ends at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `work` at the time `at`, in milliseconds since the epoch, however far it is. Returns a function that cancels it. */
export function callAt(at: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (): void => {
    const left = Math.max(0, at - Date.now());
    timer = setTimeout(left > LONGEST_MS ? wait : work, Math.min(left, LONGEST_MS));
  };
  wait();
  return () => clearTimeout(timer);
}
