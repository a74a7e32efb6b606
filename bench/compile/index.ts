import {
  applyGrammar,
  compile,
  compileTemplate,
  type EmittedSql,
  emit,
  GovernedPlan,
  ready,
} from 'osl-compiler';
import { createPlanCache } from '../../src/ask/data/plan-cache.js';
import { type Findings, type Measure, measure, median, paired, quantile, type Table } from '../report.js';
import { correctness } from './correctness.js';
import { goldenMeasures } from './golden.js';
import { timeMetrics } from './metrics.js';
import { syntheticModel } from './model.js';
import { runPeers, withPeers } from './peers.js';
import { questionOf } from './question.js';

/** Compile time of new texts, of cached ones, of growing models, and of the peers on the same query. */
export async function compileBench(quick: boolean): Promise<Findings> {
  await ready();
  const rounds = quick ? 3 : 9;
  const size = quick ? 300 : 1_000;
  const own = [
    ...ownMeasures(rounds, size),
    ...goldenMeasures(quick ? 10 : 30),
    ...metricsMeasures(rounds, size),
    ...scaling(rounds, size),
  ];
  return withPeers(async (peers) => {
    const against = await runPeers(peers, rounds, quick ? 50 : 200, { known: newTexts(), cold: timeCold });
    return { measures: [...own, ...against], tables: [MEANINGS, await correctness(peers)] };
  });
}

const MEANINGS: Table = {
  name: 'compile: what is measured',
  about:
    'One question, asked with other literals each time: no text comes twice. From the text to governed SQL with the ' +
    'values of its parameters. The peers have no cache to be asked through; each is warm.',
  head: ['measure', 'what it is'],
  rows: [
    ['`compile.new.*`, `compile.vs_*`', 'as the service answers: a text whose shape is known is not parsed'],
    ['`compile.cold.*`, `compile.cold_vs_*`', 'the compiler alone, no cache: parse, bind, govern, emit'],
    ['`compile.cold_vs_parser`', 'the same beside `libpg-query` alone: 0.33× is three times its time'],
    [
      '`compile.golden_vs_parser`',
      'the median of the golden questions, of all forms and callers, compiled one after the other',
    ],
    ['`compile.cached.*`', 'the same texts again and again, as the service answers'],
    [
      '`compile.metrics.*`',
      'a metrics body, from its JSON, no cache: several metrics by a dimension and a month',
    ],
    ['`compile.*_entities_vs_10`', 'the compiler alone, over a larger model'],
  ],
};

function metricsMeasures(rounds: number, size: number): readonly Measure[] {
  timeMetrics(1_000);
  const runs = Array.from({ length: rounds }, () => [...timeMetrics(size)].sort((a, b) => a - b));
  return ([0.5, 0.99] as const).map((q) =>
    measure(
      `compile.metrics.p${100 * q}_us`,
      'µs',
      runs.map((r) => quantile(r, q)),
    ),
  );
}

let variant = 0;

const SMALL = syntheticModel(10, 10);

/** Times in µs of `n` compilations, without any cache, of texts never seen before. */
function timeCold(n: number, model = SMALL): readonly number[] {
  return times(n, (text) => emit(compile(text, model.catalog, model.access)));
}

/**
 * Times in µs, ascending, of `n` compilations without any cache and of the parser alone on `n` other texts. They
 * alternate, so that both run with realistic processor caches.
 */
function timeBesideParser(n: number): {
  readonly cold: readonly number[];
  readonly parser: readonly number[];
} {
  const pairs = Array.from({ length: n }, () => ({ cold: timeCold(1), parser: times(1, applyGrammar) }));
  return {
    cold: ascending(pairs.flatMap((p) => p.cold)),
    parser: ascending(pairs.flatMap((p) => p.parser)),
  };
}

/** Like `timeCold`, but with a plan cache that already contains the query with other literals. */
function newTexts(): (n: number) => readonly number[] {
  const ask = asker();
  for (let i = 0; i < 100; i++) ask(questionOf(++variant));
  return (n) => times(n, ask);
}

function times(n: number, work: (text: string) => unknown): readonly number[] {
  return Array.from({ length: n }, () => {
    const text = questionOf(++variant);
    const start = process.hrtime.bigint();
    work(text);
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
}

/** Compiles text to governed SQL as the request pipeline does, including computing the cache key. */
function asker(): (text: string) => EmittedSql {
  const { catalog, access } = syntheticModel(10, 10);
  const cache = createPlanCache(64 * 2 ** 20);
  return (text) => {
    const rights = `${catalog.version} ${access.signature} `;
    const known = cache.find(rights, text);
    if (known instanceof GovernedPlan) return emit(known);
    const compiled = compileTemplate(text, known.shaped, catalog, access);
    cache.add(rights, text, known.shaped, compiled);
    return emit(compiled.plan);
  };
}

function ownMeasures(rounds: number, size: number): readonly Measure[] {
  const known = newTexts();
  // It takes thousands of queries until the whole compiler is optimised code.
  timeCold(6_000);
  known(10_000);
  const runs = Array.from({ length: rounds }, () => ({
    new: ascending(known(10 * size)),
    ...timeBesideParser(size),
    cached: ascending(timeCached(size)),
  }));
  const of = (id: 'new' | 'cold' | 'cached', q: number): Measure =>
    measure(
      `compile.${id}.p${100 * q}_us`,
      'µs',
      runs.map((r) => quantile(r[id], q)),
    );
  const beside = paired(
    'compile.cold_vs_parser',
    'µs',
    'less',
    runs.map((r) => quantile(r.cold, 0.5)),
    runs.map((r) => quantile(r.parser, 0.5)),
    'the parser alone (libpg-query)',
  );
  return [of('new', 0.5), of('new', 0.99), of('cold', 0.5), of('cold', 0.99), beside, of('cached', 0.5)];
}

function ascending(values: readonly number[]): readonly number[] {
  return [...values].sort((a, b) => a - b);
}

/** Times in µs of `n` cache look-ups of known texts. */
function timeCached(n: number): readonly number[] {
  const ask = asker();
  const texts = Array.from({ length: 100 }, (_, i) => questionOf(i));
  for (const text of texts) ask(text);
  return Array.from({ length: n }, (_, i) => {
    const text = texts[i % texts.length] ?? '';
    const start = process.hrtime.bigint();
    ask(text);
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
}

/** 10,000 entities and 100,000 grants against 10 and 100: paired rounds of the same texts. */
function scaling(rounds: number, size: number): readonly Measure[] {
  const sizes = [
    [100, 1_000],
    [1_000, 10_000],
    [10_000, 100_000],
  ] as const;
  const small = syntheticModel(10, 100);
  return sizes.map(([entities, grants]) => {
    const large = syntheticModel(entities, grants);
    timeCold(size, large);
    const pairs = Array.from({ length: rounds }, () => ({
      small: median(timeCold(size, small)),
      large: median(timeCold(size, large)),
    }));
    const ratio = median(pairs.map((p) => p.small / p.large));
    const id = entities === 10_000 ? 'compile.10k_entities_vs_10' : `compile.${entities}_entities_vs_10`;
    return measure(
      id,
      'µs',
      pairs.map((p) => p.large),
      '10 entities, 100 grants',
      ratio,
    );
  });
}
