import { parentPort } from 'node:worker_threads';
import { yieldToOthers } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import { lexicalEmbedder } from '../embed/lexical-v1.js';
import type { EncoderJob, FromEncoder } from './encoder-thread.js';
import { runEncoder } from './run.js';
import type { OperatorPassage } from './vectors.js';

/** Worker thread for encoder operators. It holds only the input of the current operator. */

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

async function columnOf({
  operator,
  values,
  query,
  read,
  embedded,
}: EncoderJob): Promise<readonly unknown[]> {
  const embedder = { embed: embedded === null ? lexicalEmbedder.embed : async () => embedded };
  return runEncoder(operator, await passagesOf(read), values, { embedder, query });
}

async function passagesOf(read: EncoderJob['read']): Promise<readonly OperatorPassage[]> {
  switch (read.kind) {
    case 'stored':
      return read.passages.map(({ chunkId, vector }) => ({ chunkId, vector: numbersIn(vector) }));
    case 'texts': {
      const vectors = await lexicalEmbedder.embed(read.texts, 'document');
      return vectors.map((vector, place) => ({ chunkId: String(place).padStart(PLACES, '0'), vector }));
    }
  }
}

/** Number of digits of an index, zero-padded so that indexes sort correctly as text. */
const PLACES = 9;

/** Parses the text of a Postgres array, such as `{1,0.5}`. */
function numbersIn(text: string): Float32Array {
  return new Float32Array(JSON.parse(`[${text.slice(1, -1)}]`) as number[]); // cast: vectors contain only numbers
}
