import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../base/thrown.js';
import { systemClock } from './delivery/delivery.js';
import { Emitter, type EmitterSettings } from './emitter.js';
import type { FromThread, ToThread } from './lineage.js';

/** Entry point of the emitter thread, which isolates the service from receivers. */

const STATS_MS = 1_000;

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
const post = (message: FromThread): void => port.postMessage(message);

async function openEmitter(): Promise<Emitter | null> {
  try {
    // cast: set by `LineageThread`
    const settings = workerData as EmitterSettings;
    return await Emitter.open(settings, systemClock, (message, fields) =>
      post({ kind: 'warning', message, fields }),
    );
  } catch (error) {
    post({ kind: 'failed', reason: messageOf(error) });
    return null;
  }
}

async function announce(emitter: Emitter, message: Extract<ToThread, { kind: 'announce' }>): Promise<void> {
  const { ticket, version, datasets } = message;
  try {
    await emitter.announce(version, datasets);
    post({ kind: 'announced', ticket, fault: null });
  } catch (error) {
    post({ kind: 'announced', ticket, fault: messageOf(error) });
  }
}

const emitter = await openEmitter();
if (emitter !== null) {
  const stats = setInterval(() => post({ kind: 'stats', stats: emitter.stats() }), STATS_MS);
  port.on('message', (message: ToThread) => {
    if (message.kind === 'announce') {
      void announce(emitter, message);
      return;
    }
    clearInterval(stats);
    emitter.close().then(
      () => port.close(),
      (error: unknown) => {
        post({
          kind: 'warning',
          message: 'the lineage outbox could not be closed',
          fields: { error: String(error) },
        });
        port.close();
      },
    );
  });
  emitter.start();
  post({ kind: 'ready' });
}
