import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** A process started by the bench and stopped by its id. */
export interface Child {
  readonly pid: number;
  /** The output line that reported readiness. */
  readonly ready: string;
  /** @param signal signal that requests termination; default SIGTERM */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

const READY_MS = 30_000;

/**
 * Starts `command` and waits for the first line of its output that satisfies `isReady`; does not wait without one.
 *
 * @throws Error with its standard error if it exits or is not ready within 30 s
 */
export async function startChild(
  command: readonly [string, ...string[]],
  options: SpawnOptions,
  isReady: ((line: string) => boolean) | null,
): Promise<Child> {
  const [file, ...args] = command;
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} cannot be started`);
  const onExit = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', onExit);
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    process.off('exit', onExit);
    await ended(child, signal);
  };
  try {
    return { pid, ready: isReady === null ? '' : await firstLine(child, file, isReady), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function firstLine(child: ChildProcess, file: string, isReady: (line: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let out = '';
    let errors = '';
    const fail = (): void => reject(new Error(`${file} did not start: ${errors.trim() || out.trim()}`));
    const timer = setTimeout(fail, READY_MS);
    child.once('error', fail);
    child.once('exit', fail);
    child.stderr?.on('data', (chunk: Buffer) => {
      if (errors.length < 10_000) errors += chunk.toString('utf8');
    });
    child.stdout?.on('data', (chunk: Buffer) => {
      if (out.length > 10_000) return;
      out += chunk.toString('utf8');
      const line = out.split('\n').find(isReady);
      if (line === undefined) return;
      clearTimeout(timer);
      child.off('exit', fail);
      resolve(line);
    });
  });
}

const STOP_MS = 20_000;

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    const hung = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    child.once('exit', () => {
      clearTimeout(hung);
      done();
    });
    child.kill(signal);
  });
}

/** Processor time that process `pid` and its children have used so far, in seconds, all threads. Linux only. */
export function cpuSeconds(pid: number): number {
  return sumOf(pid, cpuSecondsOf);
}

function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

/** `USER_HZ`, fixed on Linux. */
const CLOCK_TICKS = 100;

/** Resident memory of process `pid` and its children in MiB; shared memory counts once for each. Linux only. */
export function residentMib(pid: number): number {
  return sumOf(pid, residentMibOf);
}

function residentMibOf(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1]) / 1_024;
}

/** Sum over `pid` and its children, such as the workers of a supervisor. */
function sumOf(pid: number, of: (pid: number) => number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, one) => sum + of(one), 0);
}

function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
      .split(' ')
      .filter((text) => text.trim() !== '')
      .map(Number),
  );
}

/** Peak resident memory since `resetPeak` in MiB. Linux only. */
export function peakResidentMib(pid: number): number {
  const found = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1]) / 1_024;
}

/** Resets the peak of resident memory. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
