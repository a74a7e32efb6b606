import type { ServiceLog } from '../../src/base/log.js';
import { Control } from '../../src/service/control.js';
import { openSupervisorDirectory, type SupervisorDirectory } from '../../src/service/data-directory.js';
import type { StartupModel } from '../../src/service/model.js';
import type { ReloadResult } from '../../src/service/reload/reload.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT } from '../exit.js';
import { logLevelPart, operatorLog } from '../log.js';
import { createProgress } from '../output.js';
import { checkDataDir, checkPorts } from '../serve/ports.js';
import { asStartProblem, recordOf } from '../serve/server.js';
import { removeServerFile, type ServerRecord, writeServerFile } from '../server-file.js';
import type { ChangeRefusal } from './messages.js';
import { portsOf, readTexts, type ServerEnd, Supervisor } from './supervisor.js';

export interface RunningWorkers {
  readonly record: ServerRecord;
  readonly over: Promise<ServerEnd>;
  stop(deadlineMs: number): Promise<void>;
  reload(): Promise<ReloadResult | ChangeRefusal>;
  kill(): void;
}

/** Starts `count` workers; resolves once all are serving. Throws the same errors as `startServer`, or PeerGone. */
export async function startWorkers(
  given: Settings,
  first: StartupModel,
  count: number,
): Promise<RunningWorkers> {
  const log = operatorLog();
  const progress = await createProgress();
  await checkPorts(given);
  checkDataDir(given.dataDir);
  progress.step(`starting ${count} workers`);
  try {
    const settings = { ...given, ...(await portsOf(given)) };
    const control = await Control.open(settings, log);
    try {
      const keeper = await asStartProblem(
        openSupervisorDirectory(settings, first, count, log, control),
        settings,
      );
      return await begun(settings, keeper, count, log, control);
    } catch (error) {
      await control?.close();
      throw error;
    }
  } finally {
    progress.end();
  }
}

function portsIn({ httpPort, pgPort, admin }: Settings) {
  return { httpPort, pgPort, adminPort: admin.httpPort, adminPgPort: admin.pgPort };
}

/** Reloads the workers first, then the supervisor's own log level. */
async function reloaded(supervisor: Supervisor): Promise<ReloadResult | ChangeRefusal> {
  const told = await supervisor.reload();
  if ('now' in told) for (const part of logLevelPart()) (await part.prepare()).apply();
  return told;
}

async function begun(
  settings: Settings,
  keeper: SupervisorDirectory,
  count: number,
  log: ServiceLog,
  control: Control | null,
): Promise<RunningWorkers> {
  const { dataDir } = settings;
  const supervisor = new Supervisor(settings, await readTexts(settings, control), count, log, control);
  const stop = async (deadlineMs: number): Promise<void> => {
    removeServerFile(dataDir, process.pid);
    await supervisor.stop(deadlineMs);
    await keeper.close();
    await control?.close();
  };
  try {
    await supervisor.start();
    const record = writeServerFile(dataDir, recordOf({ settings, demo: null }, portsIn(settings)));
    const lost = keeper.fatalFailure.then((message): ServerEnd => ({ exit: EXIT.auditFailed, message }));
    return {
      record,
      over: Promise.race([supervisor.over, lost]),
      stop,
      reload: () => reloaded(supervisor),
      kill: () => supervisor.kill(),
    };
  } catch (error) {
    await stop(0);
    throw error;
  }
}
