import { type Measure, measure, quantile } from '../report.js';
import { ngramCosine, plainBm25 } from './baselines.js';
import { type CorpusStore, openCorpusStore, type StoredChunk } from './corpus-store.js';
import { chunkSpanData, missingData, type SpanQuestion } from './data.js';

const DEPTHS = [1, 5, 10] as const;

/**
 * Share of the gold spans contained in the best 1, 5 and 10 passages, over all corpora together: `lexical-v1` from a
 * real store compared with two baselines over the same chunks. Every citation is checked character by character.
 */
export async function chunkSpansBench(quick: boolean): Promise<readonly Measure[]> {
  const missing = missingData('chunk-spans');
  if (missing !== null) return skipped(missing);
  const { corpora, questions } = chunkSpanData();
  const asked = questions.filter((_, i) => !quick || i % 4 === 0);
  const store = await openCorpusStore(corpora);
  try {
    const texts = store.chunks.map((c) => c.text);
    const [bm25, ngrams] = [plainBm25(texts), ngramCosine(texts)];
    const plain = asked.map((q) => bm25(q.text));
    const grams = asked.map((q) => ngrams(q.text));
    const { places, times } = await retrieveAll(store, asked);
    const of = (id: string, ranking: readonly (readonly number[])[]): Measure[] =>
      recallMeasures(id, store.chunks, asked, ranking, plain);
    const { summary } = store;
    return [
      ...of('lexical-v1', places),
      ...of('plain_bm25', plain),
      ...of('ngram_cosine', grams),
      measure('chunk_spans.citations.wrong', 'chunks', [wrongCitations(corpora, store.chunks)]),
      measure('chunk_spans.query.p50_ms', 'ms', [
        quantile(
          [...times].sort((a, b) => a - b),
          0.5,
        ),
      ]),
      measure('chunk_spans.index.chunks_per_s', 'chunks/s', [(summary.chunks * 1_000) / summary.tookMs]),
    ];
  } finally {
    await store.close();
  }
}

/** Prints what is missing and returns no measures. */
export function skipped(missing: string): readonly Measure[] {
  process.stderr.write(`${missing}\n`);
  return [];
}

async function retrieveAll(store: CorpusStore, questions: readonly SpanQuestion[]) {
  const places: (readonly number[])[] = [];
  const times: number[] = [];
  for (const { text } of questions) {
    const start = performance.now();
    places.push(await store.retrieve(text, Math.max(...DEPTHS)));
    times.push(performance.now() - start);
  }
  return { places, times };
}

function recallMeasures(
  id: string,
  chunks: readonly StoredChunk[],
  questions: readonly SpanQuestion[],
  rankings: readonly (readonly number[])[],
  baseline: readonly (readonly number[])[],
): Measure[] {
  return DEPTHS.map((depth) => {
    const recalls = questions.map((q, i) => goldRecall(q, chunks, (rankings[i] ?? []).slice(0, depth)));
    const base = questions.map((q, i) => goldRecall(q, chunks, (baseline[i] ?? []).slice(0, depth)));
    const byCorpus = [...new Set(questions.map((q) => q.corpus))].map((corpus) =>
      mean(recalls.filter((_, i) => questions[i]?.corpus === corpus)),
    );
    const value = mean(recalls);
    const isBaseline = id === 'plain_bm25';
    return {
      ...measure(`chunk_spans.recall_at_${depth}.${id}`, 'share of gold characters', [value]),
      against: isBaseline ? null : 'plain_bm25',
      ratio: isBaseline ? null : Number((value / mean(base)).toPrecision(4)),
      spread: [Math.min(...byCorpus), Math.max(...byCorpus)].map((x) => Number(x.toPrecision(4))) as [
        number,
        number,
      ], // two in, two out
      n: questions.length,
    };
  });
}

/** Share of the gold spans' characters contained in the chunks at `places`. */
function goldRecall(
  question: SpanQuestion,
  chunks: readonly StoredChunk[],
  places: readonly number[],
): number {
  const held = new Set<number>();
  let wanted = 0;
  for (const gold of question.gold) {
    wanted += gold.end - gold.start;
    for (const place of places) {
      const chunk = chunks[place];
      if (chunk === undefined || chunk.documentId !== question.corpus) continue;
      for (let at = Math.max(gold.start, chunk.start); at < Math.min(gold.end, chunk.end); at++) held.add(at);
    }
  }
  return wanted === 0 ? 1 : held.size / wanted;
}

function wrongCitations(corpora: ReadonlyMap<string, string>, chunks: readonly StoredChunk[]): number {
  const letters = new Map([...corpora].map(([name, text]) => [name, [...text]] as const));
  return chunks.filter(
    ({ documentId, start, end, text }) => letters.get(documentId)?.slice(start, end).join('') !== text,
  ).length;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, v) => sum + v, 0) / Math.max(1, values.length);
}
