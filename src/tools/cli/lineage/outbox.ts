import { journalIn } from '../../../service/lineage/emitter.js';
import { lineageDir } from '../../../service/lineage/index.js';
import { readJournal } from '../../../service/lineage/outbox/journal.js';
import { type Entry, OutboxState } from '../../../service/lineage/outbox/state.js';
import { settingsOf } from '../flags.js';

export interface OutboxFlags {
  readonly dataDir?: string;
  readonly endpoint?: string;
  readonly json?: true;
}

/** An undelivered event, as one endpoint has it. */
export interface Undelivered {
  readonly id: string;
  readonly kind: string;
  readonly endpoint: string;
  /** RFC 3339: when it came into the outbox. */
  readonly created: string;
  readonly attempts: number;
  /** RFC 3339: when it is tried again; null where it is due now, or dead. */
  readonly next: string | null;
  readonly reason: string | null;
  readonly event: unknown;
}

/** The outbox's directory, and what it holds in one state. */
export async function undelivered(
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<{ readonly dir: string; readonly events: readonly Undelivered[] }> {
  const dir = lineageDir(settingsOf(flags).dataDir);
  const state = OutboxState.of(await readJournal<Entry>(journalIn(dir)));
  const events = [...state.messages.values()].flatMap(({ id, kind, at, body, targets }) =>
    [...targets]
      .filter(
        ([endpoint, t]) => t.state === which && (flags.endpoint === undefined || endpoint === flags.endpoint),
      )
      .map(
        ([endpoint, { attempts, due, why }]): Undelivered => ({
          id,
          kind,
          endpoint,
          created: new Date(at).toISOString(),
          attempts,
          next: which === 'pending' && due > 0 ? new Date(due).toISOString() : null,
          reason: why,
          event: JSON.parse(body),
        }),
      ),
  );
  return { dir, events };
}
