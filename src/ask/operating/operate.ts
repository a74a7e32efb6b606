import { queryError } from 'osl-compiler';
import type { Revocation, RevocationKey, RevocationResult } from '../../../policy/index.js';
import { consumeToken, type RequestCall, type RequestParts, respond, type SingleUse } from '../index.js';
import type { SpanName } from './history/history.js';
import { type HistoryGrouping, type HistoryView, historyView } from './history/view.js';
import { OPERATING } from './insight.js';
import type {
  ProcessStatement,
  ProcessView,
  ReloadView,
  RevokingParts,
  ServerOperations,
  SessionCommand,
  SessionView,
} from './process-status.js';

/** Target of a revocation; `session` means the current token of a session or request. */
export type RevocationTarget = RevocationKey | { readonly kind: 'session'; readonly name: string };

/** A revocation in force. Times are in RFC 3339. */
interface RevocationView {
  readonly id: string;
  readonly kind: RevocationKey['kind'];
  readonly name: string;
  readonly at: string;
  readonly until: string;
}

/**
 * Revokes a token, the token of a session, or all tokens of a subject issued until now.
 *
 * @param read parses the request
 * @throws QueryError E2101; E4040: unknown session; E0511: too many revocations in force; and the errors of `read`
 */
export function revoke(
  parts: OperatingParts,
  call: RequestCall,
  read: () => RevocationTarget,
): Promise<RevocationView & Pick<RevocationResult, 'shared'>> {
  const about: Record<string, string> = {};
  return operate(parts, call, {
    action: 'admin_revoke',
    about,
    read,
    answer: async (asked) => {
      about[asked.kind] = asked.name;
      const what = asked.kind === 'session' ? await tokenOf(parts, asked.name) : asked;
      about[what.kind] = what.name;
      const { revocation, shared } = await parts.revocations.revoke(what);
      return { ...viewOf(revocation), shared };
    },
  });
}

/** Lists the revocations in force, oldest first. @throws QueryError E2101 */
export function revocations(parts: OperatingParts, call: RequestCall): Promise<readonly RevocationView[]> {
  return simply(parts, call, 'admin_show', async () => parts.revocations.revoked.all().map(viewOf));
}

async function tokenOf({ operated }: OperatingParts, session: string): Promise<RevocationKey> {
  const views = await operated.views();
  const found = views.flatMap((view) => view.sessions).find(({ id }) => id === session);
  if (found === undefined || found.token_id === null) throw queryError('noSession', {});
  return { kind: 'token', name: found.token_id };
}

function viewOf({ id, kind, name, at, until }: Revocation): RevocationView {
  return { id, kind, name, at: new Date(at).toISOString(), until: new Date(until).toISOString() };
}

export interface OperatingParts extends RequestParts, SingleUse, RevokingParts {
  readonly operated: ServerOperations;
}

/** Actions that change state. A bearer token works for one such action only, so an interceptor cannot reuse it. */
const CHANGES: ReadonlySet<string> = new Set([
  'admin_cancel',
  'admin_end',
  'admin_drain',
  'admin_resume',
  'admin_reload',
  'admin_shutdown',
  'admin_revoke',
]);

/** An operator request. */
interface AdminOperation<D, T> {
  readonly action: string;
  /** Details for the outcome record. */
  readonly about?: Readonly<Record<string, unknown>>;
  /** Parses the request; called after the caller has been authorized. @throws QueryError */
  readonly read: () => D;
  readonly answer: (asked: D) => Promise<T>;
}

function operate<D, T>(
  parts: OperatingParts,
  call: RequestCall,
  { action, about, read, answer }: AdminOperation<D, T>,
): Promise<T> {
  return respond<D, T>(parts, call, {
    action,
    ...OPERATING,
    decide: async ({ identity }) => {
      const asked = read();
      if (CHANGES.has(action)) await consumeToken(parts, call, identity);
      return asked;
    },
    answer,
    ...(about !== undefined && { detail: () => JSON.stringify(about) }),
  });
}

function simply<T>(
  parts: OperatingParts,
  call: RequestCall,
  action: string,
  answer: (operated: ServerOperations) => Promise<T>,
): Promise<T> {
  return operate(parts, call, { action, read: () => null, answer: () => answer(parts.operated) });
}

/** Checks and records the login of an admin. @throws the errors of `serverStatus` */
export function adminLogin(parts: OperatingParts, call: RequestCall): Promise<null> {
  return simply(parts, call, 'admin_login', async () => null);
}

/** Returns the status of all processes. @throws QueryError E2101, and the errors of `respond` */
export function serverStatus(parts: OperatingParts, call: RequestCall): Promise<readonly ProcessView[]> {
  return simply(parts, call, 'admin_show', (operated) => operated.views());
}

/** Returns figures of the last hour or day, combined over all processes. @throws the errors of `serverStatus` */
export function history(
  parts: OperatingParts,
  call: RequestCall,
  { span, by }: HistoryQuestion,
): Promise<HistoryView> {
  return simply(parts, call, 'admin_show', async (operated) =>
    historyView(await operated.histories(span), span, by, Date.now()),
  );
}

/** Lists the slowest statements of the minutes between two times. @throws the errors of `serverStatus` */
export function slowest(
  parts: OperatingParts,
  call: RequestCall,
  { from, until }: MinutesQuestion,
): Promise<readonly ProcessStatement[]> {
  return simply(parts, call, 'admin_show', async (operated) =>
    [...(await operated.slowest(from, until))].sort((a, b) => b.duration_ms - a.duration_ms),
  );
}

export interface HistoryQuestion {
  readonly span: SpanName;
  readonly by: HistoryGrouping;
}

/** A range of minutes; times in ms since 1970. */
export interface MinutesQuestion {
  readonly from: number;
  readonly until: number;
}

/** Lists open Postgres sessions and running HTTP requests, oldest first. @throws the errors of `serverStatus` */
export async function sessions(parts: OperatingParts, call: RequestCall): Promise<readonly SessionView[]> {
  const views = await simply(parts, call, 'admin_sessions', (operated) => operated.views());
  return views
    .flatMap((view) => view.sessions)
    .sort((a, b) => (a.since === b.since ? 0 : a.since < b.since ? -1 : 1));
}

/**
 * Cancels the running statement of a session or request, or ends the session or request itself.
 *
 * @throws QueryError E4040 if there is no such session or request, and the errors of `serverStatus`
 */
export function command(
  parts: OperatingParts,
  call: RequestCall,
  id: string,
  what: SessionCommand,
): Promise<null> {
  return operate(parts, call, {
    action: what === 'cancel' ? 'admin_cancel' : 'admin_end',
    about: { session: SESSION_ID.test(id) ? id : 'malformed' },
    read: () => null,
    answer: async () => {
      if (!SESSION_ID.test(id) || !(await parts.operated.command(id, what)))
        throw queryError('noSession', {});
      return null;
    },
  });
}

/** Matches the process id of a Postgres session, or a request id. */
const SESSION_ID = /^(?:\d{1,10}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Drains the server or takes it back into service. @throws the errors of `serverStatus` */
export function drain(parts: OperatingParts, call: RequestCall, on: boolean): Promise<void> {
  return simply(parts, call, on ? 'admin_drain' : 'admin_resume', (operated) => operated.drain(on));
}

/** Reloads like SIGHUP. @throws the errors of `serverStatus` */
export function reload(parts: OperatingParts, call: RequestCall): Promise<ReloadView> {
  return simply(parts, call, 'admin_reload', (operated) => operated.reload());
}

/** Shuts down like SIGTERM, once the response has been sent. @throws the errors of `serverStatus` */
export function shutDown(parts: OperatingParts, call: RequestCall): Promise<void> {
  return simply(parts, call, 'admin_shutdown', async (operated) => {
    setTimeout(() => operated.stop(), FAREWELL_MS);
  });
}

/** Time in ms to send the response and record its outcome before the shutdown. */
const FAREWELL_MS = 100;
