import { execFile } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { type ProxyOptions, serveClient } from './connection.js';
import type { TokenSource } from './relay.js';

export interface LocalProxy {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on loopback only: everybody who can connect has the rights of the tokens. */
export async function listenProxy(port: number, options: ProxyOptions): Promise<LocalProxy> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    void serveClient(client, options);
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject); // also for later errors of accepting
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      }),
  };
}

const COMMAND_MS = 30_000;

/** Token source that runs `command` in a shell; its output is the token. */
export function tokensOfCommand(command: string): TokenSource {
  return async () => {
    const token = await outputOf(command);
    return { token, subject: subjectOf(token) };
  };
}

function outputOf(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', command], { timeout: COMMAND_MS }, (error, out, err) => {
      // Standard output may contain a token: only standard error is shown.
      if (error !== null)
        reject(new Error(`the token command failed: ${err.trim().split('\n').at(-1) ?? ''}`));
      else resolve(out.trim());
    });
  });
}

/** `sub` of a token, unverified: the server compares it with the signed one. @throws Error */
export function subjectOf(token: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims === 'object' && claims !== null && 'sub' in claims && typeof claims.sub === 'string')
      return claims.sub;
  } catch {
    // said below: the text is no token, whatever it is
  }
  throw new Error('the token command printed no actor token');
}
