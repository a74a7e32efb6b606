import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSame, ownProcess, type ProcessIdentity } from '../src/base/process-identity.js';
import { codeOf } from '../src/base/thrown.js';

/** What a running server says of itself in `<dataDir>/server.json`, so that other commands find it. */
export interface ServerRecord extends ProcessIdentity {
  readonly host: string;
  readonly httpPort: number;
  readonly pgPort: number;
  /** Of the admin listener; a port that is null, or missing as in a file of an older version, is not open. */
  readonly adminHost?: string;
  readonly adminPort?: number | null;
  readonly adminPgPort?: number | null;
  /** True if the wire, and with it `osl psql`, is encrypted. */
  readonly tls: boolean;
  /** True if REST is, and the file of the certificate that it then shows; else empty. */
  readonly httpCertFile: string;
  /** True if it takes tokens that `osl token` mints. */
  readonly localTokens: boolean;
  /** True if it takes tokens of issuers too; missing in a file of an older version. */
  readonly hasIssuers?: boolean;
  /** The `iss` and `aud` that its tokens name; an empty `audience`: none is asked for. */
  readonly issuer: string;
  readonly audience: string;
  readonly manifestFile: string;
  readonly policyFile: string;
  /** True if it serves the demo. */
  readonly demo: boolean;
  readonly version: string;
  /** RFC 3339. */
  readonly startedAt: string;
  /** Inode of the data directory: a copy of it has another. */
  readonly directory: string;
}

const NAME = 'server.json';

/** Says of this process what others need; replaces the file whole. */
export function writeServerFile(
  dataDir: string,
  said: Omit<ServerRecord, keyof ProcessIdentity | 'directory'>,
): ServerRecord {
  mkdirSync(dataDir, { recursive: true });
  const record: ServerRecord = { ...ownProcess(), ...said, directory: inodeOf(dataDir) };
  const temporary = join(dataDir, `${NAME}.${process.pid}`);
  writeFileSync(temporary, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, join(dataDir, NAME));
  return record;
}

/** Removes the file if it is still that of process `pid`. */
export function removeServerFile(dataDir: string, pid: number): void {
  if (readServerFile(dataDir)?.pid === pid) rmSync(join(dataDir, NAME), { force: true });
}

/**
 * The record of the last server that did not stop in order, running or not; null where there is none.
 *
 * @throws the system's error where the file may not be read
 */
export function readServerFile(dataDir: string): ServerRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(join(dataDir, NAME), 'utf8'));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || error instanceof SyntaxError) return null;
    throw error;
  }
  return isRecord(value) ? value : null;
}

/**
 * The record of a server whose process still lives; null where there is none. A pid alone does not say so: in a container it is always 1, after a restart
 * of the machine another process has it, and a copied directory brings the file along.
 */
export function runningServer(dataDir: string): ServerRecord | null {
  const record = readServerFile(dataDir);
  return record !== null && record.directory === inodeOf(dataDir) && isSame(record) ? record : null;
}

function inodeOf(dir: string): string {
  return String(statSync(dir, { bigint: true }).ino);
}

/** Where a client on this machine reaches the server. */
export function addressOf(record: Pick<ServerRecord, 'host'>): string {
  if (record.host === '0.0.0.0' || record.host === '') return '127.0.0.1';
  return record.host === '::' ? '::1' : record.host;
}

/** Where REST of the server answers, without a `/` at its end. */
export function restUrl(record: Pick<ServerRecord, 'host' | 'httpPort' | 'httpCertFile'>): string {
  const scheme = record.httpCertFile === '' ? 'http' : 'https';
  return `${scheme}://${urlHost(addressOf(record))}:${record.httpPort}`;
}

/** True if `host` is this machine, and no other reaches it. */
export function isLoopback(host: string): boolean {
  return /^(127(\.\d+){3}|::1|localhost)$/.test(host);
}

/** `host` as it stands in a URL. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function isRecord(value: unknown): value is ServerRecord {
  if (typeof value !== 'object' || value === null) return false;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  return FIELDS.every(([name, type]) => typeof fields[name] === type);
}

const FIELDS: readonly (readonly [keyof ServerRecord, 'string' | 'number' | 'boolean'])[] = [
  ['pid', 'number'],
  ['boot', 'string'],
  ['ticks', 'number'],
  ['directory', 'string'],
  ['host', 'string'],
  ['httpPort', 'number'],
  ['pgPort', 'number'],
  ['tls', 'boolean'],
  ['httpCertFile', 'string'],
  ['localTokens', 'boolean'],
  ['issuer', 'string'],
  ['audience', 'string'],
  ['manifestFile', 'string'],
  ['policyFile', 'string'],
  ['demo', 'boolean'],
  ['version', 'string'],
  ['startedAt', 'string'],
];
