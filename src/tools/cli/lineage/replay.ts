import { leaveRequest } from '../../../service/lineage/requests.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, print, printJson } from '../output.js';
import { readServerFile } from '../server-file.js';
import { type OutboxFlags, undelivered } from './outbox.js';

export async function runReplay(
  id: string | undefined,
  flags: OutboxFlags & { readonly all?: true },
): Promise<void> {
  if ((id === undefined) === (flags.all === undefined)) throw usage('name one event, or say --all');
  const { dir, events } = await undelivered('dead', flags);
  const asked = events.filter((e) => id === undefined || e.id === id);
  if (id !== undefined && asked.length === 0)
    throw new Failure(EXIT.failed, `error: no dead letter has the id ${id}: \`osl lineage dead\` lists them`);
  if (asked.length > 0) await leaveRequest(dir, { id: id ?? null, endpoint: flags.endpoint ?? null });
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
