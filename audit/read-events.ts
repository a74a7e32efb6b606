import { randomUUID } from 'node:crypto';
import { lchown, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectoryAsync, writeDurablyAsync } from './disk.js';
import type { AuditEntry } from './record.js';
import type { ReadingQueue } from './store.js';

/** Name of the directory with announced reads that are not yet recorded in the log. */
const READINGS = 'readings';
const NAME = /^[0-9a-f-]{36}\.json$/;
/** Maximum size of an event in bytes. */
const MOST_BYTES = 4_096;
const MOST_AT_ONCE = 100;
const LOOK_MS = 1_000;

/** A read access to the log. */
export interface AuditReadEvent {
  /** Command that reads the log: `tail`, `search`, `export` or `prove`. */
  readonly command: string;
  /** Operating system account of the reader; not authenticated. */
  readonly by: string;
  /** Time of the access, RFC 3339. */
  readonly at: string;
  readonly filter: Readonly<Record<string, string | number>>;
}

/**
 * Announces a read access before anything is read. The process that writes the log records it within a second or on
 * its next start. Access that bypasses `osl audit` is not recorded.
 *
 * @throws if the directory is not writable or the event too long, in which case nothing should be read
 */
export async function announceRead(dir: string, reading: AuditReadEvent): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(reading));
  // The writer would record no more than that there was an event, and neither who read nor what for.
  if (bytes.length > MOST_BYTES) throw new RangeError('what is looked for is too long to be recorded');
  const place = join(dir, READINGS);
  const file = join(place, `${randomUUID()}.json`);
  // Root may read the log of a gateway with another account, which must be able to read and delete the file.
  const { uid, gid } = await stat(dir);
  const isForeign = process.getuid?.() === 0 && uid !== 0;
  await mkdir(place, { recursive: true, mode: 0o700 });
  if (isForeign) await lchown(place, uid, gid);
  await writeDurablyAsync(file, bytes, 0o600, async (handle) => {
    if (isForeign) await handle.chown(uid, gid);
  });
  await syncDirectoryAsync(place);
}

/** Queue of announced reads in a log's directory. */
export function readingFiles(dir: string): ReadingQueue {
  const place = join(dir, READINGS);
  return {
    waiting: async () => {
      const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
      const files = entries.filter((entry) => entry.isFile() && NAME.test(entry.name)).slice(0, MOST_AT_ONCE);
      return Promise.all(
        files.map(async ({ name }) => ({ id: name.slice(0, 36), bytes: await beginning(join(place, name)) })),
      );
    },
    recorded: (id) => rm(join(place, `${id}.json`), { force: true }),
  };
}

/** Reads enough of a file to detect that it is too large; empty (an unreadable event) if it cannot be read. */
async function beginning(path: string): Promise<Buffer> {
  try {
    const file = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_BYTES + 1), 0, MOST_BYTES + 1, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    return Buffer.alloc(0);
  }
}

interface ReadEventLog {
  readonly tenant: string;
  readonly queue: ReadingQueue;
  append(entry: AuditEntry): Promise<number>;
}

/** Appends announced reads to the log while it is open. */
export class ReadEventRecorder {
  readonly #log: ReadEventLog;
  readonly #timer: NodeJS.Timeout;
  #taking: Promise<void> | null = null;
  /** Ids of recorded events that could not be removed from the queue yet. */
  readonly #recorded = new Set<string>();

  constructor(log: ReadEventLog) {
    this.#log = log;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    this.#look();
  }

  /** Stops polling, then records one more batch of queued events. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#taking;
    await this.#take();
  }

  #look(): void {
    this.#taking ??= this.#take().finally(() => {
      this.#taking = null;
    });
  }

  /** Appends queued events. Events that the log refuses remain queued; the log reports its own failures. */
  async #take(): Promise<void> {
    const { queue, append } = this.#log;
    try {
      for (const { id, bytes } of await queue.waiting()) {
        if (!this.#recorded.has(id)) await append(this.#entry(id, bytes));
        this.#recorded.add(id);
        // An event that cannot be removed must not hold up those after it.
        await queue.recorded(id).then(
          () => this.#recorded.delete(id),
          () => undefined,
        );
      }
    } catch {
      return;
    }
  }

  #entry(request_id: string, bytes: Buffer): AuditEntry {
    const detail = JSON.stringify(readingIn(bytes) ?? { unreadable: bytes.length });
    return {
      kind: 'event',
      request_id,
      tenant: this.#log.tenant,
      surface: 'cli',
      action: 'audit.read',
      detail,
    };
  }
}

/**
 * Parses a queued event; null if it is not valid. The input is untrusted: anyone with write access to the directory can
 * create such a file. Only known members are copied.
 */
function readingIn(bytes: Buffer): AuditReadEvent | null {
  if (bytes.length > MOST_BYTES) return null;
  try {
    const said: unknown = JSON.parse(bytes.toString());
    if (typeof said !== 'object' || said === null) return null;
    const text = (name: string): string => String(Reflect.get(said, name) ?? '');
    const filter: unknown = Reflect.get(said, 'filter');
    const entries = typeof filter === 'object' && filter !== null ? Object.entries(filter) : [];
    const looked = entries.map(([name, value]) => [name, typeof value === 'number' ? value : String(value)]);
    return { command: text('command'), by: text('by'), at: text('at'), filter: Object.fromEntries(looked) };
  } catch {
    return null;
  }
}
