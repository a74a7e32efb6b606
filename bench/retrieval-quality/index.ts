import { ContentError, type Embedder, openEmbedder } from '../../src/content/index.js';
import { MEANING_MODELS, type MeaningModel } from '../../src/model/facets/retrieval-options.js';
import type { Findings, Measure } from '../report.js';
import { banking77Bench } from './banking77.js';
import { chunkSpansBench } from './chunk-spans.js';
import { wholeDocumentsBench } from './whole-documents.js';

export { banking77Bench } from './banking77.js';
export { chunkSpansBench } from './chunk-spans.js';

/**
 * Retrieval quality of `lexical-v1` and accuracy of its operators on third-party data, compared with simple baselines;
 * also the operators with each installed embedding model.
 */
export async function qualityBench(quick: boolean): Promise<Findings> {
  const measures: Measure[] = [
    ...(await chunkSpansBench(quick)),
    ...(await wholeDocumentsBench(quick)),
    ...(await banking77Bench(quick)),
  ];
  for (const model of MEANING_MODELS) {
    const embedder = await installed(model);
    if (embedder === null) continue;
    measures.push(...(await banking77Bench(quick, embedder)));
    await embedder.close();
  }
  return { measures, tables: [] };
}

async function installed(model: MeaningModel): Promise<Embedder | null> {
  try {
    return await openEmbedder(model, { endpoint: null });
  } catch (error) {
    if (!(error instanceof ContentError) || error.code !== 'notInstalled') throw error;
    process.stderr.write(`${model}: ${error.message}\n`);
    return null;
  }
}
