import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectoryAsync, writeDurablyAsync } from './disk.js';
import type { AuditEntry } from './record.js';

/** Directory beside the segments: readings that the log has yet to record. */
const READINGS = 'readings';
const NAME = /^[0-9a-f-]{36}\.json$/;
/** Most bytes of a reading, and most of them taken at a time. */
const MOST_BYTES = 4_096;
const MOST_AT_ONCE = 100;
const LOOK_MS = 1_000;

/** Who read the log, and what they looked for. */
export interface Reading {
  /** `tail`, `search`, `export`, `prove`. */
  readonly command: string;
  /** Who, as the machine knows them: nobody proved it. */
  readonly by: string;
  /** RFC 3339. */
  readonly at: string;
  /** What was looked for. */
  readonly filter: Readonly<Record<string, string | number>>;
}

/**
 * Puts a reading where the log takes it from, before anything is read: the process that writes the log does so within a
 * second, or the next one at its start. Who reads the log by other means than ours is not on record.
 *
 * @throws where the directory cannot be written to; then nothing should be read
 */
export async function noteReading(dir: string, reading: Reading): Promise<void> {
  const place = join(dir, READINGS);
  await mkdir(place, { recursive: true, mode: 0o700 });
  await writeDurablyAsync(join(place, `${randomUUID()}.json`), Buffer.from(JSON.stringify(reading)), 0o600);
  await syncDirectoryAsync(place);
}

/** What a log needs of itself to record readings. */
interface Recording {
  readonly dir: string;
  readonly tenant: string;
  append(entry: AuditEntry): Promise<number>;
}

/** Records the readings of a log's directory while it is open. */
export class Readings {
  readonly #log: Recording;
  readonly #timer: NodeJS.Timeout;
  #taking: Promise<void> = Promise.resolve();

  constructor(log: Recording) {
    this.#log = log;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    this.#look();
  }

  /** Records what is there, and looks no more. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#look();
    await this.#taking;
  }

  #look(): void {
    const names = readingsIn(this.#log.dir);
    if (names.length > 0) this.#taking = this.#taking.then(() => this.#take(names));
  }

  /** What the log does not take stays for the next look. */
  async #take(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const path = join(this.#log.dir, READINGS, name);
      try {
        await this.#log.append(this.#entry(name.slice(0, 36), await readFile(path)));
        await rm(path, { force: true });
      } catch {
        return; // the log's own failure is told by the log
      }
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

function readingsIn(dir: string): readonly string[] {
  try {
    return readdirSync(join(dir, READINGS))
      .filter((name) => NAME.test(name))
      .slice(0, MOST_AT_ONCE);
  } catch {
    return []; // nobody has read the log yet
  }
}

/** Whoever may write to the directory wrote it, so that it is taken apart and put together again. */
function readingIn(bytes: Buffer): Reading | null {
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
