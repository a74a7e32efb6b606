import { closeSync, existsSync, openSync } from 'node:fs';
import type { ServiceLog } from '../../src/base/log.js';
import type { Model } from '../../src/model/served-model.js';
import { archiveFault } from '../../src/service/audit.js';
import { loadWithoutService } from '../../src/service/data-directory.js';
import type { StartupModel } from '../../src/service/model.js';
import { isSet } from '../../src/service/settings/table.js';
import type { Settings } from '../../src/service/settings.js';
import { workersFor } from '../../src/service/workers.js';
import { EXIT, endOnUncaught, failure, toFailure, usage } from '../exit.js';
import { type ServerFlags, settingsOf } from '../flags.js';
import { operatorLog } from '../log.js';
import { createProgress, note, print } from '../output.js';
import {
  addressOf,
  removeServerFile,
  restUrl,
  runningServer,
  type ServerRecord,
  urlHost,
} from '../server-file.js';
import type { RunningWorkers } from '../workers/run.js';
import { DEMO_EXAMPLES, genericExamples, type ShellExample, tour } from './examples.js';
import { commandName, dataDirFlag, quoted, shellText, singleQuoted } from './invocation.js';
import { type Demo, type RunningServer, startServer } from './server.js';

/** Time that running requests get to finish after a stop. */
const DRAIN_MS = 10_000;
/** Time after draining until the process is considered hung. */
const HANG_MS = 15_000;

/** Serves until stopped; resolves when everything has been closed. */
export async function runServer(flags: ServerFlags, demo: Demo | null): Promise<void> {
  const settings = settingsOf(flags);
  checkFirstSteps(flags, settings);
  const log = operatorLog();
  endOnUncaught(log, () => removeServerFile(settings.dataDir, process.pid));
  void reportArchiveFault(settings, log);
  if (demo === null && settings.workers !== 1) {
    const first = await loadWithoutService(settings, log);
    const count = workersFor(settings, first.model.manifest);
    if (count > 1) return superviseWorkers(flags, settings, first, count);
  }
  const progress = await createProgress();
  const server = await startServer({ settings, demo, log, progress });
  const told = untilStopped({
    reload: () => void reload(server),
    force: () => {
      removeServerFile(settings.dataDir, process.pid);
      note('stopped at once');
      process.exit(EXIT.interrupted);
    },
  });
  const { policyFault } = server.open;
  if (policyFault !== null) note(`${toFailure(policyFault).message}\n${REFUSED}`);
  await announce(server, settings.dataDir, flags.json === true);
  const why = await Promise.race([told, server.open.fatalFailure]);
  if (why !== undefined) endAtOnce(why, settings);
  await stop(server);
}

/**
 * Logs an error if the archive directory is not usable. It may become available later; until then, older records stay
 * in the log.
 */
async function reportArchiveFault({ audit }: Settings, log: ServiceLog): Promise<void> {
  const cause = await archiveFault(audit);
  if (cause !== null) log.error('older records of the audit log cannot be archived, and stay', { cause });
}

/** Runs the server with several worker processes. */
async function superviseWorkers(
  flags: ServerFlags,
  settings: Settings,
  first: StartupModel,
  count: number,
): Promise<void> {
  const server = await (await import('../workers/run.js')).startWorkers(settings, first, count);
  const told = untilStopped({
    reload: () => void reloadWorkers(server),
    force: () => {
      server.kill();
      removeServerFile(settings.dataDir, process.pid);
      note('stopped at once');
      process.exit(EXIT.interrupted);
    },
  });
  if (first.policyFault !== null) note(`${toFailure(first.policyFault).message}\n${REFUSED}`);
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

/** Exits immediately. Running requests are not waited for, because nothing can be recorded any more. */
function endAtOnce(why: string, { dataDir }: Settings): never {
  removeServerFile(dataDir, process.pid);
  note(`error: ${why}`);
  process.exit(EXIT.auditFailed);
}

/** Detects common mistakes before any slow work begins. @throws Failure */
function checkFirstSteps({ manifest }: ServerFlags, { manifestFile, dataDir }: Settings): void {
  const running = runningServer(dataDir);
  if (running !== null) {
    const where = `${restUrl(running)} (process ${running.pid})`;
    throw failure(`a server of ${dataDir} runs already, at ${where}: stop it, or name another --data-dir`);
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
  if (server.record.demo && server.record.localTokens) print(await tour(server));
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
  'every request is refused (E2001) until there is a valid policy. A file is read again at SIGHUP, or when it changes with OSL_POLICY_WATCH=on';
const UNCHANGED = 'what was served before is still served';

function keptUntil(when: string): string {
  return `the last valid policy stays in force until ${when}, then every request is refused (E2001)`;
}

/** Reloads everything. On an error, the old state stays in use; if the policy is invalid, only for a limited time. */
async function reload(server: RunningServer): Promise<void> {
  try {
    const { now, kept } = await server.reload();
    note(`reloaded: ${now.join('; ')}`);
    for (const text of kept) note(`not reloaded: ${text}`);
  } catch (error) {
    note(toFailure(error).message);
    note(`not reloaded: ${servedNow(server)}`);
  }
}

function servedNow({ open: { service } }: RunningServer): string {
  const kept = service.fallbackPolicy();
  if (kept !== null) return keptUntil(new Date(kept.until).toISOString());
  return service.model().snapshot === null ? REFUSED : UNCHANGED;
}

export interface SignalHandlers {
  reload(): void;
  /** Called for a second Ctrl-C or SIGTERM. */
  force(): void;
}

/**
 * A second signal within this time is the same key press: npm forwards a Ctrl-C that the process already got from the
 * terminal.
 */
const SAME_PRESS_MS = 250;

/** Resolves at the first SIGINT or SIGTERM; handlers stay installed. */
export function untilStopped(handlers: SignalHandlers): Promise<void> {
  return new Promise((resolve) => {
    let first = 0;
    const stop = (): void => {
      const now = Date.now();
      if (first === 0) {
        first = now;
        resolve();
      } else if (now - first > SAME_PRESS_MS) handlers.force();
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
    const onTerminal = process.stdout.isTTY || process.stderr.isTTY;
    process.on('SIGHUP', () => {
      if (onTerminal && !hasTerminal()) {
        // Node 20 aborts with a core file if it cannot restore the settings of its terminal.
        process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
        stop();
      } else handlers.reload();
    });
  });
}

/**
 * True while the controlling terminal is open. SIGHUP is also sent when the terminal closes, which is not a request to
 * reload.
 */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

export function listening(record: ServerRecord, dataDir: string) {
  const { pid, httpPort, pgPort, startedAt } = record;
  return { event: 'listening', rest: restUrl(record), pid, httpPort, pgPort, dataDir, startedAt };
}

export function banner(record: ServerRecord, dataDir: string, model: Model, hasConsole: boolean): string {
  const known = record.demo ? DEMO_EXAMPLES : genericExamples(model);
  const examples = record.localTokens ? known : [];
  const title = record.demo ? ': the software supply chain of this installation' : '';
  const parts = [
    `OSL Gateway ${record.version}${title}`,
    '',
    `  REST  ${restUrl(record)}`,
    `  wire  postgres://${urlHost(addressOf(record))}:${record.pgPort}/osl   (user: a subject, password: its token)`,
    `  data  ${dataDir}`,
    ...(hasConsole ? ['', `  Look at it in a browser: ${restUrl(record)}/console/`] : []),
    '',
  ];
  if (examples.length > 0) parts.push('Try, from another terminal; each line mints its own token:', '');
  parts.push(...examples.flatMap((example) => [...queryLines(example, dataDir), '']));
  const [first] = examples;
  if (first !== undefined) parts.push(...otherWays(record, first, dataDir), '');
  return parts.join('\n');
}

function queryLines({ subject, about, who, osql }: ShellExample, dataDir: string): readonly string[] {
  const osl = commandName();
  const at = dataDirFlag(dataDir);
  return [
    `  # ${subject}: ${about}`,
    `  ${osl} query${at} --token "$(${osl} token${at} ${who.map(quoted).join(' ')})" ${shellText(osql)}`,
  ];
}

function otherWays(record: ServerRecord, example: ShellExample, dataDir: string): readonly string[] {
  const mint = `$(${commandName()} token${dataDirFlag(dataDir)} ${example.who.map(quoted).join(' ')})`;
  const body = JSON.stringify({ osql: example.osql });
  // The certificate may not be valid for the local address used here.
  const trust = record.httpCertFile === '' ? '' : '-k ';
  const mode = record.tls ? 'PGSSLMODE=require ' : '';
  return [
    '  # the same with curl, and with psql',
    `  curl -s ${trust}${restUrl(record)}/osl/query -H "Authorization: Bearer ${mint}" -H 'Content-Type: application/json' -d ${singleQuoted(body)}`,
    `  ${mode}PGPASSWORD="${mint}" psql -h ${addressOf(record)} -p ${record.pgPort} -U ${quoted(example.subject)} -d osl -c ${shellText(example.osql)}`,
  ];
}
