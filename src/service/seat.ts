import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createLimiter, type Limiter, type RateLimits, UsedTokens } from '../../policy/index.js';
import { readManifestText } from '../model/manifest/index.js';
import type { Control } from './control.js';
import { newExchangeKey } from './exchange-key.js';

/** What a process that serves has of its own in the data directory, alone or as one of several workers. */
export interface ProcessFiles {
  readonly auditDir: string;
  /** Of the outbox of lineage. */
  readonly lineageDir: string;
  /** Whether this process tells the receivers of lineage what is published: one process of a server does. */
  readonly announces: boolean;
  /** Where long texts are marked while they are compiled. */
  readonly marksDir: string;
  /** Whether this process looks after the directory as a whole; a worker leaves that to its supervisor. */
  readonly keeps: boolean;
  /** Counts against these limits, for all processes of the server. */
  limiter(limits: RateLimits): Limiter;
  /** The key of the exchange, as PEM, which all processes of the server sign with. */
  exchangeKey(): Promise<string>;
  /** Whether a token is used for the first time, by any process of the server: see `UsedTokens`. */
  firstUse(token: string, issuedAt: number, endsAt: number): boolean | Promise<boolean>;
  /** The text of a file as all processes of the server serve it. Throws as `readManifestText`. */
  read(file: string): Promise<string>;
  /** What this process follows by itself; null for a worker, whose supervisor does, and where nothing is shared. */
  readonly control: Control | null;
  /** The activation of the policy that serves, by the control database; null where each gateway has its own. */
  activation(): number | null;
  /** True once the control database was heard since the start, and where there is none. */
  heard(): boolean;
  /** Runs `work` while no other process publishes or reloads. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves once every other process serves what was published, or is gone. */
  published(): Promise<void>;
  /** Whether the server as a whole takes requests: not where its processes end one after another. */
  steady(): boolean;
  /** Resolves once every other process has read the draft anew. */
  draftChanged(id: string): Promise<void>;
  /** Resolves once every other process has read what was revoked, or is gone. */
  revoked(): Promise<void>;
}

/** What workers have in common, as one of them reaches it. */
export type SharedProcessFiles = Omit<
  ProcessFiles,
  'auditDir' | 'lineageDir' | 'announces' | 'marksDir' | 'keeps' | 'control'
>;

/** The seat of the only process of a server; a supervisor's audit log is there too. */
export function aloneIn(dataDir: string): ProcessFiles {
  const used = new UsedTokens();
  return Object.freeze({
    auditDir: auditRoot(dataDir),
    lineageDir: lineageRoot(dataDir),
    announces: true,
    marksDir: join(dataDir, 'compiling'),
    keeps: true,
    limiter: (limits: RateLimits) => createLimiter({ limits }),
    exchangeKey: async () => newExchangeKey(),
    firstUse: (token: string, issuedAt: number, endsAt: number) => used.first(token, issuedAt, endsAt),
    control: null,
    activation: () => null,
    heard: () => true,
    read: readManifestText,
    exclusively: <T>(work: () => Promise<T>) => work(),
    published: async () => undefined,
    steady: () => true,
    draftChanged: async () => undefined,
    revoked: async () => undefined,
  });
}

/** The seat of one worker, by its number from 1. Whoever replaces it has the same. */
export function workerSeat(dataDir: string, number: number, shared: SharedProcessFiles): ProcessFiles {
  return Object.freeze({
    auditDir: workerChain(dataDir, number),
    lineageDir: workerLineage(dataDir, number),
    announces: number === 1,
    marksDir: join(dataDir, `compiling-${WORKER}${number}`),
    keeps: false,
    limiter: (limits: RateLimits) => shared.limiter(limits),
    exchangeKey: () => shared.exchangeKey(),
    firstUse: (token: string, issuedAt: number, endsAt: number) => shared.firstUse(token, issuedAt, endsAt),
    control: null,
    activation: () => shared.activation(),
    heard: () => shared.heard(),
    read: (file: string) => shared.read(file),
    exclusively: <T>(work: () => Promise<T>) => shared.exclusively(work),
    published: () => shared.published(),
    steady: () => shared.steady(),
    draftChanged: (id: string) => shared.draftChanged(id),
    revoked: () => shared.revoked(),
  });
}

/** The seat of the only process of a server that shares with other gateways; as it was where it shares nothing. */
export function following(seat: ProcessFiles, control: Control | null): ProcessFiles {
  if (control === null) return seat;
  return Object.freeze({
    ...seat,
    control,
    activation: () => activationOf(control),
    heard: () => control.heard,
    read: control.read,
  });
}

/** Null where each gateway has a policy of its own. */
export function activationOf(control: Control | null): number | null {
  return control?.settings.policySource === 'control' ? control.seen.activation : null;
}

export function workerChain(dataDir: string, number: number): string {
  return join(auditRoot(dataDir), `${WORKER}${number}`);
}

export function workerLineage(dataDir: string, number: number): string {
  return join(lineageRoot(dataDir), `${WORKER}${number}`);
}

/** Where outboxes of lineage are, or may be: that of the only process, then those of workers by their numbers. */
export function lineageDirs(dataDir: string): readonly string[] {
  const root = lineageRoot(dataDir);
  return [root, ...workerChains(root).map(({ dir }) => dir)];
}

/** Numbers of the workers that have, or once had, a seat in this directory, ascending. */
export function seatsIn(dataDir: string): readonly number[] {
  return workerChains(auditRoot(dataDir)).map(({ number }) => number);
}

/** The chains of workers below the directory of an audit log, in the order of their numbers. */
export function workerChains(auditDir: string): readonly { readonly number: number; readonly dir: string }[] {
  return names(auditDir)
    .flatMap((name) => {
      const number = Number(name.slice(WORKER.length));
      const is = name.startsWith(WORKER) && Number.isInteger(number) && number > 0;
      return is ? [{ number, dir: join(auditDir, name) }] : [];
    })
    .sort((a, b) => a.number - b.number);
}

/** Chains below the directory of an audit log that a restore brought, and that nobody writes any more. */
export function endedChains(auditDir: string): readonly string[] {
  return names(auditDir)
    .filter(isEnded)
    .sort((a, b) => Number(a.slice(ENDED.length)) - Number(b.slice(ENDED.length)))
    .map((name) => join(auditDir, name))
    .flatMap((dir) => [dir, ...workerChains(dir).map((chain) => chain.dir)]);
}

/** Whether a chain is one of `endedChains`, by its directory. */
export function isEndedChain(dir: string): boolean {
  return isEnded(basename(dir)) || isEnded(basename(dirname(dir)));
}

/** The name of the directory that the chains of the next restore have. */
export function endedName(auditNames: readonly string[]): string {
  const numbers = auditNames.filter(isEnded).map((name) => Number(name.slice(ENDED.length)));
  return `${ENDED}${Math.max(0, ...numbers) + 1}`;
}

function isEnded(name: string): boolean {
  return /^before-[1-9]\d*$/.test(name);
}

const ENDED = 'before-';
const WORKER = 'worker-';

function auditRoot(dataDir: string): string {
  return join(dataDir, 'audit');
}

function lineageRoot(dataDir: string): string {
  return join(dataDir, 'lineage');
}

function names(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return []; // a first start
  }
}
