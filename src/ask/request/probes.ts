import type { AuditLog, AuditSurface } from '../../../audit/index.js';
import { addressGroup } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { RequestCall } from './call.js';
import type { FirstRefusals, RecordingParts } from './parts.js';

/**
 * Limits the audit records of unauthenticated callers, in addition to the rate limit of their address. For each
 * address, only the first refusal in a second is recorded in full. One event counts the others, under the first one's
 * request id.
 */
export interface RefusalThrottle extends FirstRefusals {
  /** Ends the open windows and records their counts. */
  settle(): void;
}

type RefusalThrottleParts = Pick<RecordingParts, 'tenant' | 'audit' | 'log'>;

interface RejectedCallWindow {
  readonly call: RequestCall;
  readonly address: string;
  readonly timer: NodeJS.Timeout;
  others: number;
}

const WINDOW_MS = 1_000;
/** Maximum number of addresses that have their own window; all other addresses share a single window. */
const MAX_WINDOWS = 1_024;
const SURPLUS = 'surplus';

export function createRefusalThrottle(parts: RefusalThrottleParts): RefusalThrottle {
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

function record(
  { audit, log, tenant }: RefusalThrottleParts,
  { call, address, others }: RejectedCallWindow,
): void {
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

/** Frequent unauthenticated requests that read no data. */
type ProbeAction = 'health' | 'ready' | 'metrics' | 'openapi' | 'mcp_metadata';

/**
 * Counts health checks and similar requests by action and status. Each window ends with one event that holds the
 * counts, under the request id of its first request.
 */
export interface Probes {
  count(action: ProbeAction, path: string, status: number, call: RequestCall): void;
  /** Ends the open windows and records their counts. */
  settle(): void;
}

export interface ProbesOptions {
  readonly tenant: string;
  readonly audit: Pick<AuditLog, 'append' | 'stats'>;
  readonly log: ServiceLog;
  readonly windowMs: number;
}

interface ProbeWindow {
  readonly path: string;
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly since: Date;
  readonly statuses: StatusCounts;
  timer: NodeJS.Timeout;
}

export function createProbes({ tenant, audit, log, windowMs }: ProbesOptions): Probes {
  const windows = new Map<ProbeAction, ProbeWindow>();
  let settled = false;
  const end = (action: ProbeAction, window: ProbeWindow): void => {
    windows.delete(action);
    clearTimeout(window.timer);
    audit.append(entryOf(tenant, action, window), (failure) => {
      if (failure === null) return;
      if (settled) log.error('a count of probes was lost', { request_id: window.requestId });
      else reopen(action, window);
    });
  };
  /** Called if the log refused the event of a window: merges its counts into the next window of the same action. */
  const reopen = (action: ProbeAction, failedWindow: ProbeWindow): void => {
    const next = windows.get(action);
    clearTimeout(next?.timer);
    const statuses = next === undefined ? failedWindow.statuses : sum(failedWindow.statuses, next.statuses);
    windows.set(action, { ...failedWindow, statuses, timer: schedule(action) });
  };
  /** Called when a window is due to end; extends the window while the log refuses records. */
  const endWhenPossible = (action: ProbeAction): void => {
    const window = windows.get(action);
    if (window === undefined) return;
    if (audit.stats().failure === null) end(action, window);
    else window.timer = schedule(action);
  };
  const schedule = (action: ProbeAction): NodeJS.Timeout =>
    setTimeout(endWhenPossible, windowMs, action).unref();
  return Object.freeze({
    count(action: ProbeAction, path: string, status: number, { requestId, surface }: RequestCall) {
      let window = windows.get(action);
      if (window === undefined) {
        window = {
          path,
          requestId,
          surface,
          since: new Date(),
          statuses: new Map(),
          timer: schedule(action),
        };
        windows.set(action, window);
      }
      window.statuses.set(status, (window.statuses.get(status) ?? 0) + 1);
    },
    settle() {
      settled = true;
      for (const [action, window] of [...windows]) end(action, window);
    },
  });
}

type StatusCounts = Map<number, number>;

function sum(a: StatusCounts, b: StatusCounts): StatusCounts {
  const out = new Map(a);
  for (const [status, count] of b) out.set(status, (out.get(status) ?? 0) + count);
  return out;
}

function entryOf(
  tenant: string,
  action: ProbeAction,
  { path, requestId, surface, since, statuses }: ProbeWindow,
) {
  const counts = [...statuses].sort(([a], [b]) => a - b);
  return {
    kind: 'event',
    request_id: requestId,
    tenant,
    surface,
    action,
    subject: 'anonymous',
    decision: 'allow',
    rows: counts.reduce((sum, [, count]) => sum + count, 0),
    detail: JSON.stringify({
      path,
      since: since.toISOString(),
      until: new Date().toISOString(),
      statuses: Object.fromEntries(counts),
    }),
  } as const;
}
