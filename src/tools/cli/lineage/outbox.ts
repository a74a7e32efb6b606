import { readJournal } from '../../../service/lineage/outbox/journal.js';
import { type Entry, journalIn, OutboxState } from '../../../service/lineage/outbox/state.js';
import { lineageDirs } from '../../../service/seat.js';
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

/** What the outboxes of this data directory hold in one state: that of each process, by its directory. */
export async function undelivered(
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<ReadonlyMap<string, readonly Undelivered[]>> {
  const found = new Map<string, readonly Undelivered[]>();
  for (const dir of lineageDirs(settingsOf(flags).dataDir)) found.set(dir, await inOutbox(dir, which, flags));
  return found;
}

async function inOutbox(
  dir: string,
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<readonly Undelivered[]> {
  const state = OutboxState.of(await readJournal<Entry>(journalIn(dir)));
  return [...state.messages.values()].flatMap(({ id, kind, at, body, targets }) =>
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
}
