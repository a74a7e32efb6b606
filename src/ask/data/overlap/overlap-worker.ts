import { parentPort } from 'node:worker_threads';
import { yieldToOthers } from '../../../base/threads/thread.js';
import { messageOf } from '../../../base/thrown.js';
import { decide, haveAnswered } from './decide.js';
import type { FromOverlapThread, OverlapJob } from './overlap-thread.js';

/** Worker thread that compares answers. It holds only the answer histories of the current job. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');
yieldToOthers();

const send = (message: FromOverlapThread): void => port.postMessage(message);

port.on('message', (job: OverlapJob) => {
  try {
    if (job.kind === 'repeated') send({ kind: 'repeated', value: haveAnswered(job.stored, job.digest) });
    else send({ kind: 'decided', value: decide(job.answer) });
  } catch (error) {
    send({ kind: 'failed', reason: messageOf(error) });
  }
});
