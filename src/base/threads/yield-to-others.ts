import { setPriority } from 'node:os';

/** A share of a busy processor that is a third of the gateway's own: what works in a thread may be anybody's long work. */
const NICE = 5;

/** Lowers the priority of this thread alone, which Linux has as a process of its own; elsewhere it would be the gateway's. */
export function yieldToOthers(): void {
  if (process.platform === 'linux') setPriority(0, NICE);
}
