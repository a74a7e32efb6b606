import { parentPort } from 'node:worker_threads';
import { applyGrammar, type Grammar, ready } from 'osl-compiler';
import { messageOf } from '../../base/thrown.js';
import type { FromParser, ToParser } from './index.js';

/** Entry point of the parser thread. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

const send = (message: FromParser): void => port.postMessage(message);

await ready();
port.on('message', ({ parsed }: ToParser) => {
  try {
    send({ kind: 'parsed', grammar: asJson(applyGrammar(parsed)) });
  } catch (error) {
    send({ kind: 'failed', reason: messageOf(error) });
  }
});
send({ kind: 'ready' });

/** Serializes the tree. A tree that is too deep to be serialized is also too deep to bind. */
function asJson(grammar: Grammar): string {
  try {
    return JSON.stringify(grammar);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return JSON.stringify({ kind: 'deep' } satisfies Grammar);
  }
}
