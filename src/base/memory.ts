import { totalmem } from 'node:os';

/** Bytes of memory that this process may use: the limit of its container (cgroup) where it has one, else the machine's. */
export function usableMemory(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
