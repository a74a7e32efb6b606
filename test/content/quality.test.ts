import { test } from 'tap';
import { missingData } from '../../bench/retrieval-quality/data.js';
import { banking77Bench, chunkSpansBench } from '../../bench/retrieval-quality/index.js';

/** Figures of the quick run; a change that costs more than a hair of quality shows here. */
const SPANS: Readonly<Record<string, number>> = {
  'chunk_spans.recall_at_1.lexical-v1': 0.55,
  'chunk_spans.recall_at_5.lexical-v1': 0.93,
  'chunk_spans.recall_at_10.lexical-v1': 0.97,
};
const BANKING: Readonly<Record<string, number>> = {
  'banking77.classify.accuracy.0_examples': 0.46,
  'banking77.classify.accuracy.5_examples': 0.6,
  'banking77.classify.accuracy.10_examples': 0.67,
  'banking77.outlier.auc': 0.9,
  'banking77.cluster.purity': 0.6,
  'banking77.dedup.precision': 0.95,
  'banking77.similarity.auc': 0.8,
};

const spans = missingData('chunk-spans');
test('retrieval on chunk-spans is as good as it was, and every citation is right', {
  skip: spans ?? false,
}, async (t) => {
  const measures = new Map((await chunkSpansBench(true)).map((m) => [m.id, m.value]));
  for (const [id, least] of Object.entries(SPANS))
    t.ok((measures.get(id) ?? 0) >= least, `${id} ${measures.get(id)}`);
  t.equal(measures.get('chunk_spans.citations.wrong'), 0);
});

const banking = missingData('banking77');
test('operators on banking77 are as good as they were', { skip: banking ?? false }, async (t) => {
  const measures = new Map((await banking77Bench(true)).map((m) => [m.id, m.value]));
  for (const [id, least] of Object.entries(BANKING))
    t.ok((measures.get(id) ?? 0) >= least, `${id} ${measures.get(id)}`);
});
