import { createHash, createHmac } from 'node:crypto';
import { nameOf, WITNESS_MS, type Witness } from './witness.js';

export interface ObjectStore {
  /** Base URL such as https://s3.eu-central-1.amazonaws.com; path-style access. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Prefix of object names: empty, or ending in a slash. */
  readonly prefix: string;
  readonly credentials: S3Credentials;
}

const EMPTY = new Uint8Array();
/** HTTP status "Precondition Failed": the object already exists. */
const THERE = 412;

/** Witness in an S3-compatible bucket. Protect it with object lock or a role that may put but not delete objects. */
export function objectStoreWitness(store: ObjectStore): Witness {
  const { bucket, prefix } = store;
  return {
    name: `s3://${bucket}/${prefix}`,
    keep: async (checkpoint) => {
      const headers = { 'content-type': 'text/plain', 'if-none-match': '*' };
      const body = Buffer.from(checkpoint.note);
      const answer = await ask(store, 'PUT', urlOf(store, `${prefix}${nameOf(checkpoint)}`), headers, body);
      await answer.body?.cancel();
      if (!answer.ok && answer.status !== THERE) throw new Error(`it answered ${answer.status}`);
    },
    kept: async () => {
      const notes: string[] = [];
      for (const key of await keysOf(store)) {
        const answer = await ask(store, 'GET', urlOf(store, key), {}, EMPTY);
        if (!answer.ok) throw new Error(`it answered ${answer.status} for ${key}`);
        notes.push(await answer.text());
      }
      return notes;
    },
    close: async () => undefined,
  };
}

async function keysOf(store: ObjectStore): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let token: string | null = null; ; ) {
    const url = urlOf(store, '');
    url.searchParams.set('list-type', '2');
    url.searchParams.set('prefix', store.prefix);
    if (token !== null) url.searchParams.set('continuation-token', token);
    const answer = await ask(store, 'GET', url, {}, EMPTY);
    if (!answer.ok) throw new Error(`it answered ${answer.status} for the list of its objects`);
    const text = await answer.text();
    for (const [, key = ''] of text.matchAll(/<Key>([^<]+\.note)<\/Key>/g)) keys.push(key);
    token = /<NextContinuationToken>([^<]+)</.exec(text)?.[1] ?? null;
    if (token === null) return keys;
  }
}

function urlOf({ endpoint, bucket }: ObjectStore, key: string): URL {
  const path = key.split('/').map(encodeURIComponent).join('/');
  return new URL(`/${encodeURIComponent(bucket)}/${path}`, endpoint);
}

function ask(
  { region, credentials }: ObjectStore,
  method: 'GET' | 'PUT',
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
): Promise<Response> {
  const { host: _host, ...signed } = signedHeaders(
    { method, url, region, headers, body },
    credentials,
    new Date(),
  );
  const sent = method === 'PUT' ? { body: Buffer.from(body) } : {};
  return fetch(url, {
    method,
    headers: signed,
    redirect: 'error',
    signal: AbortSignal.timeout(WITNESS_MS),
    ...sent,
  });
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface S3Request {
  readonly method: 'GET' | 'PUT';
  readonly url: URL;
  readonly region: string;
  /** Additional headers to sign; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Adds an AWS Signature Version 4 to the headers of a request. */
export function signedHeaders(
  { method, url, region, headers, body }: S3Request,
  { accessKeyId, secretAccessKey, sessionToken }: S3Credentials,
  now: Date,
): Readonly<Record<string, string>> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = time.slice(0, 8);
  const digest = createHash('sha256').update(body).digest('hex');
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': digest,
    'x-amz-date': time,
    ...(sessionToken !== null && { 'x-amz-security-token': sessionToken }),
  };
  const names = Object.keys(all).sort();
  const query = [...url.searchParams]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&');
  const canonical = [
    method,
    url.pathname
      .split('/')
      .map((part) => escaped(decodeURIComponent(part)))
      .join('/'),
    query,
    ...names.map((name) => `${name}:${all[name]?.trim()}`),
    '',
    names.join(';'),
    digest,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`;
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = createHmac('sha256', key).update(text).digest('hex');
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${names.join(';')},Signature=${signature}`,
  };
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
