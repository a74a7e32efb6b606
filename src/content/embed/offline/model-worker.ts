import { parentPort, workerData } from 'node:worker_threads';
import { yieldToOthers } from '../../../base/threads/yield-to-others.js';
import { messageOf } from '../../../base/thrown.js';
import type { MeaningModel } from '../../../model/facets/embedding-models.js';
import { ContentError } from '../../content-error.js';
import { ngramVector } from '../../lexical/ngrams.js';
import { joined } from './joined.js';
import type { FromModel, MeaningVectors } from './messages.js';
import { openSentences } from './sentences.js';
import { openWords } from './words.js';

/** The thread that a model of meaning works in: it is loaded for a second, and takes up to 0.1 s for a text. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');
yieldToOthers();

const say = (message: FromModel): void => port.postMessage(message);

const failed = (error: unknown): void =>
  error instanceof ContentError
    ? say({ kind: 'failed', code: error.code, reason: error.message, hint: error.hint })
    : say({ kind: 'failed', code: 'malformedAnswer', reason: messageOf(error), hint: null });

function opened(model: MeaningModel): Promise<MeaningVectors> {
  switch (model) {
    case 'words-v1':
      return openWords();
    case 'sentences-v1':
      return openSentences();
  }
}

async function vectorsOf(model: MeaningVectors, texts: readonly string[]): Promise<readonly Float32Array[]> {
  const meanings = await model.vectors(texts);
  return texts.map((text, i) => {
    const meaning = meanings[i] ?? new Float32Array(model.dimensions);
    return joined(ngramVector(text), meaning, model.share);
  });
}

opened(workerData as MeaningModel).then((model) => {
  port.on('message', (texts: readonly string[]) => {
    vectorsOf(model, texts).then((vectors) => say({ kind: 'vectors', vectors }), failed);
  });
  say({ kind: 'opened', identity: model.identity, dimensions: model.dimensions });
}, failed);
