import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeWhole, writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { Serial } from '../base/serial.js';
import { codeOf } from '../base/thrown.js';

/** The file in a data directory that keeps a drain, so that a restart does not end it. */
export class DrainFile {
  readonly #path: string;
  readonly #changes = new Serial();

  constructor(dataDir: string) {
    this.#path = join(dataDir, 'drained');
  }

  /** Start of the drain, RFC 3339; null if the server is not drained. @throws the system's error */
  since(): string | null {
    try {
      return readFileSync(this.#path, 'utf8').trim();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  /** Durable once it resolves. @throws the system's error */
  keep(on: boolean): Promise<void> {
    return this.#changes.run(async () => {
      if (!on) await removeWhole(this.#path);
      else if (this.since() === null)
        await writeWhole(this.#path, Buffer.from(`${new Date().toISOString()}\n`));
    });
  }

  /** Logs at a start that the server is still drained, if it is. @throws the system's error */
  report(log: ServiceLog): void {
    const since = this.since();
    if (since === null) return;
    log.warn('the server is drained, as before its restart: it is not ready and takes no new sessions', {
      since,
      ends: `RESUME on the admin listener, or a start without the file ${this.#path}`,
    });
  }
}
