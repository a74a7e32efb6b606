import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../src/base/thrown.js';
import { failure } from '../exit.js';

export interface StoredLogin {
  /** REST address of the gateway, without a trailing `/`. */
  readonly server: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly idToken: string;
  /** Refresh token; null if the provider issued none, in which case the login ends with the ID token. */
  readonly refreshToken: string | null;
}

export function readLogin(server: string): StoredLogin | null {
  try {
    const value: unknown = JSON.parse(readFileSync(fileOf(server), 'utf8'));
    return isLogin(value) && value.server === server ? value : null;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' || error instanceof SyntaxError)
      return null;
    throw error;
  }
}

/** Replaces the file atomically; it is never readable by anyone but its owner. */
export function writeLogin(login: StoredLogin): void {
  mkdirSync(folder(), { recursive: true, mode: 0o700 });
  const file = fileOf(login.server);
  const making = `${file}.${process.pid}`;
  rmSync(making, { force: true });
  writeFileSync(making, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(making, file);
}

export function removeLogin(server: string): void {
  rmSync(fileOf(server), { force: true });
}

/** Age in ms beyond which a lock is assumed to be left behind by a killed process. */
const STALE_MS = 30_000;
const LOOK_MS = 50;

/**
 * Runs `work` under a lock, so that no other command renews the login at `server` meanwhile: some providers end the
 * login if a refresh token is used twice.
 */
export async function exclusively<T>(server: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(folder(), { recursive: true, mode: 0o700 });
  const lock = `${fileOf(server)}.lock`;
  while (!taken(lock)) {
    if (Date.now() - madeAt(lock) > STALE_MS) rmSync(lock, { force: true });
    else await sleep(LOOK_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function taken(lock: string): boolean {
  try {
    writeFileSync(lock, '', { mode: 0o600, flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw failure(`${lock} cannot be made (${codeOf(error) ?? 'unknown'})`);
  }
}

/** Time at which the lock was created, in ms since 1970; the current time if the lock has just been removed. */
function madeAt(lock: string): number {
  return statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
}

function folder(): string {
  const config = process.env['XDG_CONFIG_HOME'] ?? '';
  return join(config === '' ? join(homedir(), '.config') : config, 'osl', 'logins');
}

function fileOf(server: string): string {
  return join(folder(), `${createHash('sha256').update(server).digest('hex').slice(0, 32)}.json`);
}

function isLogin(value: unknown): value is StoredLogin {
  if (typeof value !== 'object' || value === null) return false;
  const said: Readonly<Record<string, unknown>> = { ...value };
  const texts = ['server', 'issuer', 'clientId', 'idToken'].every((name) => typeof said[name] === 'string');
  const refresh = said['refreshToken'];
  return texts && Array.isArray(said['scopes']) && (refresh === null || typeof refresh === 'string');
}
