import { createHmac } from 'node:crypto';
import { WITNESS_MS, type Witness, type WitnessedSize } from './witness.js';

/** A receiver that is sent each checkpoint; what it keeps is handed to `osl audit verify --anchor` by whoever runs it. */
export function webhookWitness(url: string, secret: string | null): Witness {
  return {
    name: new URL(url).origin,
    keep: (checkpoint) => send(url, secret, checkpoint),
    kept: () => null,
    close: async () => undefined,
  };
}

async function send(
  url: string,
  secret: string | null,
  { writer, size, note }: WitnessedSize,
): Promise<void> {
  const signature = secret === null ? null : createHmac('sha256', secret).update(note).digest('hex');
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'osl-audit-writer': writer,
      'osl-audit-size': String(size),
      ...(signature !== null && { 'osl-signature': `sha256=${signature}` }),
    },
    body: note,
    redirect: 'error',
    signal: AbortSignal.timeout(WITNESS_MS),
  });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`it answered ${answer.status}`);
}
