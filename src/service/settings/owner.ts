import { StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import type { Endpoint } from '../lineage/config/load.js';
import { readSecret, signingKey } from '../lineage/config/secret.js';
import { networkOf } from '../lineage/delivery/address.js';

/** The receiver of what the policy's owner is told; null where there is none. */
export type OwnerSettings = Endpoint | null;

type Environment = Readonly<Record<string, string | undefined>>;

/** ms that a receiver has; whoever asks waits for it. */
const TIMEOUT_MS = 5_000;

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
