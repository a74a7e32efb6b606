import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { ROOT } from '../tools/cli/support.js';

/** The built site. */
export const BUILT = join(ROOT, 'site', 'dist');

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
