import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn, writeWhole } from '../../base/files.js';

/** Request of the command line to the process that owns the outbox: resend dead letters. */
export interface ReplayRequest {
  readonly id: string | null;
  readonly endpoint: string | null;
}

const NAME = /^[0-9a-f-]{36}\.json$/;

/** Stores a request for the current or next server of this data directory. */
export async function leaveRequest(dir: string, request: ReplayRequest): Promise<void> {
  const folder = join(dir, 'requests');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeWhole(join(folder, `${randomUUID()}.json`), Buffer.from(JSON.stringify(request)));
}

/** Handles stored requests one after another; each is deleted once `act` has resolved. */
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

/** Null for an invalid file. */
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
