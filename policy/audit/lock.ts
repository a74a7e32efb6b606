import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { AuditLocked } from './errors.js';

const LOCK = /^lock\.([\w-]+)\.(\d+)\.(\d+)\.([0-9a-f]+)$/;

/**
 * One writer a directory. Every contender first creates a lock file of its own, whose name says host, pid and
 * start time, and then looks at the others: of two at once at least one sees the other and withdraws (perhaps
 * both, which is safe). A lock whose process is gone, as after kill -9, is removed; its name is never reused, so
 * no living process can lose its lock to a slow contender. Locks of another host cannot be judged: they stand.
 *
 * @returns release function
 * @throws AuditLocked
 */
export function lockDirectory(dir: string): () => void {
  const host = hostname().replace(/[^\w-]/g, '_');
  const own = `lock.${host}.${process.pid}.${startTime(process.pid) ?? 0}.${randomBytes(4).toString('hex')}`;
  closeSync(openSync(join(dir, own), 'wx', 0o600));
  const release = (): void => removeLock(dir, own);
  for (const name of readdirSync(dir)) {
    const [, lockHost, pid, started] = LOCK.exec(name) ?? [];
    if (lockHost === undefined || name === own) continue;
    if (lockHost === host && !isRunning(Number(pid), Number(started))) {
      removeLock(dir, name);
      continue;
    }
    release();
    const where =
      lockHost === host ? '' : ` on host ${lockHost} (if that host is gone, remove ${join(dir, name)})`;
    throw new AuditLocked(`the audit log in ${dir} is in use by process ${pid}${where}`);
  }
  return release;
}

function removeLock(dir: string, name: string): void {
  try {
    unlinkSync(join(dir, name));
  } catch (error) {
    // Another contender removed the same stale lock first.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

function isRunning(pid: number, started: number): boolean {
  const now = startTime(pid);
  if (now !== null) return now === 0 || started === 0 || now === started;
  try {
    process.kill(pid, 0);
    // Linux shows live processes in /proc, so there this is a zombie; elsewhere it runs.
    return process.platform !== 'linux';
  } catch (error) {
    return (
      error instanceof Error && 'code' in error && error.code === 'EPERM' && process.platform !== 'linux'
    );
  }
}

/** Start of a process in clock ticks since boot; null if it is gone, a zombie, or the platform does not say. */
function startTime(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // Fields after the command name, which is in parentheses and may hold anything: state is the first of them.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const finished = fields[0] === 'Z' || fields[0] === 'X';
  // A killed process whose threads still finish a write is not gone yet.
  if (finished && threadCount(pid) <= 1) return null;
  return Number(fields[19]);
}

function threadCount(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}
