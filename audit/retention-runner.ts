import { AuditUnavailable } from './errors.js';
import type { AuditEntry } from './record.js';
import { expiredSegments, type Retention, retentionNote } from './retention.js';
import type { Signer } from './signer.js';
import type { LogStore } from './store.js';

const LOOK_MS = 3_600_000;

interface RetentionLog {
  readonly store: LogStore;
  readonly signer: Signer;
  readonly retention: Retention;
  readonly tenant: string;
  append(entry: AuditEntry): Promise<number>;
  /** True if the wall clock has not jumped. */
  steady(): boolean;
  /** Called if expired records could not be deleted. */
  refused(why: Error): void;
}

/** Deletes expired segments in three steps: sign a note about them, record the deletion, delete the files. */
export class RetentionRunner {
  readonly #log: RetentionLog;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(log: RetentionLog) {
    this.#log = log;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
    this.look();
  }

  look(): void {
    if (this.#closed || !this.#log.steady()) return;
    this.#running ??= this.#keep().finally(() => {
      this.#running = null;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #keep(): Promise<void> {
    const { store, signer, retention, append, tenant } = this.#log;
    try {
      const before = new Date(Date.now() - retention.ms).toISOString();
      const old = await expiredSegments(store.source, signer.verifier, before);
      if (old === null) return;
      const { segments, base, until } = old;
      await store.retain(retentionNote(signer, old), old);
      const detail = {
        from: base.seq,
        segments: [segments[0], segments.at(-1)],
        until,
        archive: retention.archive,
      };
      const place = {
        kind: 'event',
        request_id: `${signer.writer}.retain.${base.seq}`,
        tenant,
        surface: 'system',
      } as const;
      await append({ ...place, action: 'audit.retain', detail: JSON.stringify(detail) });
      await store.release(old, retention.archive);
    } catch (error) {
      // The next run repeats failed steps. If the log accepts no records, it reports that itself.
      if (!(error instanceof AuditUnavailable))
        this.#log.refused(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
