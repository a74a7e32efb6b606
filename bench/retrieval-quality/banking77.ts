import type { EncoderName } from 'osl-compiler';
import {
  type Duplicate,
  type Embedder,
  lexicalEmbedder,
  type OperatorPassage,
  runEncoder,
} from '../../src/content/index.js';
import type { ArgumentValues } from '../../src/model/facets/arguments.js';
import { type Measure, measure } from '../report.js';
import { plainBm25 } from './baselines.js';
import { skipped } from './chunk-spans.js';
import { bankingData, type Intent, missingData } from './data.js';

/** Accuracies stated in the README of the data set; the middle of each range. */
const README: ReadonlyMap<number, number> = new Map([
  [0, 0.475],
  [5, 0.59],
  [10, 0.67],
]);

/** Embeds texts; each text only once, however often it is requested. */
type Embed = Pick<Embedder, 'embed'>;

/** Quality of the encoder operators with `embedder` on questions with known intents. */
export async function banking77Bench(
  quick: boolean,
  embedder: Embedder = lexicalEmbedder,
): Promise<readonly Measure[]> {
  const missing = missingData('banking77');
  if (missing !== null) return skipped(missing);
  const { train, test, labels } = bankingData();
  const asked = test.filter((_, i) => !quick || i % 10 === 0);
  const embed = remembered(embedder);
  const passages = await passagesOf(asked, embed);
  const some = labels.filter((_, i) => i % 8 === 0).slice(0, 10);
  const few = test.filter((t) => some.includes(t.label));
  const measures = [
    ...(await classifyMeasures(asked, passages, train, labels, embed)),
    await tagMeasure(asked, passages, train, labels, embed),
    await clusterMeasure(few, some.length, embed),
    await outlierMeasure(test, labels, embed),
    await dedupMeasure(train.slice(0, 1_000), embed),
    await similarityMeasure(few, embed),
  ];
  return embedder === lexicalEmbedder
    ? [...measures, retrievalMeasure(asked, train)]
    : measures.map((m) => ({ ...m, id: `${m.id}.${embedder.model}` }));
}

function remembered(embedder: Embed): Embed {
  const known = new Map<string, Float32Array>();
  return {
    async embed(texts, role, signal) {
      const fresh = [...new Set(texts.filter((text) => !known.has(text)))];
      const vectors = fresh.length === 0 ? [] : await embedder.embed(fresh, role, signal);
      for (const [i, text] of fresh.entries()) known.set(text, vectors[i] ?? new Float32Array());
      return texts.map((text) => known.get(text) ?? new Float32Array());
    },
  };
}

async function passagesOf(intents: readonly Intent[], embedder: Embed): Promise<readonly OperatorPassage[]> {
  const vectors = await embedder.embed(
    intents.map((i) => i.text),
    'document',
  );
  return intents.map(({ text }, i) => ({
    chunkId: `${i}`.padStart(6, '0'),
    text,
    vector: vectors[i] ?? new Float32Array(),
  }));
}

function run(
  name: EncoderName,
  passages: readonly OperatorPassage[],
  values: ArgumentValues,
  embedder: Embed,
): Promise<readonly unknown[]> {
  return runEncoder(name, passages, values, { embedder, query: '' });
}

function withExamples(train: readonly Intent[], labels: readonly string[], count: number): unknown {
  return labels.map((label) => ({
    label,
    examples: train
      .filter((t) => t.label === label)
      .slice(0, count)
      .map((t) => t.text),
  }));
}

async function classifyMeasures(
  asked: readonly Intent[],
  passages: readonly OperatorPassage[],
  train: readonly Intent[],
  labels: readonly string[],
  embed: Embed,
): Promise<readonly Measure[]> {
  const out: Measure[] = [];
  for (const [examples, reference] of README) {
    const values = await run('CLASSIFY', passages, { labels: withExamples(train, labels, examples) }, embed);
    const accuracy = share(asked, (intent, i) => values[i] === intent.label);
    out.push(
      one(
        `banking77.classify.accuracy.${examples}_examples`,
        accuracy,
        asked.length,
        'the same method, as the README of the data says',
        reference,
      ),
    );
  }
  return out;
}

/** Best F1 of the assigned tags over all thresholds. */
async function tagMeasure(
  asked: readonly Intent[],
  passages: readonly OperatorPassage[],
  train: readonly Intent[],
  labels: readonly string[],
  embed: Embed,
): Promise<Measure> {
  let best = 0;
  for (const threshold of [0.35, 0.4, 0.45, 0.5, 0.55, 0.6]) {
    const values = { labels: withExamples(train, labels, 10), threshold };
    const tags = (await run('TAG', passages, values, embed)) as string[][]; // TAG returns texts
    const hits = asked.filter((intent, i) => tags[i]?.includes(intent.label)).length;
    const given = tags.reduce((sum, t) => sum + t.length, 0);
    best = Math.max(best, (2 * hits) / Math.max(1, given + asked.length));
  }
  return one('banking77.tag.best_f1.10_examples', best, asked.length);
}

/** Share of queries whose best training query by plain BM25 has the same intent: the accuracy of retrieval alone. */
function retrievalMeasure(asked: readonly Intent[], train: readonly Intent[]): Measure {
  const rank = plainBm25(train.map((t) => t.text));
  const sample = asked.filter((_, i) => i % 5 === 0);
  const accuracy = share(sample, ({ text, label }) => train[rank(text)[0] ?? -1]?.label === label);
  return one('banking77.nearest_by_plain_bm25.accuracy', accuracy, sample.length);
}

/** Share of passages whose intent is the most common one of their cluster. */
async function clusterMeasure(intents: readonly Intent[], k: number, embed: Embed): Promise<Measure> {
  const clusters = (await run('CLUSTER', await passagesOf(intents, embed), { k }, embed)) as number[]; // of numbers
  const counts = new Map<number, Map<string, number>>();
  for (const [i, { label }] of intents.entries()) {
    const of = counts.get(clusters[i] ?? 0) ?? new Map<string, number>();
    of.set(label, (of.get(label) ?? 0) + 1);
    counts.set(clusters[i] ?? 0, of);
  }
  const pure = [...counts.values()].reduce((sum, of) => sum + Math.max(...of.values()), 0);
  return one('banking77.cluster.purity', pure / intents.length, intents.length, 'chance', 1 / k);
}

/** Mean AUC of OUTLIER in ranking ten queries of other intents above forty of one intent. */
async function outlierMeasure(
  test: readonly Intent[],
  labels: readonly string[],
  embed: Embed,
): Promise<Measure> {
  const areas: number[] = [];
  for (const label of labels.slice(0, 20)) {
    const inside = test.filter((t) => t.label === label);
    const outside = labels
      .filter((l) => l !== label)
      .slice(0, 70)
      .filter((_, i) => i % 7 === 0);
    const strangers = outside.flatMap((l) => test.filter((t) => t.label === l).slice(0, 1));
    const passages = await passagesOf([...inside, ...strangers], embed);
    const scores = (await run('OUTLIER', passages, { k: 5 }, embed)) as number[]; // there are more than 5
    areas.push(areaUnderCurve(scores.slice(inside.length), scores.slice(0, inside.length)));
  }
  return meanArea('banking77.outlier.auc', areas);
}

/** Share of the pairs linked by DEDUP that have the same intent. */
async function dedupMeasure(intents: readonly Intent[], embed: Embed): Promise<Measure> {
  const passages = await passagesOf(intents, embed);
  const groups = (await run('DEDUP', passages, { threshold: 0.8 }, embed)) as Duplicate[]; // DEDUP returns these
  const linked = groups.flatMap((g, i) => (g.of === null ? [] : [[i, Number(g.of)] as const]));
  const same = linked.filter(([a, b]) => intents[a]?.label === intents[b]?.label).length;
  return one('banking77.dedup.precision', same / Math.max(1, linked.length), linked.length);
}

/** AUC of SIMILARITY in separating queries of the same intent from others. */
async function similarityMeasure(intents: readonly Intent[], embed: Embed): Promise<Measure> {
  const areas: number[] = [];
  const passages = await passagesOf(intents, embed);
  for (const { text, label } of intents.filter((_, i) => i % 10 === 0)) {
    const scores = (await run('SIMILARITY', passages, { reference: text }, embed)) as number[]; // of numbers
    const others = scores.map((score, i) => ({ score, ...intents[i] })).filter((o) => o.text !== text);
    const of = (same: boolean): number[] =>
      others.filter((o) => (o.label === label) === same).map((o) => o.score);
    areas.push(areaUnderCurve(of(true), of(false)));
  }
  return meanArea('banking77.similarity.auc', areas);
}

function meanArea(name: string, areas: readonly number[]): Measure {
  return one(name, areas.reduce((s, a) => s + a, 0) / areas.length, areas.length, 'chance', 0.5);
}

/** Probability that a value of `high` is greater than one of `low`. */
function areaUnderCurve(high: readonly number[], low: readonly number[]): number {
  let wins = 0;
  for (const h of high) for (const l of low) wins += h > l ? 1 : h === l ? 0.5 : 0;
  return wins / Math.max(1, high.length * low.length);
}

function share<T>(items: readonly T[], holds: (item: T, i: number) => boolean): number {
  return items.filter(holds).length / Math.max(1, items.length);
}

function one(id: string, value: number, n: number, against: string | null = null, reference = 1): Measure {
  return { ...measure(id, 'share', [value], against, against === null ? null : value / reference), n };
}
