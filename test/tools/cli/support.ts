import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';

/** The folder of the package; tests run from `dist/test/tools/cli`. */
export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url)).replace(/\/$/, '');
/** Another command, such as the bundled one, may be asked the same. */
export const BIN = process.env['OSL_TEST_BIN'] ?? join(ROOT, 'bin', 'osl.js');
export const EXAMPLE = join(ROOT, 'examples', 'supply-chain');

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

/** What runs: a Node, and the command's script. */
export interface Program {
  readonly node: string;
  /** Of Node. */
  readonly flags?: readonly string[];
  /** Null: it is an executable of its own. */
  readonly script: string | null;
}

/** This checkout's, by the Node of the tests and as they run in it. */
const HERE: Program = { node: process.execPath, flags: process.execArgv, script: BIN };

export interface RunOptions {
  readonly program?: Program;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
}

/** Runs the real command to its end. */
export async function osl(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const started = performance.now();
  const { node, flags = [], script } = options.program ?? HERE;
  const child = spawn(node, [...flags, ...(script === null ? [] : [script]), ...args], {
    cwd: options.cwd ?? ROOT,
    env: environment(options.env),
    stdio: 'pipe',
  });
  child.stdin.end(options.input ?? '');
  return ended(child, started);
}

/** Runs one line of a shell, with `npx osl` standing for this checkout's command. */
export function shell(line: string): Promise<Finished> {
  const command = [process.execPath, ...process.execArgv, BIN].map((word) => `"${word}"`).join(' ');
  const text = line.replaceAll('npx osl', command);
  const child = spawn('bash', ['-c', text], { cwd: ROOT, env: environment(), stdio: 'pipe' });
  child.stdin.end();
  return ended(child, performance.now());
}

/** The environment without what would change a command, above all npm's own variables. */
function environment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OSL_|PG|npm_|NODE_OPTIONS|TAP)/.test(name));
  return { ...Object.fromEntries(kept), ...more };
}

function ended(child: ChildProcess, started: number): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr, ms: performance.now() - started }));
  });
}

const made: string[] = [];
process.once('exit', () => {
  // A process that was killed may still be writing.
  for (const dir of made) rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

/** A directory that is removed when the tests end. */
export function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), 'osl-cli-'));
  made.push(dir);
  return dir;
}

/** A server under test. */
export class Server {
  readonly dataDir: string;
  readonly ended: Promise<Finished>;
  readonly #child: ChildProcess;
  readonly #started = performance.now();
  #stdout = '';
  #stderr = '';
  #over = false;

  /** @param within a command that runs it, such as one that gives it namespaces of its own */
  constructor(
    args: readonly string[],
    dataDir: string,
    env: Readonly<Record<string, string>> = {},
    { node, flags = [], script }: Program = HERE,
    within: readonly string[] = [],
  ) {
    this.dataDir = dataDir;
    const ports = { OSL_HTTP_PORT: '0', OSL_PG_PORT: '0', OSL_DATA_DIR: dataDir };
    const words = script === null ? [node, ...flags] : [node, ...flags, script];
    const [command = '', ...rest] = [...within, ...words, ...args];
    this.#child = spawn(command, rest, {
      cwd: ROOT,
      env: environment({ ...ports, ...env }),
      stdio: 'pipe',
    });
    this.ended = ended(this.#child, this.#started).finally(() => {
      this.#over = true;
    });
    this.#child.stdout?.on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr?.on('data', (text: string) => {
      this.#stderr += text;
    });
    process.once('exit', () => this.#child.kill('SIGKILL'));
  }

  /** True while its process runs. */
  get alive(): boolean {
    return !this.#over;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Milliseconds from the start to the first `text` on standard output or error. */
  async said(text: string): Promise<number> {
    while (!this.#stdout.includes(text) && !this.#stderr.includes(text)) {
      if (this.#over)
        throw new Error(`the server ended without saying ${text}: ${this.#stdout}${this.#stderr}`);
      await sleep(20);
    }
    return performance.now() - this.#started;
  }

  /** Milliseconds that the process has had on a processor, of all its threads: 0 where the system does not say. */
  processorMs(): number {
    if (process.platform !== 'linux') return 0;
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, 'latin1');
    const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12).map(Number);
    return (user + system) * 10; // a tick is a hundredth of a second
  }

  record(): Record<string, unknown> {
    // A file of ours; the tests look at its members one by one.
    return JSON.parse(readFileSync(join(this.dataDir, 'server.json'), 'utf8')) as Record<string, unknown>;
  }

  async signal(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<Finished> {
    this.#child.kill(signal);
    return this.ended;
  }

  hangUp(): void {
    this.#child.kill('SIGHUP');
  }
}

/** The most memory that a process has had, against a bound with headroom: docs/operations.md has the figures. */
export function boundedMib(t: Pick<Test, 'ok'>, pid: number, most: number, what: string): void {
  if (process.platform !== 'linux') return;
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const mib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
  t.ok(mib < most, `${what}: ${Math.round(mib)} MiB, less than ${most}`);
}
