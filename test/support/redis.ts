import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why a test that needs one does not run. */
export const NO_REDIS = 'no redis-server: install the Debian package redis-server';

/** A Redis of this test's own, on loopback. */
export interface TestRedis {
  readonly url: string;
  /** Ends it without a word, as a machine that fails. */
  kill(): Promise<void>;
  /** Begins anew, empty, at the same port. */
  again(): Promise<void>;
  stop(): Promise<void>;
}

/** Null where there is no redis-server. */
export async function startRedis(): Promise<TestRedis | null> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return null;
  const dir = mkdtempSync(join(tmpdir(), 'osl-redis-'));
  const port = await freePort();
  let running: ChildProcess | null = null;
  const begin = async (): Promise<void> => {
    const flags = [
      '--port',
      `${port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      dir,
    ];
    const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'inherit'] });
    running = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error(`redis-server ended: ${said}`)));
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('Ready to accept connections')) resolve();
      });
    });
  };
  const kill = async (): Promise<void> => {
    const child = running;
    running = null;
    if (child === null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  await begin();
  const stop = async (): Promise<void> => {
    await kill();
    rmSync(dir, { recursive: true, force: true });
  };
  return { url: `redis://127.0.0.1:${port}`, kill, again: begin, stop };
}

/** Below the ports of outgoing connections, none of which can take it while the server is down. */
async function freePort(): Promise<number> {
  for (let port = 10_000 + (process.pid % 20_000); ; port++) {
    const server = createServer().listen(port, '127.0.0.1');
    const free = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ]);
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
