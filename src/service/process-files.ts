import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createLimiter, type Limiter, type RateLimits, UsedTokens } from '../../policy/index.js';
import { removeWhole, writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { Serial } from '../base/serial.js';
import { codeOf } from '../base/thrown.js';
import { readManifestText } from '../model/manifest/index.js';
import type { Control } from './control.js';
import { newExchangeKey } from './issuer-keys.js';

/** The files and shared services of a serving process, either a single process or one of several workers. */
export interface ProcessFiles {
  readonly auditDir: string;
  readonly lineageDir: string;
  /** True for the one process of a server that announces datasets to lineage receivers. */
  readonly announcesDatasets: boolean;
  /** Directory of marks: files that identify long texts being compiled, to report them if the process is killed. */
  readonly marksDir: string;
  /** True if this process owns the data directory; for workers, their supervisor owns it. */
  readonly ownsDirectory: boolean;
  limiter(limits: RateLimits): Limiter;
  /** Returns the exchange key, in PEM, which is the same in all processes. */
  exchangeKey(): Promise<string>;
  /** Marks a one-time token as used; true if no process has used it before. See `UsedTokens`. */
  firstUse(token: string, issuedAt: number, endsAt: number): boolean | Promise<boolean>;
  /** Reads a file, with the same result in all processes. @throws the errors of `readManifestText` */
  read(file: string): Promise<string>;
  /** The control database. Null if there is none, and in workers, since their supervisor follows it for them. */
  readonly control: Control | null;
  /** Number of the last policy activation seen in the control database; null if the gateway has its own policy. */
  activation(): number | null;
  /** True once the control database has answered, or if there is none. */
  hasControlAnswered(): boolean;
  /** True if this machine's clock is wrong, as far as the control database can tell. */
  isClockWrong(): boolean;
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Notifies the other processes of a published version. Resolves once each of them serves it or is gone. */
  notifyPublished(): Promise<void>;
  /** True if the server accepts requests; false while its processes crash repeatedly. */
  acceptsRequests(): boolean;
  /** Notifies the other processes of a changed draft. Resolves once each of them has reread it. */
  notifyDraftChanged(id: string): Promise<void>;
  /** Notifies the other processes of revocations. Resolves once each process has read the revocations or has ended. */
  notifyRevoked(): Promise<void>;
}

/** Services shared by workers. */
export type SharedProcessFiles = Omit<
  ProcessFiles,
  'auditDir' | 'lineageDir' | 'announcesDatasets' | 'marksDir' | 'ownsDirectory' | 'control'
>;

/** The files of a single process; a supervisor's audit log is in the same place. */
export function singleProcessFiles(dataDir: string): ProcessFiles {
  const usedTokens = new UsedTokens();
  return Object.freeze({
    auditDir: auditRoot(dataDir),
    lineageDir: lineageRoot(dataDir),
    announcesDatasets: true,
    marksDir: join(dataDir, 'compiling'),
    ownsDirectory: true,
    limiter: (limits: RateLimits) => createLimiter({ limits }),
    exchangeKey: async () => newExchangeKey(),
    firstUse: (token: string, issuedAt: number, endsAt: number) =>
      usedTokens.markUsed(token, issuedAt, endsAt),
    control: null,
    activation: () => null,
    hasControlAnswered: () => true,
    isClockWrong: () => false,
    read: readManifestText,
    exclusively: <T>(work: () => Promise<T>) => work(),
    notifyPublished: async () => undefined,
    acceptsRequests: () => true,
    notifyDraftChanged: async () => undefined,
    notifyRevoked: async () => undefined,
  });
}

/** The files of worker `number`, starting at 1. A worker that replaces another takes its number. */
export function workerFiles(dataDir: string, number: number, shared: SharedProcessFiles): ProcessFiles {
  return Object.freeze({
    auditDir: workerChain(dataDir, number),
    lineageDir: workerLineage(dataDir, number),
    announcesDatasets: number === 1,
    marksDir: join(dataDir, `compiling-${WORKER_PREFIX}${number}`),
    ownsDirectory: false,
    limiter: (limits: RateLimits) => shared.limiter(limits),
    exchangeKey: () => shared.exchangeKey(),
    firstUse: (token: string, issuedAt: number, endsAt: number) => shared.firstUse(token, issuedAt, endsAt),
    control: null,
    activation: () => shared.activation(),
    hasControlAnswered: () => shared.hasControlAnswered(),
    isClockWrong: () => shared.isClockWrong(),
    read: (file: string) => shared.read(file),
    exclusively: <T>(work: () => Promise<T>) => shared.exclusively(work),
    notifyPublished: () => shared.notifyPublished(),
    acceptsRequests: () => shared.acceptsRequests(),
    notifyDraftChanged: (id: string) => shared.notifyDraftChanged(id),
    notifyRevoked: () => shared.notifyRevoked(),
  });
}

/** Returns `processFiles` with the control database, if there is one. */
export function withControl(processFiles: ProcessFiles, control: Control | null): ProcessFiles {
  if (control === null) return processFiles;
  return Object.freeze({
    ...processFiles,
    control,
    activation: () => activationOf(control),
    hasControlAnswered: () => control.hasAnswered,
    isClockWrong: () => control.clock.isWrong,
    read: control.read,
  });
}

export function activationOf(control: Control | null): number | null {
  return control?.settings.policySource === 'control' ? control.lastState.activation : null;
}

export function workerChain(dataDir: string, number: number): string {
  return join(auditRoot(dataDir), `${WORKER_PREFIX}${number}`);
}

export function workerLineage(dataDir: string, number: number): string {
  return join(lineageRoot(dataDir), `${WORKER_PREFIX}${number}`);
}

/** Directories that may hold an outbox of lineage events: that of a single process, then those of workers by number. */
export function lineageDirs(dataDir: string): readonly string[] {
  const root = lineageRoot(dataDir);
  return [root, ...workerChains(root).map(({ dir }) => dir)];
}

/** Numbers of present and former workers of this directory, ascending. */
export function workerNumbers(dataDir: string): readonly number[] {
  return workerChains(auditRoot(dataDir)).map(({ number }) => number);
}

/** The directories of the workers' hash chains in an audit log's directory, sorted by worker number. */
export function workerChains(auditDir: string): readonly { readonly number: number; readonly dir: string }[] {
  return listNames(auditDir)
    .flatMap((name) => {
      const number = Number(name.slice(WORKER_PREFIX.length));
      const isWorkerName = name.startsWith(WORKER_PREFIX) && Number.isInteger(number) && number > 0;
      return isWorkerName ? [{ number, dir: join(auditDir, name) }] : [];
    })
    .sort((a, b) => a.number - b.number);
}

/** The directories of chains restored from backups in an audit log's directory. Such chains are never continued. */
export function endedChains(auditDir: string): readonly string[] {
  return listNames(auditDir)
    .filter(isEnded)
    .sort((a, b) => Number(a.slice(ENDED_PREFIX.length)) - Number(b.slice(ENDED_PREFIX.length)))
    .map((name) => join(auditDir, name))
    .flatMap((dir) => [dir, ...workerChains(dir).map((chain) => chain.dir)]);
}

/** True for the directory of a restored chain, including a worker's. */
export function isEndedChain(dir: string): boolean {
  return isEnded(basename(dir)) || isEnded(basename(dirname(dir)));
}

/** Returns a new name for the directory of a backup's restored chains. `auditNames` are the names in use. */
export function endedName(auditNames: readonly string[]): string {
  const numbers = auditNames.filter(isEnded).map((name) => Number(name.slice(ENDED_PREFIX.length)));
  return `${ENDED_PREFIX}${Math.max(0, ...numbers) + 1}`;
}

function isEnded(name: string): boolean {
  return /^before-[1-9]\d*$/.test(name);
}

const ENDED_PREFIX = 'before-';
const WORKER_PREFIX = 'worker-';

function auditRoot(dataDir: string): string {
  return join(dataDir, 'audit');
}

function lineageRoot(dataDir: string): string {
  return join(dataDir, 'lineage');
}

function listNames(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return []; // first start
  }
}

/** The file in the data directory that records that the server is drained, so that a restart does not end the drain. */
export class DrainFile {
  readonly #path: string;
  readonly #changes = new Serial();

  constructor(dataDir: string) {
    this.#path = join(dataDir, 'drained');
  }

  /** Start of the drain, RFC 3339; null if the server is not drained. @throws the system's error */
  since(): string | null {
    try {
      return readFileSync(this.#path, 'utf8').trim();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  /** Starts or ends the drain, durably once this resolves. @throws the system's error */
  setDrained(isDrained: boolean): Promise<void> {
    return this.#changes.run(async () => {
      if (!isDrained) await removeWhole(this.#path);
      else if (this.since() === null)
        await writeWhole(this.#path, Buffer.from(`${new Date().toISOString()}\n`));
    });
  }

  /** Logs at startup if the server is still drained. @throws the system's error */
  report(log: ServiceLog): void {
    const since = this.since();
    if (since === null) return;
    log.warn('the server is drained, as before its restart: it is not ready and takes no new sessions', {
      since,
      ends: `RESUME on the admin listener, or a start without the file ${this.#path}`,
    });
  }
}
