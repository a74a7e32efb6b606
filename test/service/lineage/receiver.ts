import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { memberIn } from './openlineage-schema.js';

/** One request as it came. */
export interface Received {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** ms since 1970. */
  readonly at: number;
}

/** What a receiver does with a request; `n` counts them from 0. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, n: number) => void;

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  behave(behaviour: Behaviour): void;
  /** Resolves when that many requests came; rejects after minutes, so that a test says what it lacks. */
  until(count: number): Promise<void>;
  close(): Promise<void>;
}

export const answering =
  (status: number, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (_, response) => {
    response.writeHead(status, headers).end('{}');
  };

const PATIENCE_MS = 200_000;

/** A real receiver on loopback; with `tls` over TLS. */
export async function startReceiver(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<Receiver> {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  let behaviour = answering(200);
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('error', () => undefined); // the sender may go away
    response.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(parts).toString('utf8');
      received.push({ headers: request.headers, body, at: Date.now() });
      behaviour(request, response, received.length - 1);
      for (const look of waiting) look();
    });
  };
  const server = tls === undefined ? createServer(handle) : createSecureServer(tls, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server has one
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/lineage`,
    port,
    received,
    behave: (next) => {
      behaviour = next;
    },
    until: (count) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`${received.length} requests came instead of ${count}`));
        }, PATIENCE_MS);
        const look = (): void => {
          if (received.length < count) return;
          clearTimeout(late);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** How many runs the body of an event tells of; NaN where it is no RunEvent. */
export function runsIn(body: string): number {
  return Number(memberIn(JSON.parse(body), 'run', 'facets', 'osl_reads', 'count'));
}

/**
 * Verifies a request as a receiver would, from the text of Standard Webhooks alone: which of `secrets` signed it, or
 * null for none of them, a missing header, or a time that is more than five minutes off.
 */
export function verifiedWith(
  request: Received,
  secrets: readonly string[],
  nowMs = request.at,
): string | null {
  const id = request.headers['webhook-id'];
  const timestamp = request.headers['webhook-timestamp'];
  const signatures = request.headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return null;
  if (Math.abs(nowMs / 1_000 - Number(timestamp)) > 300) return null;
  for (const secret of secrets) {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    const mine = createHmac('sha256', key).update(`${id}.${timestamp}.${request.body}`, 'utf8').digest();
    for (const part of signatures.split(' ')) {
      const [version, value = ''] = part.split(',');
      const theirs = Buffer.from(value, 'base64');
      if (version === 'v1' && theirs.length === mine.length && timingSafeEqual(theirs, mine)) return secret;
    }
  }
  return null;
}
