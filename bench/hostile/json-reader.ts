import { request } from 'node:http';
import { workerData } from 'node:worker_threads';

export interface ReaderStart {
  readonly port: number;
  readonly token: string;
  /** Number of answers read concurrently. */
  readonly count: number;
}

const { port, token, count } = workerData as ReaderStart; // passed by our own host
const BODY = JSON.stringify({ osql: 'select id, region, owner, balance, opened from osl.entities.account' });

/** Reads and discards one answer. @throws Error if the request fails */
function read(): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const outgoing = request(
      { host: '127.0.0.1', port, path: '/osl/query', method: 'POST', headers },
      (incoming) => {
        if (incoming.statusCode !== 200) reject(new Error(`the gateway answered ${incoming.statusCode}`));
        incoming.resume();
        incoming.once('end', resolve);
        incoming.once('error', reject);
      },
    );
    outgoing.once('error', reject);
    outgoing.end(BODY);
  });
}

async function readOn(): Promise<never> {
  for (;;) await read();
}

await Promise.all(Array.from({ length: count }, readOn));
