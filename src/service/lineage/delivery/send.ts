import { createHmac } from 'node:crypto';
import { lookup } from 'node:dns';
import { type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { LineageEndpoint } from '../config/load.js';
import { readSecret, signingKey } from '../config/secrets.js';
import { AddressRule } from './address.js';

/** Creates Standard Webhooks headers. `keys` are newest first; `seconds` is the time since the epoch. */
export function signedHeaders(
  id: string,
  seconds: number,
  body: string,
  keys: readonly Uint8Array[],
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const content = `${id}.${seconds}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`);
  return {
    'webhook-id': id,
    'webhook-timestamp': `${seconds}`,
    'webhook-signature': signatures.join(' '),
  };
}

/** The result of an attempt. Response bodies are never read. */
export type SendAttempt =
  | { readonly kind: 'delivered'; readonly status: number }
  /** The endpoint answered with status 410. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number | null };

interface WebhookMessage {
  readonly id: string;
  readonly body: string;
}

export interface EventSendOptions {
  /** The current time in ms since the epoch. */
  readonly now: () => number;
  readonly agent: string;
  /** Replaces the system's resolver in tests. */
  readonly lookup?: LookupFunction;
}

/** Posts a letter (an event's id and body) in a single attempt, within the endpoint's timeout. Never rejects. */
export async function send(
  endpoint: LineageEndpoint,
  message: WebhookMessage,
  options: EventSendOptions,
): Promise<SendAttempt> {
  try {
    return await post(endpoint, message, options);
  } catch (error) {
    return { kind: 'failed', reason: reasonOf(error), retryAfterMs: null };
  }
}

function post(
  endpoint: LineageEndpoint,
  message: WebhookMessage,
  options: EventSendOptions,
): Promise<SendAttempt> {
  const url = new URL(endpoint.url);
  const secure = url.protocol === 'https:';
  const rule = new AddressRule(endpoint.allowAddresses, secure);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // Literal addresses bypass the resolver.
  if (isIP(host) !== 0 && !rule.permits(host)) throw new Error(NOT_ALLOWED);
  const keys = endpoint.secrets.map((s) => signingKey(readSecret(s)));
  const seconds = Math.floor(options.now() / 1_000);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(message.body),
    'user-agent': options.agent,
    ...signedHeaders(message.id, seconds, message.body, keys),
    ...(endpoint.authorization !== null && { authorization: readSecret(endpoint.authorization) }),
  };
  const request = secure ? secureRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: 'POST',
      headers,
      agent: false,
      lookup: permittedLookup(rule, options.lookup ?? systemLookup),
      maxHeaderSize: 16_384,
      ...(endpoint.ca !== null && { ca: endpoint.ca }),
    });
    const timeout = setTimeout(() => outgoing.destroy(new Error('no answer in time')), endpoint.timeoutMs);
    const finish = (settlePromise: () => void): void => {
      clearTimeout(timeout);
      settlePromise();
      outgoing.destroy();
    };
    outgoing.once('socket', (socket) => checkPeer(socket, rule, outgoing));
    outgoing.once('response', (response) => finish(() => resolve(toAttempt(response, options.now()))));
    // Only the first event settles the promise; later errors have no effect.
    outgoing.on('error', (error) => finish(() => reject(error)));
    outgoing.end(message.body);
  });
}

const NOT_ALLOWED = 'its address is private or reserved, and not in allow_addresses';

/** INVARIANT: the checked addresses are those that the socket connects to, so DNS rebinding is impossible. */
function permittedLookup(rule: AddressRule, resolver: LookupFunction): LookupFunction {
  return (hostname, lookupOptions, done) => {
    resolver(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
      const candidates =
        typeof addresses === 'string' ? [{ address: addresses, family: isIP(addresses) }] : addresses;
      const permitted = (candidates ?? []).filter(({ address }) => rule.permits(address));
      const [first] = permitted;
      if (error !== null) done(error, []);
      else if (first === undefined) done(new Error(NOT_ALLOWED), []);
      else if (lookupOptions.all === true) done(null, permitted);
      else done(null, first.address, first.family);
    });
  };
}

const systemLookup: LookupFunction = (hostname, options, done) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => done(error, addresses));
};

/** Checks the address of the connected peer again before anything is sent. */
function checkPeer(socket: Socket, rule: AddressRule, outgoing: ClientRequest): void {
  socket.once('connect', () => {
    if (!rule.permits(socket.remoteAddress ?? '')) outgoing.destroy(new Error(NOT_ALLOWED));
  });
}

function toAttempt(response: IncomingMessage, now: number): SendAttempt {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  if (status === 410) return { kind: 'gone' };
  const redirect = status >= 300 && status < 400 ? ', a redirect, which is not followed' : '';
  return {
    kind: 'failed',
    reason: `status ${status}${redirect}`,
    retryAfterMs: parseRetryAfter(response.headers['retry-after'], now),
  };
}

/** Returns the reason for a failure, preferably a system or TLS code, since messages may quote the peer. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses in ms after each attempt; after the last one, an event becomes a dead letter. */
const PAUSES_MS: readonly number[] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];

export const ATTEMPTS: number = PAUSES_MS.length + 1;

/** The longest `Retry-After` that is honoured, in ms. */
const MAX_RETRY_AFTER_MS = 24 * HOUR;

/**
 * Returns the pause before the next attempt in ms, with up to 20 % jitter, at least `retryAfterMs` (up to 24 h); null if no
 * attempts are left.
 *
 * @param attempts attempts made so far, at least one
 * @param retryAfterMs the receiver's `Retry-After` in ms; null if absent or malformed
 * @param random random number from 0 to 1
 */
export function pauseAfter(attempts: number, retryAfterMs: number | null, random: number): number | null {
  const pause = PAUSES_MS[attempts - 1];
  if (pause === undefined) return null;
  return Math.max(Math.round(pause * (1 + random / 5)), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}

/** Parses `Retry-After` to a time in ms from `now`; null if absent or malformed. */
export function parseRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * SECOND;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
