import { type RequestCall, type RequestParts, respond } from '../index.js';
import { consumeToken } from '../request/single-use.js';
import {
  alreadyRunning,
  type ShadowCommand,
  type ShadowReport,
  type ShadowStart,
  shadowSnapshot,
  sumReports,
} from '../shadow/shadows.js';
import { OPERATING, readServer } from './insight.js';
import type { OperatingParts } from './operate.js';

/** Default duration of a shadow policy, in seconds. */
const SHADOW_SECONDS = 86_400;

/** The shadow policy of this server: the combined report of its processes, and how many of them use it. */
export interface ShadowView {
  /** Null if no shadow policy was started since the server started. */
  readonly shadow: ShadowReport | null;
  readonly processes: { readonly all: number; readonly comparing: number };
}

/** Sends a command to all processes of the server, and returns the report of each. */
export interface ShadowCommands {
  shadow(command: ShadowCommand): Promise<readonly (ShadowReport | null)[]>;
}

export interface ShadowParts extends RequestParts {
  readonly shadows: ShadowCommands;
}

export interface ShadowRequest {
  readonly policy: string;
  readonly forSeconds: number | null;
}

/** Reports what the shadow policy would change. @throws QueryError E2101, and the errors of `respond` */
export function shadowReport(parts: ShadowParts, call: RequestCall): Promise<ShadowView> {
  return readServer(parts, call, 'admin_shadow_report', async () =>
    viewOf(await parts.shadows.shadow({ do: 'report' })),
  );
}

/**
 * Starts comparing a policy with the served one, on this server.
 *
 * @param read parses the request
 * @throws QueryError E2101; E0534 if a comparison is running, or the policy cannot be served; the errors of `read`
 */
export function startShadow(
  parts: OperatingParts & ShadowParts,
  call: RequestCall,
  read: () => ShadowRequest,
): Promise<ShadowView> {
  const about: Record<string, string> = {};
  return respond<ShadowStart, ShadowView>(parts, call, {
    action: 'admin_shadow_start',
    ...OPERATING,
    decide: async ({ identity, manifest, snapshot }) => {
      const { policy, forSeconds } = read();
      const { version } = await shadowSnapshot(policy, { manifest, snapshot });
      const { shadow } = viewOf(await parts.shadows.shadow({ do: 'report' }));
      if (shadow?.state === 'running') throw alreadyRunning(shadow);
      await consumeToken(parts, call, identity);
      const now = Date.now();
      const until = new Date(now + 1_000 * (forSeconds ?? SHADOW_SECONDS)).toISOString();
      Object.assign(about, { shadow: version, until });
      return { policy, by: identity.subject, started_at: new Date(now).toISOString(), until };
    },
    answer: async (start) => viewOf(await parts.shadows.shadow({ do: 'start', start })),
    detail: () => JSON.stringify(about),
  });
}

/** Stops the comparison and returns its last report. @throws QueryError E2101, and the errors of `respond` */
export function stopShadow(parts: OperatingParts & ShadowParts, call: RequestCall): Promise<ShadowView> {
  return respond<null, ShadowView>(parts, call, {
    action: 'admin_shadow_stop',
    ...OPERATING,
    decide: async ({ identity }) => {
      await consumeToken(parts, call, identity);
      return null;
    },
    answer: async () => viewOf(await parts.shadows.shadow({ do: 'stop' })),
  });
}

function viewOf(reports: readonly (ShadowReport | null)[]): ShadowView {
  const comparing = reports.filter((report) => report?.state === 'running').length;
  return { shadow: sumReports(reports), processes: { all: reports.length, comparing } };
}
