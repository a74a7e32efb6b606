import type { Findings } from '../report.js';
import { banking77Bench } from './banking77.js';
import { chunkSpansBench } from './chunk-spans.js';

export { banking77Bench } from './banking77.js';
export { chunkSpansBench } from './chunk-spans.js';

/** What `lexical-v1` finds and how its operators judge, on data that others wrote, beside plain baselines. */
export async function qualityBench(quick: boolean): Promise<Findings> {
  const spans = await chunkSpansBench(quick);
  const intents = await banking77Bench(quick);
  return { measures: [...spans, ...intents], tables: [] };
}
