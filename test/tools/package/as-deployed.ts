import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { emptyDatabases } from '../../support/embedded-data.js';
import { EXAMPLE, ROOT, temporary } from '../cli/support.js';
import { CONTAINED_PATH, containing } from './contained.js';

const run = promisify(execFile);

/** How a supervisor starts, asks and stops the server. */
export interface Deployment {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Exits with 0 while the server answers; none where the supervisor does not ask. */
  readonly health: readonly string[];
  readonly stop: NodeJS.Signals;
}

function linesOf(file: string): readonly string[] {
  return readFileSync(join(ROOT, file), 'utf8').split('\n');
}

function oneOf(lines: readonly string[], pattern: RegExp): string {
  const found = lines.flatMap((line) => pattern.exec(line)?.[1] ?? []);
  if (found.length !== 1 || found[0] === undefined)
    throw new Error(`${found.length} lines are like ${pattern}`);
  return found[0];
}

function variables(lines: readonly string[], pattern: RegExp): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name, value] = pattern.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value]];
    }),
  );
}

/** What the image runs: its last stage. */
export function imageDeployment(): Deployment {
  const all = linesOf('Dockerfile');
  const lines = all.slice(all.findLastIndex((line) => line.startsWith('FROM ')));
  const words = (pattern: RegExp): string[] => JSON.parse(oneOf(lines, pattern));
  return {
    command: [...words(/^ENTRYPOINT (.*)$/), ...words(/^CMD (.*)$/)],
    env: variables(lines, /^ENV (\w+)=(.*)$/),
    health: words(/^HEALTHCHECK .*?CMD (.*)$/),
    stop: oneOf(lines, /^STOPSIGNAL (\w+)$/) as NodeJS.Signals, // spelled as Node spells it, or `kill` throws
  };
}

/** What the unit runs. */
export function unitDeployment(): Deployment {
  const lines = linesOf('deploy/osl-gateway.service');
  return {
    command: oneOf(lines, /^ExecStart=(.*)$/).split(' '),
    env: variables(lines, /^Environment=(\w+)=(.*)$/),
    health: [],
    stop: oneOf(lines, /^KillSignal=(\w+)$/) as NodeJS.Signals, // as above
  };
}

/**
 * Starts what is installed in `app` as `deployment` says, its folders elsewhere; asks whether it is well, and stops it.
 * Gives what its health check and itself ended with.
 */
export async function deployed(
  deployment: Deployment,
  app: string,
): Promise<{ readonly health: readonly number[]; readonly exit: number | null; readonly stderr: string }> {
  const place = temporary();
  const moved = (text: string): string =>
    text
      .replace('/opt/osl', app)
      .replace('/etc/osl', join(place, 'etc'))
      .replace('/var/lib/osl', join(place, 'var'));
  mkdirSync(join(place, 'etc'));
  for (const file of ['manifest.yaml', 'policy.yaml'])
    copyFileSync(join(EXAMPLE, file), join(place, 'etc', file));
  const env = {
    PATH: process.env['PATH'] ?? '',
    ...Object.fromEntries(Object.entries(deployment.env).map(([name, value]) => [name, moved(value)])),
    OSL_HTTP_PORT: String(await freePort()),
    OSL_PG_PORT: '0',
  };
  const manifest = readFileSync(join(place, 'etc', 'manifest.yaml'), 'utf8');
  await emptyDatabases(join(place, 'var'), manifest);
  const [, ...args] = deployment.command.map(moved);
  const server = spawn(process.execPath, [...process.execArgv, ...args], { cwd: join(place, 'etc'), env });
  let stderr = '';
  server.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ask = (): Promise<number> =>
    run(process.execPath, deployment.health.slice(1), { env }).then(
      () => 0,
      () => 1,
    );
  const asks = deployment.health.length > 0;
  const before = asks ? [await ask()] : [];
  await said(server, 'Ctrl-C stops the server.');
  const health = asks ? [...before, await ask()] : [];
  server.kill(deployment.stop);
  const [exit]: (number | null)[] = await once(server, 'exit');
  return { health, exit: exit ?? null, stderr };
}

/** Waits for `text`, or for the end. */
function said(server: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve) => {
    let stdout = '';
    server.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (stdout.includes(text)) resolve();
    });
    server.once('exit', () => resolve());
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The user of the image, by number. */
const USER = 1000;

/**
 * Starts what is installed in `app` as `deployment` says to the letter, in a container made by hand: its own root, which
 * nobody can write to, as user 1000 without any right. Gives what it ended with, and what it could write.
 */
export async function containedDeployment(
  deployment: Deployment,
  app: string,
): Promise<{
  readonly health: number;
  readonly exit: number | null;
  readonly stderr: string;
  readonly wrote: readonly string[];
}> {
  const place = temporary();
  const [etc, state] = [join(place, 'etc'), join(place, 'var')];
  for (const folder of [place, app]) chmodSync(folder, 0o755);
  mkdirSync(etc);
  for (const file of ['manifest.yaml', 'policy.yaml']) copyFileSync(join(EXAMPLE, file), join(etc, file));
  await emptyDatabases(state, readFileSync(join(etc, 'manifest.yaml'), 'utf8'));
  for (const path of ['.', ...readdirSync(state, { recursive: true, encoding: 'utf8' })])
    chownSync(join(state, path), USER, USER);
  const within = containing({
    readOnly: { '/opt/osl': app, '/etc/osl': etc },
    writable: { '/var/lib/osl': state },
    cwd: '/etc/osl',
  });
  const env = {
    ...deployment.env,
    PATH: `${CONTAINED_PATH}`,
    OSL_HTTP_PORT: String(await freePort()),
    OSL_PG_PORT: '0',
  };
  const [unshare = '', ...rest] = within;
  const outside = { ...env, PATH: `${env.PATH}:${process.env['PATH']}` };
  const tried = ['/x', '/tmp/x', '/etc/osl/x', '/opt/osl/x', '/var/lib/osl/x'];
  const touch = 'for f in "$@"; do (: > "$f") 2>/dev/null && echo "$f"; done; rm -f /var/lib/osl/x';
  const { stdout } = await run(unshare, [...rest, 'sh', '-c', touch, '-', ...tried], { env: outside });
  const server = spawn(unshare, [...rest, ...deployment.command], { env: outside });
  let stderr = '';
  server.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await said(server, 'Ctrl-C stops the server.');
  const health = await run(process.execPath, deployment.health.slice(1), { env }).then(
    () => 0,
    () => 1,
  );
  // The first process of the container, as an engine stops it.
  const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim();
  process.kill(Number(children), deployment.stop);
  const [exit]: (number | null)[] = await once(server, 'exit');
  return { health, exit: exit ?? null, stderr, wrote: stdout.trim().split('\n') };
}
