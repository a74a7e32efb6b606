import { type S3Credentials, signedHeaders } from './sigv4.js';
import { nameOf, WITNESS_MS, type Witness } from './witness.js';

export interface ObjectStore {
  /** Such as https://s3.eu-central-1.amazonaws.com; buckets stand in the path. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Before each name; empty, or with a slash at its end. */
  readonly prefix: string;
  readonly credentials: S3Credentials;
}

const EMPTY = new Uint8Array();
/** Answer where an object of that name is there already. */
const THERE = 412;

/** A bucket of an S3-compatible store. Give it object lock, or a role that may put and not delete. */
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
