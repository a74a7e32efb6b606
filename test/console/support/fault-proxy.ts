import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Test } from 'tap';

/** Ways in which requests fail: kept waiting, cut off, answered by something else, or refused by the gateway. */
export const FAULTS = ['held', 'refused', 'malformed', 'foreign', 'failed', 'forbidden', 'limited'] as const;
export type Fault = (typeof FAULTS)[number];

/** Seconds after which a limited request may be repeated; longer than the console waits by itself. */
const RETRY_SECONDS = 900;

/** A proxy before a gateway, which lets requests of some paths fail. */
export interface FaultProxy {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** Requests so far, by path without query. */
  count(path: string): number;
  fail(path: RegExp, fault: Fault): void;
  /** Ends all faults; requests that were kept waiting go on. */
  heal(): void;
}

export async function startFaultProxy(t: Pick<Test, 'teardown'>, gateway: string): Promise<FaultProxy> {
  const seen = new Map<string, number>();
  let failing: { readonly path: RegExp; readonly fault: Fault } | null = null;
  let held: (() => void)[] = [];
  const server = createServer((incoming, response) => {
    const url = incoming.url ?? '/';
    const path = url.split('?', 1)[0] ?? url;
    seen.set(path, (seen.get(path) ?? 0) + 1);
    const pass = (): void => forward(gateway, incoming, response);
    if (failing?.path.test(path) !== true) pass();
    else if (failing.fault === 'held') held.push(pass);
    else answer(failing.fault, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    origin: `http://127.0.0.1:${address.port}`,
    count: (path) => seen.get(path) ?? 0,
    fail: (path, fault) => {
      failing = { path, fault };
    },
    heal: () => {
      failing = null;
      for (const pass of held) pass();
      held = [];
    },
  };
}

/** Passes a request on, as if it had been sent to the gateway itself. */
function forward(gateway: string, incoming: IncomingMessage, response: ServerResponse): void {
  const { host } = new URL(gateway);
  const { origin } = incoming.headers;
  const headers = { ...incoming.headers, host, ...(origin !== undefined && { origin: gateway }) };
  const options = { method: incoming.method ?? 'GET', headers };
  const outgoing = request(`${gateway}${incoming.url ?? '/'}`, options, (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

function answer(fault: Exclude<Fault, 'held'>, response: ServerResponse): void {
  switch (fault) {
    case 'refused':
      response.destroy();
      return;
    case 'malformed':
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"rows": [\n');
      return;
    case 'foreign':
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
      return;
    case 'failed':
      problem(response, 500, 'E5000', 'internal error');
      return;
    case 'forbidden':
      problem(response, 403, 'E2101', 'you have no right to this');
      return;
    case 'limited':
      response.setHeader('retry-after', RETRY_SECONDS);
      problem(response, 429, 'E4290', 'a limit of the policy is used up: 10 requests per hour');
      return;
    default: {
      const unknown: never = fault;
      throw new Error(`unexpected fault ${String(unknown)}`);
    }
  }
}

/** A refusal in the form of the gateway's own. */
function problem(response: ServerResponse, status: number, code: string, detail: string): void {
  const body = { type: `urn:osl:error:${code}`, title: code, status, code, detail, hint: null };
  response
    .writeHead(status, { 'content-type': 'application/problem+json' })
    .end(JSON.stringify({ ...body, sqlstate: 'XX000', position: null, request_id: 'of-the-proxy' }));
}
