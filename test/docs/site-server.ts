import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { ROOT } from '../tools/cli/support.js';

const SITE = join(ROOT, 'site');
/** The built site. */
export const BUILT = join(SITE, 'dist');

function run(command: string, ...args: readonly string[]): { readonly ok: boolean; readonly said: string } {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|TAP|OSL_)/.test(name));
  const options = { cwd: SITE, env: Object.fromEntries(kept), encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  const { status, stdout, stderr } = spawnSync(command, args, options);
  return { ok: status === 0, said: `${stdout}${stderr}` };
}

/** Asks three times for what comes over the network: a connection that is cut says nothing of the site. */
function install(): { readonly ok: boolean; readonly said: string } {
  const once = () => run('npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund');
  const first = once();
  if (first.ok) return first;
  const second = once();
  return second.ok ? second : once();
}

/** Installs and builds the site as its package says. Returns what went wrong; null if nothing did. */
export function buildSite(): string | null {
  const installed = install();
  if (!installed.ok) return installed.said;
  const built = run('npm', 'run', 'build');
  return built.ok ? null : built.said;
}

/** The file that a path of the site is answered with, by a server that knows no more than files. */
export function fileOf(path: string): string {
  const plain = decodeURIComponent(path).replace(/^\//, '');
  if (plain === '' || plain.endsWith('/')) return `${plain}index.html`;
  return plain;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/** The built site on a server of files. */
export interface ServedSite {
  readonly origin: string;
  /** Paths that were asked for. */
  readonly requests: readonly string[];
  close(): void;
}

export async function serveSite(): Promise<ServedSite> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '/');
    const file = join(BUILT, fileOf(new URL(request.url ?? '/', 'http://site').pathname));
    if (!file.startsWith(BUILT) || !existsSync(file)) response.writeHead(404).end();
    else response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain').end(readFileSync(file));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo; // listening, so it has one
  return { origin: `http://127.0.0.1:${port}`, requests, close: () => server.close() };
}
