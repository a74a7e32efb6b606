import { existsSync } from 'node:fs';
import type { ServiceLog } from '../../../base/log.js';
import { archiveFault } from '../../../service/audit.js';
import { lookFirst } from '../../../service/keeper.js';
import type { First } from '../../../service/served.js';
import { isSet } from '../../../service/settings/table.js';
import type { Settings } from '../../../service/settings.js';
import { workersFor } from '../../../service/workers.js';
import { EXIT, Failure, failureOf, usage } from '../exit.js';
import type { ServerFlags } from '../flags.js';
import { settingsOf } from '../flags.js';
import { operatorLog } from '../log.js';
import { note, print } from '../output.js';
import { createProgress } from '../progress.js';
import { removeServerFile, restUrl, runningServer } from '../server-file.js';
import { endOnUncaught } from '../uncaught.js';
import type { RunningWorkers } from '../workers/run.js';
import { banner, listening } from './banner.js';
import { type Demo, type RunningServer, startServer } from './server.js';
import { untilToldToStop } from './signals.js';

export interface RunFlags extends ServerFlags {
  readonly json?: true;
}

/** What runs when told to stop may go on for so long. */
const DRAIN_MS = 10_000;
/** Beyond the drain: something hangs, and nobody waits for it. */
const HANG_MS = 15_000;

/** Serves until told to stop. The promise settles when everything is closed. */
export async function runServer(flags: RunFlags, demo: Demo | null): Promise<void> {
  const settings = settingsOf(flags);
  checkFirstSteps(flags, settings);
  const log = operatorLog();
  endOnUncaught(log, () => removeServerFile(settings.dataDir, process.pid));
  void tellOfArchive(settings, log);
  if (demo === null && settings.workers !== 1) {
    const first = await lookFirst(settings, log);
    const count = workersFor(settings, first.model.manifest);
    if (count > 1) return superviseWorkers(flags, settings, first, count);
  }
  const progress = await createProgress();
  const server = await startServer({ settings, demo, log, progress });
  const told = untilToldToStop({
    reload: () => void reload(server),
    force: () => {
      removeServerFile(settings.dataDir, process.pid);
      note('stopped at once');
      process.exit(EXIT.interrupted);
    },
  });
  const { policyFault } = server.open;
  if (policyFault !== null) note(`${failureOf(policyFault).message}\n${REFUSED}`);
  await announce(server, settings.dataDir, flags.json === true);
  const why = await Promise.race([told, server.open.over]);
  if (why !== undefined) endAtOnce(why, settings);
  await stop(server);
}

/** A directory that is away may come back: meanwhile older records stay. */
async function tellOfArchive({ audit }: Settings, log: ServiceLog): Promise<void> {
  const cause = await archiveFault(audit);
  if (cause !== null) log.error('older records of the audit log cannot be archived, and stay', { cause });
}

/** As `runServer`, with this process above others that serve. */
async function superviseWorkers(
  flags: RunFlags,
  settings: Settings,
  first: First,
  count: number,
): Promise<void> {
  const server = await (await import('../workers/run.js')).startWorkers(settings, first, count);
  const told = untilToldToStop({
    reload: () => void reloadWorkers(server),
    force: () => {
      server.kill();
      removeServerFile(settings.dataDir, process.pid);
      note('stopped at once');
      process.exit(EXIT.interrupted);
    },
  });
  if (first.policyFault !== null) note(`${failureOf(first.policyFault).message}\n${REFUSED}`);
  if (flags.json === true) print(JSON.stringify(listening(server.record, settings.dataDir)));
  else
    print(
      `${banner(server.record, settings.dataDir, first.model, settings.console !== 'off')}\n${count} workers. Ctrl-C stops the server.`,
    );
  const why = await Promise.race([told, server.over]);
  if (why !== undefined) {
    server.kill();
    removeServerFile(settings.dataDir, process.pid);
    note(`error: ${why.message}`);
    process.exit(why.exit);
  }
  await stop(server);
}

async function reloadWorkers(server: RunningWorkers): Promise<void> {
  const told = await server.reload();
  if ('now' in told) {
    note(`reloaded: ${told.now.join('; ')}`);
    for (const text of told.kept) note(`not reloaded: ${text}`);
    return;
  }
  note(told.message);
  if (!told.policy) note(`not reloaded: ${UNCHANGED}`);
  else note(`not reloaded: ${told.keptUntil === null ? REFUSED : keptUntil(told.keptUntil)}`);
}

/** What runs could not be recorded, so nothing is waited for. */
function endAtOnce(why: string, { dataDir }: Settings): never {
  removeServerFile(dataDir, process.pid);
  note(`error: ${why}`);
  process.exit(EXIT.auditFailed);
}

/** What a first or a second start runs into, said before anything slow begins. @throws Failure */
function checkFirstSteps({ manifest }: RunFlags, { manifestFile, dataDir }: Settings): void {
  const running = runningServer(dataDir);
  if (running !== null) {
    const where = `${restUrl(running)} (process ${running.pid})`;
    throw new Failure(
      EXIT.failed,
      `error: a server of ${dataDir} runs already, at ${where}: stop it, or name another --data-dir`,
    );
  }
  const named = manifest !== undefined || isSet('OSL_MANIFEST');
  if (named || existsSync(manifestFile)) return;
  throw usage(
    `there is no ${manifestFile}: \`osl init\` makes one of a Postgres, --manifest names another, \`osl demo\` needs none`,
  );
}

async function announce(server: RunningServer, dataDir: string, json: boolean): Promise<void> {
  if (json) {
    print(JSON.stringify(listening(server.record, dataDir)));
    return;
  }
  const model = server.open.service.model();
  print(banner(server.record, dataDir, model, server.settings.console !== 'off'));
  if (server.record.demo && server.record.localTokens) print(await (await import('./tour.js')).tour(server));
  print('Ctrl-C stops the server.');
}

async function stop(server: Pick<RunningServer, 'stop'>): Promise<void> {
  note(`stopping: what runs may go on for ${DRAIN_MS / 1000} s; Ctrl-C again stops at once`);
  const hung = setTimeout(() => {
    note('error: something did not stop in time');
    process.exit(EXIT.failed);
  }, HANG_MS + DRAIN_MS);
  await server.stop(DRAIN_MS);
  clearTimeout(hung);
  note('stopped');
}

const REFUSED =
  'every request is refused (E2001) until there is a valid policy: mend it, then send SIGHUP, unless OSL_POLICY_WATCH is on';
const UNCHANGED = 'what was served before is still served';

function keptUntil(when: string): string {
  return `the last valid policy stays in force until ${when}, then every request is refused (E2001)`;
}

/** Everything anew; where something has a fault, what is served stays: with an invalid policy for a time, or not at all. */
async function reload(server: RunningServer): Promise<void> {
  try {
    const { now, kept } = await server.reload();
    note(`reloaded: ${now.join('; ')}`);
    for (const text of kept) note(`not reloaded: ${text}`);
  } catch (error) {
    note(failureOf(error).message);
    note(`not reloaded: ${servedNow(server)}`);
  }
}

function servedNow({ open: { service } }: RunningServer): string {
  const kept = service.keptPolicy();
  if (kept !== null) return keptUntil(new Date(kept.until).toISOString());
  return service.model().snapshot === null ? REFUSED : UNCHANGED;
}
