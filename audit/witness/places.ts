import { createHmac, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StartProblem } from '../../src/base/start-problem.js';
import { connectTable, type TableSession, type TableUrl } from '../table/index.js';
import { objectStoreWitness } from './object-store.js';
import { nameOf, WITNESS_MS, type Witness, type WitnessedCheckpoint } from './witness.js';

/** Sends each checkpoint to a webhook. Its operator can pass the stored notes to `osl audit verify --anchor`. */
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
        'OSL_AUDIT_WITNESS must name directories, s3://bucket/prefix, postgres:// or https:// URLs, with commas',
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

/** Witness in a table of a separate database. */
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
