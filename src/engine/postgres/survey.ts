import { unboundedMemory } from '../answer-memory.js';
import { givenUpAfter, SystemEngine } from '../system.js';
import { UpstreamSession } from '../upstream-session.js';
import { connectTransport } from './connect.js';
import { examineRole, type RoleReport } from './role.js';

/** One connection to a server that may not be fit to serve: for setting up and for looking why. */
export interface Survey {
  /** Runs as the role of the URL, whatever that may do. Its `reader` is that role. */
  readonly system: SystemEngine;
  readonly report: RoleReport;
  close(): void;
}

/** A server that owes an answer for so long is given up, and with it the survey. */
const SILENCE_MS = 60_000;

/** Connects as whoever the URL names; no role is refused. Throws what `pg` says where nobody answers. */
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
  const unwatch = givenUpAfter(SILENCE_MS, session);
  const close = (): void => {
    unwatch();
    session.destroy();
  };
  return { system, report, close };
}
