import { StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import type { LineageEndpoint } from '../lineage/config/load.js';
import { readSecret, signingKey } from '../lineage/config/secret.js';
import { networkOf } from '../lineage/delivery/address.js';
import type { ReadSetting } from './table.js';

/** Webhook of the policy's owner; null if not configured. */
export type OwnerSettings = LineageEndpoint | null;

/** Timeout, ms; a caller waits for it. */
const TIMEOUT_MS = 5_000;

/** @throws StartProblem */
export function ownerSettings(read: ReadSetting): OwnerSettings {
  const url = read('OSL_OWNER_WEBHOOK');
  if (url === null) return null;
  const fault = (message: string): StartProblem => new StartProblem(`OSL_OWNER_WEBHOOK: ${message}`);
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') throw fault('it must be an http or https URL without a user');
  const file = read('OSL_OWNER_WEBHOOK_SECRET_FILE');
  const secret = file === null ? 'env:OSL_OWNER_WEBHOOK_SECRET' : `file:${file}`;
  const allowAddresses = read('OSL_OWNER_WEBHOOK_NETWORKS');
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
