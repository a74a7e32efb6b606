import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditEntry, AuditLog, AuditSurface } from '../../../audit/index.js';
import { namesIn } from '../../base/files.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

/** Identifies a long text while it is being compiled. Like the audit log, it does not contain the text. */
export interface CompileMark {
  readonly request_id: string;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly statement_hmac: string | null;
  /** Length of the text in UTF-16 code units. */
  readonly size: number;
}

/**
 * Marks each long text being compiled with a file, so that the next start can report what the gateway was doing when
 * it was killed. The decision record is written only after the text is compiled.
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

  /** Runs `work` while the mark is on disk; it remains if the process is killed. @throws the system's error */
  async during<T>(mark: CompileMark, work: () => Promise<T>): Promise<T> {
    const file = join(this.#dir, `${randomUUID()}.json`);
    await writeFile(file, JSON.stringify(mark), { mode: 0o600, flag: 'wx' });
    try {
      return await work();
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Passes the marks of an earlier process to `report`, one by one, and deletes them. */
  async drain(report: (mark: CompileMark) => Promise<void>): Promise<void> {
    for (const name of await namesIn(this.#dir)) {
      const file = join(this.#dir, name);
      const mark = parseMark(await readFile(file, 'utf8'));
      if (mark !== null) await report(mark);
      await rm(file, { force: true });
    }
  }
}

/** Opens the marks directory; logs and records the marks that an earlier process left. */
export async function startMarks(
  dir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<Marks> {
  const marks = new Marks(dir);
  await marks.open();
  const reported = marks.drain(async (mark) => {
    log.error('the gateway ended while it compiled this question', { ...mark });
    await audit.whenOpen;
    await audit.append(unfinishedEntry(mark, tenant));
  });
  if (audit.stats().failure === null) await reported;
  else
    reported.catch((error: unknown) =>
      log.error('what was left was not recorded', { cause: messageOf(error) }),
    );
  return marks;
}

/** Parses a mark; null for an incomplete file, whose text was not being compiled yet. */
function parseMark(text: string): CompileMark | null {
  try {
    return JSON.parse(text) as CompileMark; // cast: written by `during`
  } catch {
    return null;
  }
}

function unfinishedEntry({ size: _, ...mark }: CompileMark, tenant: string): AuditEntry {
  return { ...mark, kind: 'decision', tenant, decision: 'error', code: 'E5000' };
}
