import { counted, print, printJson, visible } from '../output.js';
import { type OutboxFlags, undelivered } from './outbox.js';

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
