import { attribute, type Collector, nanoseconds, SCOPE } from './collector.js';

interface MetricJson {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly MetricSample[];
}

interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}

/** Exports metrics at an interval; the returned function stops that after a final export. */
export function exportMetrics(
  collector: Collector,
  everyMs: number,
  figures: () => Promise<string>,
  report: (error: unknown) => void,
): () => Promise<void> {
  const since = nanoseconds(Date.now() - 1_000 * process.uptime());
  const send = async (): Promise<void> => {
    const told = JSON.parse(await figures()) as readonly MetricJson[]; // from this process' registry
    const now = nanoseconds(Date.now());
    const metrics = told
      .filter(({ name }) => name.startsWith('osl_'))
      .flatMap((one) => metricOf(one, since, now));
    await collector.send('/v1/metrics', {
      resourceMetrics: [{ resource: collector.resource, scopeMetrics: [{ scope: SCOPE, metrics }] }],
    });
  };
  let sending: Promise<void> | null = null;
  const once = (): Promise<void> => {
    sending ??= send().finally(() => {
      sending = null;
    });
    return sending;
  };
  const timer = setInterval(() => void once().catch(report), everyMs).unref();
  return async () => {
    clearInterval(timer);
    await once();
  };
}

const CUMULATIVE = 2;

function metricOf(
  { name, help: description, type, values }: MetricJson,
  since: string,
  now: string,
): readonly object[] {
  const point = (value: number, labels: MetricSample['labels']) => ({
    attributes: attributesOf(labels),
    startTimeUnixNano: since,
    timeUnixNano: now,
    asDouble: value,
  });
  const points = () => values.map(({ value, labels }) => point(value, labels));
  switch (type) {
    case 'gauge':
      return [{ name, description, gauge: { dataPoints: points() } }];
    case 'counter':
      return [
        {
          name,
          description,
          sum: { dataPoints: points(), aggregationTemporality: CUMULATIVE, isMonotonic: true },
        },
      ];
    case 'histogram':
      return [
        {
          name,
          description,
          unit: 's',
          histogram: { dataPoints: histogramPoints(values, since, now), aggregationTemporality: CUMULATIVE },
        },
      ];
    default:
      return [];
  }
}

function attributesOf(labels: MetricSample['labels']): readonly object[] {
  return Object.entries(labels).map(([key, value]) => attribute(key, String(value)));
}

/** Converts buckets: Prometheus' are cumulative, OTLP's are not. */
function histogramPoints(values: readonly MetricSample[], since: string, now: string): readonly object[] {
  const series = new Map<
    string,
    { labels: MetricSample['labels']; bounds: number[]; below: number[]; sum: number }
  >();
  for (const {
    metricName = '',
    labels: { le, ...labels },
    value,
  } of values) {
    const key = JSON.stringify(labels);
    const one = series.get(key) ?? { labels, bounds: [], below: [], sum: 0 };
    series.set(key, one);
    if (metricName.endsWith('_sum')) one.sum = value;
    if (!metricName.endsWith('_bucket')) continue;
    one.below.push(value);
    if (typeof le === 'number') one.bounds.push(le);
  }
  return [...series.values()].map(({ labels, bounds, below, sum }) => ({
    attributes: attributesOf(labels),
    startTimeUnixNano: since,
    timeUnixNano: now,
    count: String(below.at(-1) ?? 0),
    sum,
    explicitBounds: bounds,
    bucketCounts: below.map((value, i) => String(value - (below[i - 1] ?? 0))),
  }));
}
