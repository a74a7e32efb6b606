import { existsSync, mkdtempSync, rmdirSync, statfsSync, statSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { codeOf } from '../../src/base/thrown.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT, Failure, systemFault, usage } from '../exit.js';
import { runningServer } from '../server-file.js';

/**
 * Checks that all ports are free before any slow work begins. If another process takes one later, `listen` fails.
 *
 * @throws Failure
 */
export async function checkPorts(settings: Settings): Promise<void> {
  const { host, httpPort, pgPort, admin } = settings;
  const ports = [httpPort, pgPort, ...(admin.host === host ? [admin.httpPort, admin.pgPort] : [])];
  const shared = ports.find((port, i) => port !== null && port !== 0 && ports.indexOf(port) !== i);
  if (shared !== undefined)
    throw usage(
      `port ${shared} is named twice: REST, the Postgres port and the admin listeners need their own`,
    );
  await check(host, httpPort, 'OSL_HTTP_PORT or --http-port', settings);
  await check(host, pgPort, 'OSL_PG_PORT or --pg-port', settings);
  if (admin.httpPort !== null) await check(admin.host, admin.httpPort, 'OSL_ADMIN_PORT', settings);
  if (admin.pgPort !== null) await check(admin.host, admin.pgPort, 'OSL_ADMIN_PG_PORT', settings);
}

async function check(host: string, port: number, setting: string, settings: Settings): Promise<void> {
  if (port === 0) return;
  try {
    await tryListen(host, port);
  } catch (error) {
    const exit = codeOf(error) === 'EADDRINUSE' ? EXIT.failed : EXIT.usage;
    throw new Failure(exit, `error: ${reasonOf(error, { host, port, setting }, settings)}`);
  }
}

interface PortRequest {
  readonly host: string;
  readonly port: number;
  readonly setting: string;
}

function reasonOf(error: unknown, { host, port, setting }: PortRequest, { dataDir }: Settings): string {
  const code = codeOf(error);
  if (code === 'EADDRINUSE') {
    const other = runningServer(dataDir);
    const ours = other !== null && (other.httpPort === port || other.pgPort === port);
    const who = ours ? `, by the server of ${dataDir} (process ${other.pid})` : '';
    return `port ${port} of ${host} is in use${who}: choose another with ${setting}`;
  }
  if (code === 'EACCES') return `port ${port} of ${host}: permission denied: choose another with ${setting}`;
  return `${systemFault(error) ?? `${host} cannot be listened on`}: choose another with OSL_HOST or --host`;
}

/** Closes a connection to a port that is only reserved; a reset by the client must not end the process. */
export function refuseConnection(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

function tryListen(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer(refuseConnection);
    server.on('error', reject);
    server.listen(port, host, () => server.close(() => resolve()));
  });
}

/**
 * Checks that the data directory can be created or written to, leaving nothing behind. This is needed because mkdir in
 * Node 20 never returns where the system forbids it, as in /proc.
 *
 * @throws Failure
 */
export function checkDataDir(dataDir: string): void {
  const place = nearestExisting(dataDir);
  if (!statSync(place).isDirectory()) {
    throw usage(`the data directory ${dataDir} cannot be used: ${place} is not a directory`);
  }
  try {
    rmdirSync(mkdtempSync(join(place, '.osl-')));
  } catch (error) {
    const fault = systemFault(error)?.replace(/^.*: /, '') ?? 'it cannot be written to';
    throw usage(`the data directory ${dataDir} cannot be used: ${place}: ${fault}`);
  }
}

const LITTLE_MIB = 128;

/** Returns a remark on free disk space, empty unless little is left: engines seldom report a full disk clearly. */
export function spaceLeft(dataDir: string): string {
  const { bavail, bsize } = statfsSync(nearestExisting(dataDir));
  const mib = Math.floor((bavail * bsize) / 1_048_576);
  return mib < LITTLE_MIB ? ` (the disk of ${dataDir} is full, or nearly: ${mib} MiB are left)` : '';
}

function nearestExisting(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? path : nearestExisting(parent);
}
