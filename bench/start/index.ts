import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Findings, paired } from '../report.js';

/** Run time of commands, and time until a server is ready: installed package and checkout. */
export async function startBench(quick: boolean): Promise<Findings> {
  const root = mkdtempSync(join(tmpdir(), 'osl-start-'));
  try {
    const rounds = quick ? 3 : 21;
    const app = installed(root);
    const programs = [
      join(app, 'node_modules', 'osl-gateway', 'bin', 'osl.js'),
      join('bin', 'osl.js'),
    ] as const;
    const dataDir = join(root, 'data');
    const server = await demo(programs[0], dataDir);
    const commands: readonly (readonly [string, readonly string[]])[] = [
      ['help', ['--help']],
      ['token', ['token', '--data-dir', dataDir, '--subject', 'user:analyst']],
      ['query', ['query', '--data-dir', dataDir, '--subject', 'user:analyst', 'select 1 as one']],
    ];
    const measures = commands.map(([name, args]) => {
      const times = alternating(rounds, programs, (program) => commandMs(program, args, {}));
      return paired(`start.${name}.vs_checkout`, 'ms', 'less', ...times, 'checkout');
    });
    if ('enableCompileCache' in (await import('node:module'))) {
      const cache = join(root, 'cache');
      mkdirSync(cache, { mode: 0o700 });
      const [, , query = ['', []]] = commands;
      const kinds = [{ NODE_COMPILE_CACHE: cache }, {}] as const;
      commandMs(programs[0], query[1], kinds[0]);
      const times = alternating(rounds, kinds, (env) => commandMs(programs[0], query[1], env));
      measures.push(paired('start.query.cached_vs_not', 'ms', 'less', ...times, 'without a cache'));
    }
    await server.stop();
    const serves = await alternatingStarts(quick ? 2 : 9, programs, dataDir);
    measures.push(paired('start.demo.vs_checkout', 'ms', 'less', ...serves, 'checkout'));
    return { measures, tables: [] };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Installs the packages into an empty folder, with the scripts of the image. */
function installed(root: string): string {
  const [packed, app] = [join(root, 'packed'), join(root, 'app')];
  const ran = (...words: readonly string[]): void => {
    const [command = '', ...args] = words;
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${words.join(' ')}: ${stderr}`);
  };
  ran('sh', 'deploy/pack.sh', packed);
  ran('sh', 'deploy/install.sh', app, ...readdirSync(packed).map((name) => join(packed, name)));
  return app;
}

/** Runs both in sequence, and swaps their order each time. */
function alternating<T>(
  rounds: number,
  [ours, theirs]: readonly [T, T],
  ms: (which: T) => number,
): readonly [readonly number[], readonly number[]] {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 0) times[0].push(ms(ours));
    times[1].push(ms(theirs));
    if (round % 2 === 1) times[0].push(ms(ours));
  }
  return times;
}

function commandMs(program: string, args: readonly string[], env: Readonly<Record<string, string>>): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [program, ...args], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`osl ${args.join(' ')}: ${stderr}`);
  return performance.now() - started;
}

interface Demo {
  /** Time until it was ready. */
  readonly ms: number;
  stop(): Promise<void>;
}

async function demo(program: string, dataDir: string): Promise<Demo> {
  const started = performance.now();
  const child = spawn(process.execPath, [program, 'demo'], {
    env: { ...process.env, OSL_DATA_DIR: dataDir, OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('Ctrl-C stops the server.')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the demo ended with ${code}: ${said}`)));
  });
  const ms = performance.now() - started;
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  return { ms, stop };
}

/**
 * Each program gets a separate data directory, so that neither loads the other's installation; first starts do not
 * count.
 */
async function alternatingStarts(
  rounds: number,
  programs: readonly [string, string],
  dataDir: string,
): Promise<readonly [readonly number[], readonly number[]]> {
  const times: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round += 1) {
    for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const server = await demo(programs[which], `${dataDir}-${which}`);
      if (round >= 0) times[which].push(server.ms);
      await server.stop();
    }
  }
  return times;
}
