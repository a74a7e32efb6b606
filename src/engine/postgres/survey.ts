import { unboundedMemory } from '../answer-memory.js';
import { closeIfSilent, SystemEngine } from '../system.js';
import { UpstreamSession } from '../upstream-session.js';
import { connectTransport } from './connect.js';
import { examineRole, type RoleReport } from './role.js';

/** A connection for setup and diagnosis, to a server that need not be fit to serve. */
export interface Survey {
  /** Runs with all rights of the role in the URL; `reader` is that role. */
  readonly system: SystemEngine;
  readonly report: RoleReport;
  close(): void;
}

/** The survey ends if the server does not answer for this long, in ms. */
const SILENCE_MS = 60_000;

/** Connects as the role in the URL without checking its rights. Throws the error of `pg` if that fails. */
export async function surveyPostgres(url: string): Promise<Survey> {
  const reports: RoleReport[] = [];
  const transport = await connectTransport(url, 'osl-gateway setup', async (query) => {
    reports.push(await examineRole(query));
  });
  const [report] = reports;
  if (report === undefined) throw new Error('the role was not looked at');
  const session = new UpstreamSession(transport, unboundedMemory());
  const system = new SystemEngine(
    (work) => work(session),
    () => report.role,
  );
  const unwatch = closeIfSilent(SILENCE_MS, session);
  const close = (): void => {
    unwatch();
    session.destroy();
  };
  return { system, report, close };
}
