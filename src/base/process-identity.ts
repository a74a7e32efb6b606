import { readFileSync } from 'node:fs';
import { codeOf } from './thrown.js';

/** Identifies a process uniquely even though pids are reused. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The kernel's boot id; empty if the system has none. */
  readonly boot: string;
  /** Start time in clock ticks since boot; 0 if unknown. */
  readonly ticks: number;
}

export function ownProcess(): ProcessIdentity {
  return { pid: process.pid, boot: bootOf(), ticks: ticksOf(process.pid) ?? 0 };
}

/** True if the identified process is still running. Without a boot id, any process with the same pid counts. */
export function isSame({ pid, boot, ticks }: ProcessIdentity): boolean {
  return boot === '' ? isAlive(pid) : boot === bootOf() && ticks === ticksOf(pid);
}

function bootOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return ''; // not Linux
  }
}

/** Returns the start time of a process in clock ticks since boot; null if it does not exist or is a zombie. */
function ticksOf(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The command is in parentheses and may contain anything; the state follows it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? null : Number(fields[19]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
