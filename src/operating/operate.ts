import { queryError } from 'osl-compiler';
import { type Call, type RequestParts, respond, type SingleUse, useUp } from '../ask/index.js';
import { OPERATING } from './look.js';
import type { Operated, ProcessView, ReloadView, SessionCommand, SessionView } from './views.js';

/** What answers who runs the server. */
export interface OperatingParts extends RequestParts, SingleUse {
  readonly operated: Operated;
}

/** What does something to the server: a token is good for one of them. */
const CHANGES: ReadonlySet<string> = new Set([
  'admin_cancel',
  'admin_end',
  'admin_drain',
  'admin_resume',
  'admin_reload',
  'admin_shutdown',
]);

/** Takes the one way of every request; the log's outcome has `about`, where something is done to something. */
function operate<T>(
  parts: OperatingParts,
  call: Call,
  action: string,
  about: Readonly<Record<string, unknown>> | null,
  answer: (operated: Operated) => Promise<T>,
): Promise<T> {
  return respond<null, T>(parts, call, {
    action,
    ...OPERATING,
    decide: async ({ identity }) => {
      if (CHANGES.has(action)) await useUp(parts, call, identity);
      return null;
    },
    answer: () => answer(parts.operated),
    ...(about !== null && { detail: () => JSON.stringify(about) }),
  });
}

/** Lets an admin in who is going to ask. Throws as `standing`. */
export function enter(parts: OperatingParts, call: Call): Promise<null> {
  return operate(parts, call, 'admin_login', null, async () => null);
}

/** How each process of the server stands. @throws QueryError E2101, and as `respond` */
export function standing(parts: OperatingParts, call: Call): Promise<readonly ProcessView[]> {
  return operate(parts, call, 'admin_show', null, (operated) => operated.views());
}

/** Every session of the wire and every request that is being answered, oldest first. Throws as `standing`. */
export async function sessions(parts: OperatingParts, call: Call): Promise<readonly SessionView[]> {
  const views = await operate(parts, call, 'admin_sessions', null, (operated) => operated.views());
  return views
    .flatMap((view) => view.sessions)
    .sort((a, b) => (a.since === b.since ? 0 : a.since < b.since ? -1 : 1));
}

/**
 * Cancels what a session or a request runs, or ends it.
 *
 * @throws QueryError E4040 where there is none, and as `standing`
 */
export function command(parts: OperatingParts, call: Call, id: string, what: SessionCommand): Promise<null> {
  const about = { session: SESSION_ID.test(id) ? id : 'malformed' };
  return operate(parts, call, what === 'cancel' ? 'admin_cancel' : 'admin_end', about, async (operated) => {
    if (!SESSION_ID.test(id) || !(await operated.command(id, what))) throw queryError('noSession', {});
    return null;
  });
}

/** A process id of the wire, or the id of a request. */
const SESSION_ID = /^(?:\d{1,10}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Takes no new sessions and is not ready, or is again. Throws as `standing`. */
export function drain(parts: OperatingParts, call: Call, on: boolean): Promise<void> {
  return operate(parts, call, on ? 'admin_drain' : 'admin_resume', null, (operated) => operated.drain(on));
}

/** As SIGHUP does, and says what came of it. Throws as `standing`. */
export function reload(parts: OperatingParts, call: Call): Promise<ReloadView> {
  return operate(parts, call, 'admin_reload', null, (operated) => operated.reload());
}

/** As SIGTERM does; the answer may leave first. Throws as `standing`. */
export function shutDown(parts: OperatingParts, call: Call): Promise<void> {
  return operate(parts, call, 'admin_shutdown', null, async (operated) => {
    setTimeout(() => operated.stop(), FAREWELL_MS);
  });
}

/** For the answer to leave, and its outcome to be recorded. */
const FAREWELL_MS = 100;
