import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSame, ownProcess, type ProcessIdentity } from '../src/base/process-identity.js';
import { codeOf } from '../src/base/thrown.js';

export interface ServerRecord extends ProcessIdentity {
  readonly host: string;
  readonly httpPort: number;
  readonly pgPort: number;
  /** Host of the admin listener. Its ports are null, or missing in older files, if they are not open. */
  readonly adminHost?: string;
  readonly adminPort?: number | null;
  readonly adminPgPort?: number | null;
  readonly tls: boolean;
  readonly httpCertFile: string;
  readonly localTokens: boolean;
  /** True if tokens from other issuers are accepted; missing in older files. */
  readonly hasIssuers?: boolean;
  /** `iss` and `aud` of the server's tokens; an empty `audience` means that none is required. */
  readonly issuer: string;
  readonly audience: string;
  readonly manifestFile: string;
  readonly policyFile: string;
  readonly demo: boolean;
  readonly version: string;
  /** Start time of the server, RFC 3339. */
  readonly startedAt: string;
  /** Inode of the data directory, which differs in a copy. */
  readonly directory: string;
}

const NAME = 'server.json';

/** Writes the record of this process atomically and returns it. */
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

export function removeServerFile(dataDir: string, pid: number): void {
  if (readServerFile(dataDir)?.pid === pid) rmSync(join(dataDir, NAME), { force: true });
}

/**
 * Returns the record of a server that is running or did not stop cleanly; null if there is no valid record.
 *
 * @throws system errors if the file cannot be read
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
 * Returns the record of the running server; null if no server is running. The pid alone does not prove that: in a
 * container it is always 1, another process may have it after a reboot, and a copied directory contains the file.
 */
export function runningServer(dataDir: string): ServerRecord | null {
  const record = readServerFile(dataDir);
  return record !== null && record.directory === inodeOf(dataDir) && isSame(record) ? record : null;
}

function inodeOf(dir: string): string {
  return String(statSync(dir, { bigint: true }).ino);
}

export function addressOf(record: Pick<ServerRecord, 'host'>): string {
  if (record.host === '0.0.0.0' || record.host === '') return '127.0.0.1';
  return record.host === '::' ? '::1' : record.host;
}

export function restUrl(record: Pick<ServerRecord, 'host' | 'httpPort' | 'httpCertFile'>): string {
  const scheme = record.httpCertFile === '' ? 'http' : 'https';
  return `${scheme}://${urlHost(addressOf(record))}:${record.httpPort}`;
}

export function isLoopback(host: string): boolean {
  return /^(127(\.\d+){3}|::1|localhost)$/.test(host);
}

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
