import { totalmem } from 'node:os';

/** Memory in bytes that this process may use: the limit of its cgroup, else that of the machine. */
export function usableMemory(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
