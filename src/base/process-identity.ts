import { readFileSync } from 'node:fs';
import { codeOf } from './thrown.js';

/** A process, told apart from every other that has had its pid, or will. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The run of the kernel that it belongs to; empty where the system does not say. */
  readonly boot: string;
  /** Start time of the process in clock ticks of that boot; 0 if the system does not say. */
  readonly ticks: number;
}

export function ownProcess(): ProcessIdentity {
  return { pid: process.pid, boot: bootOf(), ticks: ticksOf(process.pid) ?? 0 };
}

/** True if that very process still runs; where its system did not say when it began, one with its pid counts. */
export function isSame({ pid, boot, ticks }: ProcessIdentity): boolean {
  return boot === '' ? isAlive(pid) : boot === bootOf() && ticks === ticksOf(pid);
}

function bootOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return ''; // no Linux
  }
}

/** Null where there is no such process, or it has ended and nobody has asked how. */
function ticksOf(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // What follows the command, which is in parentheses and may hold anything; the state comes first.
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
