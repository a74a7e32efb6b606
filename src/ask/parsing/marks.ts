import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditEntry, AuditLog, AuditSurface } from '../../../audit/index.js';
import { namesIn } from '../../base/files.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

/** Metadata that identifies a long text while it is compiled; as in the audit log, never the text itself. */
export interface CompileMark {
  readonly request_id: string;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly statement_hmac: string | null;
  /** UTF-16 units. */
  readonly size: number;
}

/**
 * Records which long texts are being compiled, in one file each, so that the next start can report what the gateway
 * was doing when it was killed. The decision record is too late for that: it is written once the text is compiled.
 */
export class Marks {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Creates the directory if it does not exist. */
  async open(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
  }

  /** Works with the mark set, which outlives the process if that ends meanwhile. @throws the system's error */
  async during<T>(mark: CompileMark, work: () => Promise<T>): Promise<T> {
    const file = join(this.#dir, `${randomUUID()}.json`);
    await writeFile(file, JSON.stringify(mark), { mode: 0o600, flag: 'wx' });
    try {
      return await work();
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Marks left by an earlier process; they are deleted once `told` has handled them. */
  async left(told: (mark: CompileMark) => Promise<void>): Promise<void> {
    for (const name of await namesIn(this.#dir)) {
      const file = join(this.#dir, name);
      const mark = markIn(await readFile(file, 'utf8'));
      if (mark !== null) await told(mark);
      await rm(file, { force: true });
    }
  }
}

/** Opens the marks of a process. Those left in `dir` by an earlier one are logged and recorded. */
export async function startMarks(
  dir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<Marks> {
  const marks = new Marks(dir);
  await marks.open();
  const told = marks.left(async (mark) => {
    log.error('the gateway ended while it compiled this question', { ...mark });
    await audit.whenOpen;
    await audit.append(unfinishedEntry(mark, tenant));
  });
  if (audit.stats().failure === null) await told;
  else
    told.catch((error: unknown) => log.error('what was left was not recorded', { cause: messageOf(error) }));
  return marks;
}

/** Null for a file that was not written to its end: then nothing had been compiled. */
function markIn(text: string): CompileMark | null {
  try {
    return JSON.parse(text) as CompileMark; // as `during` wrote it
  } catch {
    return null;
  }
}

/** The record of a question that the gateway did not live to decide. */
function unfinishedEntry({ size: _, ...mark }: CompileMark, tenant: string): AuditEntry {
  return { ...mark, kind: 'decision', tenant, decision: 'error', code: 'E5000' };
}
