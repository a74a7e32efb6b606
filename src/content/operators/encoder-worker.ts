import { parentPort } from 'node:worker_threads';
import { yieldToOthers } from '../../base/threads/yield-to-others.js';
import { messageOf } from '../../base/thrown.js';
import { lexicalEmbedder } from '../embed/lexical-v1.js';
import type { EncoderJob, FromEncoder } from './messages.js';
import { runEncoder } from './run.js';

/** The thread that encoder operators work in. It holds nothing but what one of them is given. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');
yieldToOthers();

const say = (message: FromEncoder): void => port.postMessage(message);

port.on('message', (job: EncoderJob) => {
  columnOf(job).then(
    (values) => say({ kind: 'column', values }),
    (error: unknown) => say({ kind: 'failed', reason: messageOf(error) }),
  );
});

function columnOf({ operator, values, query, passages, embedded }: EncoderJob): Promise<readonly unknown[]> {
  const embedder = { embed: embedded === null ? lexicalEmbedder.embed : async () => embedded };
  const read = passages.map(({ chunkId, vector }) => ({ chunkId, vector: numbersIn(vector) }));
  return runEncoder(operator, read, values, { embedder, query });
}

/** `{1,0.5}` */
function numbersIn(text: string): Float32Array {
  return new Float32Array(JSON.parse(`[${text.slice(1, -1)}]`) as number[]); // a vector has no other elements
}
