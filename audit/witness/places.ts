import { createHash, createHmac, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StartProblem } from '../../src/base/start-problem.js';
import { connectTable, type TableSession, type TableUrl } from '../table/index.js';
import { nameOf, WITNESS_MS, type Witness, type WitnessedCheckpoint } from './witness.js';

/** Sends each checkpoint to a webhook, whose operator can pass the stored notes to `osl audit verify --anchor`. */
export function webhookWitness(url: string, secret: string | null): Witness {
  return {
    name: new URL(url).origin,
    keep: (checkpoint) => send(url, secret, checkpoint),
    kept: () => null,
    close: async () => undefined,
  };
}

async function send(
  url: string,
  secret: string | null,
  { writer, size, note }: WitnessedCheckpoint,
): Promise<void> {
  const signature = secret === null ? null : createHmac('sha256', secret).update(note).digest('hex');
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'osl-audit-writer': writer,
      'osl-audit-size': String(size),
      ...(signature !== null && { 'osl-signature': `sha256=${signature}` }),
    },
    body: note,
    redirect: 'error',
    signal: AbortSignal.timeout(WITNESS_MS),
  });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`it answered ${answer.status}`);
}

/** Witness in a directory, for example on another machine or on write-once media. */
function directoryWitness(dir: string): Witness {
  return {
    name: dir,
    keep: (checkpoint) => keep(dir, checkpoint),
    kept: async () => {
      const writers = await readdir(dir, { withFileTypes: true });
      const notes: string[] = [];
      for (const writer of writers.filter((entry) => entry.isDirectory())) {
        const names = (await readdir(join(dir, writer.name))).filter((name) => name.endsWith('.note'));
        for (const name of names.sort()) notes.push(await readFile(join(dir, writer.name, name), 'utf8'));
      }
      return notes;
    },
    close: async () => undefined,
  };
}

/** Writes a note atomically; an existing note stays unchanged. */
async function keep(dir: string, checkpoint: WitnessedCheckpoint): Promise<void> {
  const path = join(dir, nameOf(checkpoint));
  await mkdir(dirname(path), { recursive: true });
  const making = `${path}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', 0o644);
  try {
    await handle.writeFile(checkpoint.note);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(making, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    await rm(making, { force: true });
  }
}

type WitnessEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Creates a witness from its location: a directory (`/mnt/witness`, `file:///mnt/witness`), a bucket
 * (`s3://bucket/prefix?endpoint=…`), a database (`postgres://…`), or a webhook (`https://…`).
 *
 * @param env contains the AWS credentials for an object store
 * @param secret signs webhook requests
 * @throws StartProblem
 */
export function witnessAt(place: string, env: WitnessEnvironment, secret: string | null = null): Witness {
  if (isAbsolute(place)) return directoryWitness(place);
  const url = URL.canParse(place) ? new URL(place) : null;
  switch (url?.protocol) {
    case 'file:':
      return directoryWitness(fileURLToPath(url));
    case 's3:':
      return objectStore(url, env);
    case 'postgres:':
    case 'postgresql:':
      return tableWitness(() => place);
    case 'https:':
      return webhookWitness(place, secret);
    case 'http:':
      if (/^(127\.|localhost$|\[::1\]$)/.test(url.hostname)) return webhookWitness(place, secret);
      throw new StartProblem('OSL_AUDIT_WITNESS: a webhook of another machine must be https');
    default:
      throw new StartProblem(
        'OSL_AUDIT_WITNESS must name directories, s3://bucket/prefix, postgres:// or https:// URLs, separated by commas',
      );
  }
}

function objectStore(url: URL, env: WitnessEnvironment): Witness {
  const accessKeyId = env['AWS_ACCESS_KEY_ID'] ?? '';
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY'] ?? '';
  if (accessKeyId === '' || secretAccessKey === '')
    throw new StartProblem('OSL_AUDIT_WITNESS: s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  const region = url.searchParams.get('region') ?? env['AWS_REGION'] ?? 'us-east-1';
  const path = url.pathname.replace(/^\/+/, '');
  return objectStoreWitness({
    endpoint: url.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`,
    region,
    bucket: url.hostname,
    prefix: path === '' || path.endsWith('/') ? path : `${path}/`,
    credentials: { accessKeyId, secretAccessKey, sessionToken: env['AWS_SESSION_TOKEN'] ?? null },
  });
}

/** DDL of a witness database, in which the gateway may only insert and select. */
export const WITNESS_SCHEMA = `
CREATE SCHEMA osl_witness;
CREATE TABLE osl_witness.checkpoint (
  writer text NOT NULL,
  size bigint NOT NULL,
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (writer, size, at)
);`;

export function witnessGrants(role: string): string {
  return `
GRANT USAGE ON SCHEMA osl_witness TO ${role};
GRANT SELECT, INSERT ON osl_witness.checkpoint TO ${role};`;
}

/** Witness in a table of a separate database; checkpoints are only ever added. */
function tableWitness(url: TableUrl): Witness {
  let session: TableSession | null = null;
  const connected = async (): Promise<TableSession> => {
    if (!session?.open) session = await connectTable(url, WITNESS_MS);
    return session;
  };
  return {
    name: 'the witness database',
    keep: async ({ writer, size, note }) => {
      await (await connected()).query(
        'INSERT INTO osl_witness.checkpoint (writer, size, note) VALUES ($1, $2, $3)',
        [writer, size, note],
      );
    },
    kept: async () => {
      const rows = await (await connected()).query('SELECT note FROM osl_witness.checkpoint ORDER BY at');
      return rows.map(({ note }) => String(note));
    },
    close: async () => {
      await session?.end();
    },
  };
}

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
