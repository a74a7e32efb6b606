import type { AuditLog, AuditSurface } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { RequestCall } from './call.js';

/** What answers anyone, asks nothing of the data, and is asked often: one entry of the log stands for many. */
type ProbeAction = 'health' | 'ready' | 'metrics' | 'openapi' | 'mcp_metadata';

/**
 * What is asked of this process itself, on record. A window begins with the first request of a path; when it ends, one
 * event has the number of its requests by status, under the request id of the first. A request costs an addition.
 */
export interface Probes {
  /** Counts a request to `path` that is being answered with `status`. */
  count(action: ProbeAction, path: string, status: number, call: RequestCall): void;
  /** Records at once what has only been counted so far. */
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
  /** The log did not take the count: it goes with those of the next window. */
  const reopen = (action: ProbeAction, failed: ProbeWindow): void => {
    const next = windows.get(action);
    clearTimeout(next?.timer);
    const statuses = next === undefined ? failed.statuses : summed(failed.statuses, next.statuses);
    windows.set(action, { ...failed, statuses, timer: later(action) });
  };
  /** While the log takes nothing the window stays open: the log has what was asked meanwhile once it is well. */
  const due = (action: ProbeAction): void => {
    const window = windows.get(action);
    if (window === undefined) return;
    if (audit.stats().failure === null) end(action, window);
    else window.timer = later(action);
  };
  const later = (action: ProbeAction): NodeJS.Timeout => setTimeout(due, windowMs, action).unref();
  return Object.freeze({
    count(action: ProbeAction, path: string, status: number, { requestId, surface }: RequestCall) {
      let window = windows.get(action);
      if (window === undefined) {
        window = { path, requestId, surface, since: new Date(), statuses: new Map(), timer: later(action) };
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

function summed(a: StatusCounts, b: StatusCounts): StatusCounts {
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
