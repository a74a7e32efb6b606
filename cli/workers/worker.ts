import { InternalError } from 'osl-compiler';
import type { ServiceLog } from '../../src/base/log.js';
import { StartProblem } from '../../src/base/start-problem.js';
import { disableWasmOptimization } from '../../src/base/threads/thread.js';
import { workerFiles } from '../../src/service/process-files.js';
import { endOnUncaught, toFailure } from '../exit.js';
import { operatorLog } from '../log.js';
import { type ListeningServer, openServer } from '../serve/server.js';
import {
  type Handlers,
  Peer,
  SUPERVISOR_PROTOCOL,
  WORKER_PROTOCOL,
  type WorkerProtocol,
} from './messages.js';
import { SharedParts } from './shared.js';

/** Main module of a worker process, started by `node:cluster`; it serves on the supervisor's ports. */

const QUIET = Object.freeze({ step: () => undefined, end: () => undefined });

let server: ListeningServer | null = null;
let parts: ReturnType<SharedParts['handlers']> | null = null;

const HANDLERS: Handlers<WorkerProtocol> = {
  start: async ({ number, settings, texts }) => {
    const log = numbered(operatorLog(), number);
    const shared = new SharedParts(supervisor, settings, texts);
    parts = shared.handlers();
    const seat = workerFiles(settings.dataDir, number, shared);
    const admitted = shared.admit.bind(shared);
    const options = { settings, demo: null, log, progress: QUIET, admitted, common: shared.common(number) };
    server = await openServer(options, seat).catch(failed);
    server.open.fatalFailure.then((why) => supervisor.ask('over', { why }));
    const { httpPort, pgPort, adminPort, adminPgPort } = server;
    return { httpPort, pgPort, adminPort, adminPgPort };
  },
  stop: async ({ deadlineMs }) => {
    await server?.stop(deadlineMs);
    setImmediate(() => process.disconnect());
  },
  prepare: (change) => begun().prepare(change),
  take: (nothing) => begun().take(nothing),
  losePolicy: (lost) => begun().losePolicy(lost),
  drop: (nothing) => begun().drop(nothing),
  draft: (draft) => begun().draft(draft),
  revoked: (nothing) => begun().revoked(nothing),
  reclaim: (lease) => begun().reclaim(lease),
  ownSessions: (asked) => begun().ownSessions(asked),
  signalled: (signal) => begun().signalled(signal),
  cancelled: (request) => begun().cancelled(request),
  figures: (nothing) => begun().figures(nothing),
  view: (nothing) => begun().view(nothing),
  history: (asked) => begun().history(asked),
  slowest: (asked) => begun().slowest(asked),
  obey: (asked) => begun().obey(asked),
  drained: (asked) => begun().drained(asked),
  shadow: (command) => begun().shadow(command),
  standing: (standing) => begun().standing(standing),
};

const supervisor = new Peer(WORKER_PROTOCOL, HANDLERS, SUPERVISOR_PROTOCOL, (message) => {
  process.send?.(message, undefined, undefined, () => undefined); // errors are ignored: this process ends when its supervisor does
});

function begun(): NonNullable<typeof parts> {
  if (parts === null) throw new InternalError('the worker has not begun');
  return parts;
}

async function failed(error: unknown): Promise<never> {
  const { exit, message } = toFailure(error);
  await supervisor.ask('failed', { exit, message });
  process.exit(exit);
}

function numbered(log: ServiceLog, worker: number): ServiceLog {
  const told: ServiceLog = {
    info: (message, fields = {}) => log.info(message, { worker, ...fields }),
    warn: (message, fields = {}) => log.warn(message, { worker, ...fields }),
    error: (message, fields = {}) => log.error(message, { worker, ...fields }),
  };
  return Object.freeze(told);
}

if (process.send === undefined) throw new StartProblem('this is a worker, not a program');
// Signals sent to the terminal or process group reach workers too, but only the supervisor reacts to them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('message', (message) => supervisor.heard(message));
endOnUncaught(operatorLog());
disableWasmOptimization();
await supervisor.ask('here', null);
