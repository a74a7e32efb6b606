import { compile, emit, ready } from 'osl-compiler';
import { createPlanCache } from '../../src/spine/plan-cache.js';
import { type Findings, type Measure, measure, median, quantile } from '../report.js';
import { correctness } from './correctness.js';
import { syntheticModel } from './model.js';
import { runPeers, withPeers } from './peers.js';
import { questionOf } from './question.js';

/** Compile time of new texts, of cached ones, of growing models, and of the peers on the same question. */
export async function compileBench(quick: boolean): Promise<Findings> {
  await ready();
  const rounds = quick ? 3 : 9;
  const size = quick ? 300 : 1_000;
  const own = [...ownMeasures(rounds, size), ...scaling(rounds, size)];
  return withPeers(async (peers) => {
    const against = await runPeers(peers, rounds, quick ? 50 : 200, timeNew);
    return { measures: [...own, ...against], tables: [await correctness(peers)] };
  });
}

let variant = 0;

/** Microseconds of each of `n` compilations of texts never seen before. */
function timeNew(n: number, model = syntheticModel(10, 10)): readonly number[] {
  return Array.from({ length: n }, () => {
    const text = questionOf(++variant);
    const start = process.hrtime.bigint();
    emit(compile(text, model.catalog, model.access));
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
}

function ownMeasures(rounds: number, size: number): readonly Measure[] {
  timeNew(2_000);
  const runs = Array.from({ length: rounds }, () => [...timeNew(size)].sort((a, b) => a - b));
  return [
    measure(
      'compile.new.p50_us',
      'µs',
      runs.map((r) => quantile(r, 0.5)),
    ),
    measure(
      'compile.new.p99_us',
      'µs',
      runs.map((r) => quantile(r, 0.99)),
    ),
    measure(
      'compile.cached.p50_us',
      'µs',
      Array.from({ length: rounds }, () => timeCached(size)),
    ),
  ];
}

/** Microseconds of one look-up of a text that was compiled before, the key's making included. */
function timeCached(n: number): number {
  const { catalog, access } = syntheticModel(10, 10);
  const cache = createPlanCache(64 * 2 ** 20);
  const texts = Array.from({ length: 100 }, (_, i) => questionOf(i));
  const keyOf = (text: string): string => `${catalog.version} ${access.signature}  ${text}`;
  for (const text of texts) cache.set(keyOf(text), compile(text, catalog, access));
  const times = Array.from({ length: n }, (_, i) => {
    const text = texts[i % texts.length] ?? '';
    const start = process.hrtime.bigint();
    cache.get(keyOf(text));
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
  return median(times);
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
    timeNew(size, large);
    const pairs = Array.from({ length: rounds }, () => ({
      small: median(timeNew(size, small)),
      large: median(timeNew(size, large)),
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
