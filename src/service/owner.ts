import { queryError } from 'osl-compiler';
import type { Owner, OwnerNotice } from '../ask/why/request-access.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import { type SendAttempt, send } from './lineage/delivery/send.js';
import type { OwnerSettings } from './settings/owner.js';

/** Notices on their way at a time, of all callers. */
const AT_ONCE = 32;

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

function reasonOf(attempt: Exclude<SendAttempt, { kind: 'delivered' }>): string {
  return attempt.kind === 'gone' ? 'status 410' : attempt.reason;
}
