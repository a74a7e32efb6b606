import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * A thread of the bench: asks the gateway for `/health`, pauses a millisecond, and asks again. Between the messages
 * `begin` and `end` it notes the longest wait, and answers `end` with it.
 */
const { port } = workerData as { readonly port: number }; // given by the bench itself
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;

parentPort?.on('message', (what: 'begin' | 'end') => {
  if (what === 'begin') longestMs = 0;
  // A wait that has begun is over before the answer, so that it counts.
  setImmediate(() => asked.then(() => parentPort?.postMessage(longestMs)));
});

function health(): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/health', agent }, (response) => {
      response.resume();
      response.once('end', resolve);
    }).once('error', reject);
  });
}

let asked = health();
await asked;
parentPort?.postMessage(0);
for (;;) {
  const began = performance.now();
  asked = health();
  await asked;
  longestMs = Math.max(longestMs, performance.now() - began);
  await sleep(1);
}
