import { addressGroup } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { RecordingParts, StrangerCounts } from './parts.js';

/**
 * What callers without a valid token cost the audit log once they are over the limit of their address: of one second
 * the log has the first refusal, and one event that counts the others and shares the first one's request id.
 */
export interface Strangers extends StrangerCounts {
  /** Records at once what has only been counted so far. */
  settle(): void;
}

/** What keeps the counts. */
export type StrangersParts = Pick<RecordingParts, 'tenant' | 'audit' | 'log'>;

interface RejectedCallWindow {
  readonly call: RequestCall;
  readonly address: string;
  readonly timer: NodeJS.Timeout;
  others: number;
}

const WINDOW_MS = 1_000;
/** Addresses with a window of their own; the surplus shares one. */
const MAX_WINDOWS = 1_024;
const SURPLUS = 'surplus';

export function createStrangers(parts: StrangersParts): Strangers {
  const windows = new Map<string, RejectedCallWindow>();
  const end = (key: string): void => {
    const window = windows.get(key);
    if (window === undefined) return;
    windows.delete(key);
    clearTimeout(window.timer);
    if (window.others > 0) record(parts, window);
  };
  return Object.freeze({
    isFirst(call: RequestCall, address: string) {
      const group = addressGroup(address);
      const key = windows.has(group) || windows.size < MAX_WINDOWS ? group : SURPLUS;
      const window = windows.get(key);
      if (window !== undefined) {
        window.others += 1;
        return false;
      }
      const timer = setTimeout(end, WINDOW_MS, key).unref();
      windows.set(key, { call, address: key, timer, others: 0 });
      return true;
    },
    settle() {
      for (const key of [...windows.keys()]) end(key);
    },
  });
}

function record({ audit, log, tenant }: StrangersParts, { call, address, others }: RejectedCallWindow): void {
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
