import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import type { MetricFormat } from 'osl-compiler';
import { codeOf } from '../src/base/thrown.js';
import { readSetting } from '../src/service/settings/table.js';
import type { Settings } from '../src/service/settings.js';
import { EXIT, Failure, systemFault, usage } from './exit.js';
import { isLoopback, restUrl, runningServer, type ServerRecord } from './server-file.js';

interface HttpRequest {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request; resolves when the response starts, whatever its status. Redirects are not followed, because the
 * token is meant for this server only. `fetch` is not used: it loads slowly and cannot be told to trust a particular
 * certificate.
 */
async function openHttp(url: string, request: HttpRequest): Promise<IncomingMessage> {
  const target = new URL(url);
  const { request: open } = target.protocol === 'https:' ? await import('node:https') : http;
  const { method = 'GET', headers, body, signal } = request;
  const options = { method, headers, agent: false, ...(signal !== undefined && { signal }) };
  return new Promise((resolve, reject) => {
    const outgoing = open(target, { ...options, ...tlsOptionsFor(target) }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Like `openHttp`, but returns a `Response` as `fetch` does. */
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

export interface AnswerBody {
  readonly request_id: string;
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly redacted: boolean;
    readonly format?: MetricFormat;
  }[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly row_count: number;
  readonly truncated: boolean;
  readonly redacted_columns: readonly string[];
  readonly redacted_conditions?: readonly string[];
  readonly receipt?: SaltedReceipt;
}

/** The receipt of an answer: a proof that can be shown, and the salt that only the caller gets. */
export interface SaltedReceipt {
  readonly proof: string;
  readonly salt: string;
}

/** Options of a request for an answer, other than its query. */
export interface AnswerWishes {
  readonly signal?: AbortSignal | undefined;
  /** True if the answer should have a receipt. */
  readonly receipt?: boolean;
  /** Reason given when requesting approval, if the query needs one. */
  readonly approvalReason?: string | undefined;
}

function preferred({ receipt, approvalReason }: AnswerWishes): Readonly<Record<string, string>> {
  return {
    ...(receipt === true && { prefer: 'receipt' }),
    ...(approvalReason !== undefined && { 'osl-approval-reason': encodeURIComponent(approvalReason) }),
  };
}

export interface ProblemBody {
  readonly code: string;
  readonly detail: string;
  readonly hint: string | null;
  readonly request_id: string | null;
  readonly position: { readonly offset: number; readonly line: number; readonly column: number } | null;
}

export interface HttpReply {
  readonly ok: boolean;
  readonly status: number;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The `Retry-After` header in seconds; null if missing. */
  readonly retryAfterSeconds: number | null;
}

export type QueryBody = (
  | { readonly osql: string }
  | { readonly sql: string }
  | { readonly metrics: unknown }
) & { readonly explain?: true; readonly upstream?: 'statement' | 'plan' };

/**
 * The given address, otherwise that of the server running in the data directory, without a trailing `/`.
 *
 * @throws Failure if no server is running
 */
export function serverUrl(given: string | undefined, settings: Settings): string {
  if (given !== undefined) return given;
  const record = runningServer(settings.dataDir);
  if (record !== null) return localServerUrl(record);
  throw new Failure(
    EXIT.unreachable,
    `error: no server runs in ${settings.dataDir}: start one with \`osl demo\` or \`osl serve\`, or name --data-dir or --server`,
  );
}

export async function postQuery(
  url: string,
  token: string,
  body: QueryBody,
  wishes: AnswerWishes = {},
): Promise<HttpReply> {
  return postDocument(url, '/osl/query', token, body, wishes.signal, preferred(wishes));
}

export async function openQuery(
  url: string,
  token: string,
  body: QueryBody,
  accept: string,
  wishes: AnswerWishes,
): Promise<Response> {
  const { signal } = wishes;
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept,
    ...preferred(wishes),
  };
  const request = { method: 'POST', headers, body: JSON.stringify(body), ...(signal && { signal }) };
  try {
    return await fetchHttp(`${url}/osl/query`, request);
  } catch (error) {
    throw unreachable(url, error);
  }
}

/** Sends a GET with a token. @throws Failure if there is no answer */
export async function getDocument(url: string, path: string, token: string): Promise<HttpReply> {
  return send(url, path, { headers: { authorization: `Bearer ${token}` } });
}

/** Reads a document that needs no token. @throws Failure if there is no answer */
export async function getPublic(url: string, path: string): Promise<HttpReply> {
  return send(url, path, { headers: {} });
}

/** Posts a form (OAuth). @throws Failure if there is no answer, or the connection would not be encrypted */
export async function postForm(
  url: string,
  path: string,
  form: Readonly<Record<string, string>>,
): Promise<HttpReply> {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
    throw usage(`${url} is not https: a login would go in the clear`);
  return send(url, path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  });
}

/** Posts JSON. @throws Failure if there is no answer */
export async function postDocument(
  url: string,
  path: string,
  token: string,
  body: object,
  signal?: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): Promise<HttpReply> {
  return send(url, path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

async function send(url: string, path: string, request: HttpRequest): Promise<HttpReply> {
  const incoming = await openHttp(`${url}${path}`, request).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk);
  } catch (error) {
    throw unreachable(url, error);
  }
  const { statusCode = 0, headers } = incoming;
  return readReply(url, statusCode, Buffer.concat(chunks).toString('utf8'), headers['retry-after']);
}

function readReply(url: string, status: number, text: string, retryAfter: string | null = null): HttpReply {
  const retryAfterSeconds = retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : null;
  return { ok: status >= 200 && status < 300, status, text, body: objectOf(text, url), retryAfterSeconds };
}

/** Reads the whole JSON response. @throws Failure if it is cut off or is not JSON */
export async function replyOf(url: string, response: Response): Promise<HttpReply> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw unreachable(url, error);
  }
  return readReply(url, response.status, text, response.headers.get('retry-after'));
}

export function unreachable(url: string, error: unknown): Failure {
  const cause = error instanceof Error ? (error.cause ?? error) : null;
  const code = codeOf(cause);
  const words =
    systemFault(cause) ??
    (code === 'ECONNREFUSED' ? 'nothing listens there' : (explainDistrust(cause) ?? code ?? 'no connection'));
  return new Failure(EXIT.unreachable, `error: no answer from ${url}: ${words}`);
}

function objectOf(text: string, url: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // reported below
  }
  throw new Failure(EXIT.unreachable, `error: ${url} does not answer as an OSL Gateway does`);
}

const shown = new Map<string, string>();

/** Returns the REST address of a server on this machine, and remembers its certificate file for requests to it. */
export function localServerUrl(record: ServerRecord): string {
  const url = restUrl(record);
  if (record.httpCertFile !== '') shown.set(new URL(url).origin, record.httpCertFile);
  return url;
}

interface Trust extends SecureContextOptions {
  readonly checkServerIdentity?: (host: string, peer: { readonly raw: Buffer }) => Error | undefined;
}

/**
 * TLS options for a URL. For a server on this machine with a certificate file, trusts exactly that certificate;
 * otherwise trusts the authorities in OSL_SERVER_CA, by default those of Node.
 *
 * @throws system errors of files
 */
function tlsOptionsFor(target: URL): Trust {
  if (target.protocol !== 'https:') return {};
  const file = shown.get(target.origin);
  if (file !== undefined) return pinned(readFileSync(file));
  const authorities = readSetting('OSL_SERVER_CA');
  return authorities === null ? {} : { ca: readFileSync(authorities) };
}

/** Accepts exactly this certificate, even if it is not issued for the address. */
function pinned(pem: Buffer): Trust {
  const { raw } = new X509Certificate(pem);
  return {
    ca: pem,
    // Trust the certificate itself, even if another authority issued it.
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, peer) =>
      peer.raw.equals(raw) ? undefined : new Error('the server shows another certificate than its file has'),
  };
}

/** Explains that a certificate is not trusted; null for other errors. */
function explainDistrust(cause: unknown): string | null {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return DISTRUST.test(code)
    ? 'its certificate is not of an authority that is trusted here: name the authority in OSL_SERVER_CA'
    : null;
}

const DISTRUST = /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_(UNTRUSTED|HAS_EXPIRED)/;
