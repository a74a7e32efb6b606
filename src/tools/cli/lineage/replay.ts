import { leaveRequest } from '../../../service/lineage/requests.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, print, printJson } from '../output.js';
import { readServerFile } from '../server-file.js';
import { type OutboxFlags, type Undelivered, undelivered } from './outbox.js';

export async function runReplay(
  id: string | undefined,
  flags: OutboxFlags & { readonly all?: true },
): Promise<void> {
  if ((id === undefined) === (flags.all === undefined)) throw usage('name one event, or say --all');
  const dead = await undelivered('dead', flags);
  const meant = (e: Undelivered): boolean => id === undefined || e.id === id;
  const asked = [...dead.values()].flat().filter(meant);
  if (id !== undefined && asked.length === 0)
    throw new Failure(EXIT.failed, `error: no dead letter has the id ${id}: \`osl lineage dead\` lists them`);
  for (const [dir, events] of dead) {
    if (!events.some(meant)) continue;
    await leaveRequest(dir, { id: id ?? null, endpoint: flags.endpoint ?? null });
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
