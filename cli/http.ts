import http, { type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { trustOf } from './trust.js';

export interface HttpRequest {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request and gives the answer as it begins, whatever its status. Follows no redirect: a token is for this server
 * only. Not by `fetch`, which takes longer to load than a whole question, and trusts no certificate of our choice.
 */
export async function openHttp(url: string, request: HttpRequest): Promise<IncomingMessage> {
  const target = new URL(url);
  const { request: open } = target.protocol === 'https:' ? await import('node:https') : http;
  const { method = 'GET', headers, body, signal } = request;
  const options = { method, headers, agent: false, ...(signal !== undefined && { signal }) };
  return new Promise((resolve, reject) => {
    const outgoing = open(target, { ...options, ...trustOf(target) }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** As `openHttp`, in the form of `fetch`. */
export async function fetchHttp(url: string, request: HttpRequest): Promise<Response> {
  const incoming = await openHttp(url, request);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    if (value !== undefined) headers.set(name, String(value));
  const status = incoming.statusCode ?? 502;
  const empty = status === 204 || status === 304;
  const body = empty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, headers });
}
