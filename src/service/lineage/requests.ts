import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn, writeWhole } from '../../base/files.js';

/** What a command line asks of the process that owns the outbox: dead letters are to be sent again. */
export interface ReplayRequest {
  /** Null for all. */
  readonly id: string | null;
  /** Null for all. */
  readonly endpoint: string | null;
}

const NAME = /^[0-9a-f-]{36}\.json$/;

/** Leaves a request for the server of this data directory, or for the next one. */
export async function leaveRequest(dir: string, request: ReplayRequest): Promise<void> {
  const folder = join(dir, 'requests');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeWhole(join(folder, `${randomUUID()}.json`), Buffer.from(JSON.stringify(request)));
}

/** Takes the requests that are there, one after another; each is gone once `act` is done with it. */
export async function takeRequests(
  dir: string,
  act: (request: ReplayRequest) => Promise<void>,
): Promise<void> {
  const folder = join(dir, 'requests');
  for (const name of (await namesIn(folder)).filter((n) => NAME.test(n)).sort()) {
    const file = join(folder, name);
    const request = requestIn(await readFile(file, 'utf8'));
    if (request !== null) await act(request);
    await rm(file, { force: true });
  }
}

/** Null for what no command of ours wrote. */
function requestIn(text: string): ReplayRequest | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const id = 'id' in value && typeof value.id === 'string' ? value.id : null;
    const endpoint = 'endpoint' in value && typeof value.endpoint === 'string' ? value.endpoint : null;
    return { id, endpoint };
  } catch {
    return null;
  }
}
