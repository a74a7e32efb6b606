import { readJournal, storeReplayRequest } from '../../src/service/lineage/outbox/outbox.js';
import { journalIn, type OutboxEntry, OutboxState } from '../../src/service/lineage/outbox/state.js';
import { lineageDirs } from '../../src/service/process-files.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, print, printJson, visible } from '../output.js';
import { readServerFile } from '../server-file.js';

export interface OutboxFlags {
  readonly dataDir?: string;
  readonly endpoint?: string;
  readonly json?: true;
}

export interface UndeliveredEvent {
  readonly id: string;
  readonly kind: string;
  readonly endpoint: string;
  /** Time at which the entry was added to the outbox, RFC 3339. */
  readonly created: string;
  readonly attempts: number;
  /** Time of the next attempt, RFC 3339; null if it can be made now, or if the entry is dead. */
  readonly next: string | null;
  readonly reason: string | null;
  readonly event: unknown;
}

export async function undelivered(
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<ReadonlyMap<string, readonly UndeliveredEvent[]>> {
  const found = new Map<string, readonly UndeliveredEvent[]>();
  for (const dir of lineageDirs(settingsOf(flags).dataDir)) found.set(dir, await inOutbox(dir, which, flags));
  return found;
}

async function inOutbox(
  dir: string,
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<readonly UndeliveredEvent[]> {
  const state = OutboxState.of(await readJournal<OutboxEntry>(journalIn(dir)));
  return [...state.messages.values()].flatMap(({ id, kind, at, body, targets }) =>
    [...targets]
      .filter(
        ([endpoint, t]) => t.state === which && (flags.endpoint === undefined || endpoint === flags.endpoint),
      )
      .map(
        ([endpoint, { attempts, due, why }]): UndeliveredEvent => ({
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

export async function runList(which: 'pending' | 'dead', flags: OutboxFlags): Promise<void> {
  const events = [...(await undelivered(which, flags)).values()].flat();
  if (flags.json) {
    printJson(events);
    return;
  }
  if (events.length === 0) print(which === 'pending' ? 'nothing waits' : 'there are no dead letters');
  for (const { id, endpoint, created, attempts, next, reason } of events) {
    const parts = [created, id, endpoint, counted(attempts, 'attempt', 'attempts')];
    if (next !== null) parts.push(`next ${next}`);
    if (reason !== null && reason !== '') parts.push(reason);
    print(visible(parts.join('  ')));
  }
}

export async function runReplay(
  id: string | undefined,
  flags: OutboxFlags & { readonly all?: true },
): Promise<void> {
  if ((id === undefined) === (flags.all === undefined)) throw usage('name one event, or say --all');
  const dead = await undelivered('dead', flags);
  const meant = (e: UndeliveredEvent): boolean => id === undefined || e.id === id;
  const asked = [...dead.values()].flat().filter(meant);
  if (id !== undefined && asked.length === 0)
    throw new Failure(EXIT.failed, `error: no dead letter has the id ${id}: \`osl lineage dead\` lists them`);
  for (const [dir, events] of dead) {
    if (!events.some(meant)) continue;
    await storeReplayRequest(dir, { id: id ?? null, endpoint: flags.endpoint ?? null });
  }
  const running = readServerFile(settingsOf(flags).dataDir) !== null;
  if (flags.json) {
    printJson({
      replayed: asked.map(({ id: event, endpoint }) => ({ id: event, endpoint })),
      server_running: running,
    });
    return;
  }
  const count = counted(asked.length, 'dead letter', 'dead letters');
  print(
    running || asked.length === 0
      ? `${count} to be sent again`
      : `${count} to be sent again once a server runs here`,
  );
}
