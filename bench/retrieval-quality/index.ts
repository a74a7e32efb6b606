import { ContentError, type Embedder, openEmbedder } from '../../src/content/index.js';
import { MEANING_MODELS, type MeaningModel } from '../../src/model/facets/retrieval-options.js';
import type { Findings, Measure } from '../report.js';
import { banking77Bench } from './banking77.js';
import { chunkSpansBench } from './chunk-spans.js';
import { wholeDocumentsBench } from './whole-documents.js';

export { banking77Bench } from './banking77.js';
export { chunkSpansBench } from './chunk-spans.js';

/**
 * What `lexical-v1` finds and how its operators judge, on data that others wrote, beside plain baselines; and the
 * operators with each model of meaning whose package is installed.
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
