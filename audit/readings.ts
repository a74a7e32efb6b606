import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectoryAsync, writeDurablyAsync } from './disk.js';
import type { AuditEntry } from './record.js';
import type { ReadingQueue } from './store.js';

/** Directory beside the segments: readings that the log has yet to record. */
const READINGS = 'readings';
const NAME = /^[0-9a-f-]{36}\.json$/;
/** Most bytes of a reading, and most of them taken at a time. */
const MOST_BYTES = 4_096;
const MOST_AT_ONCE = 100;
const LOOK_MS = 1_000;

/** One reading of the log: its reader and filter. */
export interface AuditReadEvent {
  /** `tail`, `search`, `export`, `prove`. */
  readonly command: string;
  /** Reader by the name of its machine account; not authenticated. */
  readonly by: string;
  /** RFC 3339. */
  readonly at: string;
  /** Filter of the search. */
  readonly filter: Readonly<Record<string, string | number>>;
}

/**
 * Puts a reading where the log takes it from, before anything is read: the process that writes the log does so within a
 * second, or the next one at its start. Who reads the log by other means than ours is not on record.
 *
 * @throws where the directory cannot be written to; then nothing should be read
 */
export async function noteReading(dir: string, reading: AuditReadEvent): Promise<void> {
  const place = join(dir, READINGS);
  await mkdir(place, { recursive: true, mode: 0o700 });
  await writeDurablyAsync(join(place, `${randomUUID()}.json`), Buffer.from(JSON.stringify(reading)), 0o600);
  await syncDirectoryAsync(place);
}

/** The readings in a log's directory. */
export function readingFiles(dir: string): ReadingQueue {
  const place = join(dir, READINGS);
  return {
    waiting: async () => {
      const names = (await readdir(place).catch(() => [])).filter((name) => NAME.test(name));
      const few = names.slice(0, MOST_AT_ONCE);
      return Promise.all(
        few.map(async (name) => ({ id: name.slice(0, 36), bytes: await readFile(join(place, name)) })),
      );
    },
    recorded: (id) => rm(join(place, `${id}.json`), { force: true }),
  };
}

/** Operations of the log that recording of readings needs. */
interface ReadEventLog {
  readonly tenant: string;
  readonly queue: ReadingQueue;
  append(entry: AuditEntry): Promise<number>;
}

/** Records the readings of a log while it is open. */
export class ReadEventRecorder {
  readonly #log: ReadEventLog;
  readonly #timer: NodeJS.Timeout;
  #taking: Promise<void> | null = null;

  constructor(log: ReadEventLog) {
    this.#log = log;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    this.#look();
  }

  /** Records what is there, and looks no more. */
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

  /** Appends queued readings; those that the log refuses stay for the next run, and the log reports its own failure. */
  async #take(): Promise<void> {
    const { queue, append } = this.#log;
    try {
      for (const { id, bytes } of await queue.waiting()) {
        await append(this.#entry(id, bytes));
        await queue.recorded(id);
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

/** Whoever may write to the directory wrote it, so that it is taken apart and put together again. */
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
