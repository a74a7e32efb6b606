import { queryError } from 'osl-compiler';
import type { Owner, OwnerNotice } from '../ask/why/owner.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import type { Endpoint } from './lineage/config/load.js';
import { readSecret, signingKey } from './lineage/config/secret.js';
import { networkOf } from './lineage/delivery/address.js';
import { type Attempt, send } from './lineage/delivery/send.js';

/** The receiver of what the policy's owner is told; null where there is none. */
export type OwnerSettings = Endpoint | null;

type Environment = Readonly<Record<string, string | undefined>>;

/** ms that a receiver has; whoever asks waits for it. */
const TIMEOUT_MS = 5_000;
/** Notices on their way at a time, of all callers. */
const AT_ONCE = 32;

/** @throws StartProblem */
export function ownerSettings(env: Environment, path: (file: string) => string): OwnerSettings {
  const url = env['OSL_OWNER_WEBHOOK'] ?? '';
  if (url === '') return null;
  const fault = (message: string): StartProblem => new StartProblem(`OSL_OWNER_WEBHOOK: ${message}`);
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (
    parsed === null ||
    !/^https?:$/.test(parsed.protocol) ||
    parsed.username !== '' ||
    parsed.password !== ''
  )
    throw fault('it must be an http or https URL without a user');
  const file = env['OSL_OWNER_WEBHOOK_SECRET_FILE'] ?? '';
  const secret = file === '' ? 'env:OSL_OWNER_WEBHOOK_SECRET' : `file:${path(file)}`;
  const networks = (env['OSL_OWNER_WEBHOOK_NETWORKS'] ?? '').split(',').map((n) => n.trim());
  const allowAddresses = networks.filter((n) => n !== '');
  try {
    signingKey(readSecret(secret));
    allowAddresses.map(networkOf);
  } catch (error) {
    throw fault(messageOf(error));
  }
  return Object.freeze({
    name: 'owner',
    url,
    secrets: [secret],
    events: [],
    authorization: null,
    ca: null,
    allowAddresses,
    timeoutMs: TIMEOUT_MS,
  });
}

/** Posts notices as signed webhooks, once each: who waits for it hears whether it arrived, and may ask again. */
export function ownerOf(endpoint: OwnerSettings, log: ServiceLog): Owner {
  if (endpoint === null) return Object.freeze({ tell: null });
  let underWay = 0;
  const tell = async ({ id, type, body }: OwnerNotice): Promise<void> => {
    if (underWay >= AT_ONCE) throw queryError('overloaded', { retryAfterSeconds: 1 });
    underWay += 1;
    try {
      const letter = { id, body: JSON.stringify({ type, id, ...body }) };
      const attempt = await send(endpoint, letter, { now: Date.now, agent: `osl-gateway/${version()}` });
      if (attempt.kind === 'delivered') return;
      log.error('the owner of the policy was not told', { id, type, reason: reasonOf(attempt) });
      throw queryError('ownerUnreached', {});
    } finally {
      underWay -= 1;
    }
  };
  return Object.freeze({ tell });
}

function reasonOf(attempt: Exclude<Attempt, { kind: 'delivered' }>): string {
  return attempt.kind === 'gone' ? 'status 410' : attempt.reason;
}
