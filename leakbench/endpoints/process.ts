import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WORLDS, type WorldName } from '../endpoint.js';

/** A process that an endpoint needs, with a directory for its files. */
export interface StartedProcess {
  readonly child: ChildProcess;
  readonly dir: string;
  /** Ends the process and removes its directory. */
  stop(): Promise<void>;
}

/** A new directory for the files of a process. */
export const newDirectory = (name: string): string => mkdtempSync(join(tmpdir(), `leakbench-${name}-`));

/**
 * Starts a command in a directory; its output goes to the file `log` there.
 *
 * @param command program and arguments, separated by blanks
 * @param listen true to read the standard output instead of logging it
 */
export async function start(
  dir: string,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  listen = false,
): Promise<StartedProcess> {
  const [program = '', ...more] = [...command.split(' '), ...args];
  const log = openSync(join(dir, 'log'), 'w');
  const child = spawn(program, more, {
    cwd: dir,
    env: { ...process.env, ...env },
    stdio: ['ignore', listen ? 'pipe' : log, log],
    detached: true,
  });
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  closeSync(log);
  endWithUs(child);
  return { child, dir, stop: () => stop(child, dir) };
}

/** Log of the process so far. */
export const logOf = ({ dir }: StartedProcess): string => readFileSync(join(dir, 'log'), 'utf8');

async function stop(child: ChildProcess, dir: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    end(child);
    await ended;
  }
  rmSync(dir, { recursive: true, force: true });
}

/** Ends a process and those that it started: a command may be a launcher, such as npx. */
function end({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGTERM');
}

const STARTED = new Set<ChildProcess>();
let isHooked = false;

/** Ends a process when this one exits or receives a signal. */
function endWithUs(child: ChildProcess): void {
  if (!isHooked) {
    isHooked = true;
    process.once('exit', () => STARTED.forEach(end));
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)
      process.once(signal, () => process.exit(code));
  }
  STARTED.add(child);
  child.once('exit', () => STARTED.delete(child));
}

/** Waits until a check holds; after 30 s, or if the process ends, fails with its log. */
export async function ready(running: StartedProcess, check: () => Promise<boolean>): Promise<void> {
  for (const until = Date.now() + 30_000; !(await check()); await sleep(100)) {
    if (Date.now() < until && running.child.exitCode === null) continue;
    const log = logOf(running);
    await running.stop();
    throw new Error(`the process does not answer: ${log}`);
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}

interface WorldServers {
  readonly ports: ReadonlyMap<WorldName, number>;
  close(): Promise<void>;
}

/**
 * Starts a server for each world, each at another port. If one fails, the others are stopped.
 *
 * @param start calls `onStart` with the process as soon as it runs
 */
export async function startForWorlds(
  start: (world: WorldName, port: number, onStart: (server: StartedProcess) => void) => Promise<void>,
): Promise<WorldServers> {
  const ports = new Map<WorldName, number>();
  const running: StartedProcess[] = [];
  const close = async (): Promise<void> => {
    for (const each of running) await each.stop();
  };
  try {
    for (const world of WORLDS) {
      const port = await freePort();
      ports.set(world, port);
      await start(world, port, (server) => void running.push(server));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { ports, close };
}
