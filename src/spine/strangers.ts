import { type QueryError, queryError } from 'osl-compiler';
import { type AuditLog, addressGroup, type Limiter } from '../../policy/index.js';
import type { ServiceLog } from '../service.js';
import type { Call } from './question.js';

/** A refusal that takes the place of another one, since its sender is over the limit. */
export interface Suppressed {
  readonly error: QueryError;
  /** The first of its address in this window: it is recorded, the rest are only counted. */
  readonly first: boolean;
}

/**
 * Limits what callers without a valid token cost the audit log, by address. Of what is over the limit in one second
 * the log has the first, and one event that counts the others; it shares the first one's request id.
 */
export interface Strangers {
  /** Counts one refused call; null where it is within the limit. */
  count(call: Call, address: string): Promise<Suppressed | null>;
  /** Records at once what has only been counted so far. */
  settle(): void;
}

interface Window {
  readonly call: Call;
  readonly address: string;
  readonly timer: NodeJS.Timeout;
  others: number;
}

const WINDOW_MS = 1_000;
/** Addresses with a window of their own; the surplus shares one. */
const MAX_WINDOWS = 1_024;
const SURPLUS = 'surplus';

interface Parts {
  readonly limiter: Limiter;
  readonly audit: AuditLog;
  readonly tenant: string;
  readonly log: ServiceLog;
}

export function createStrangers(parts: Parts): Strangers {
  const windows = new Map<string, Window>();
  const end = (key: string): void => {
    const window = windows.get(key);
    if (window === undefined) return;
    windows.delete(key);
    clearTimeout(window.timer);
    if (window.others > 0) record(parts, window);
  };
  const isFirst = (call: Call, address: string): boolean => {
    const group = addressGroup(address);
    const key = windows.has(group) || windows.size < MAX_WINDOWS ? group : SURPLUS;
    const window = windows.get(key);
    if (window !== undefined) {
      window.others += 1;
      return false;
    }
    windows.set(key, { call, address: key, timer: setTimeout(end, WINDOW_MS, key).unref(), others: 0 });
    return true;
  };
  return Object.freeze({
    async count(call: Call, address: string) {
      const taken = await parts.limiter.takeAddress(address);
      if (taken.ok) return null;
      const error = queryError('rateLimited', { retryAfterSeconds: taken.retryAfterSeconds });
      return { error, first: isFirst(call, address) };
    },
    settle() {
      for (const key of [...windows.keys()]) end(key);
    },
  });
}

function record({ audit, tenant, log }: Parts, { call, address, others }: Window): void {
  log.warn('refusals without a valid token were only counted', { address, count: others });
  const entry = {
    kind: 'event',
    request_id: call.requestId,
    tenant,
    surface: call.surface,
    action: 'suppressed',
    code: 'E4290',
    rows: others,
  } as const;
  audit.append(entry, (failure) => {
    if (failure !== null) log.error('a count of refusals was lost', { request_id: call.requestId });
  });
}
