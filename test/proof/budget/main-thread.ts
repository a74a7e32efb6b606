import { readFileSync } from 'node:fs';

/** Milliseconds that the main thread of this process has run on a processor, whatever else runs on the machine. */
export function mainThreadMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}
