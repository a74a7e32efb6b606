import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StartProblem } from '../../src/base/start-problem.js';
import { directoryWitness } from './directory.js';
import { objectStoreWitness } from './object-store.js';
import { tableWitness } from './table.js';
import { webhookWitness } from './webhook.js';
import type { Witness } from './witness.js';

type WitnessEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * A witness by where it is: a directory (`/mnt/witness`, `file:///mnt/witness`), `s3://bucket/prefix?endpoint=…`,
 * `postgres://…`, or a webhook, `https://…`.
 *
 * @param env holds the credentials of an object store, by the names of AWS
 * @param secret signs what a webhook receives
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
