import type { RequestCall } from '../index.js';
import type { MetricFamily } from './insight.js';
import { type InsightParts, readServer } from './insight.js';

/** Latency histogram in seconds, for requests of one form in all processes since the start. */
interface FormLatency {
  readonly form: string;
  readonly surface: string;
  readonly count: number;
  readonly sum: number;
  /** Cumulative counts; the last bucket has no bound (null). */
  readonly buckets: readonly { readonly le: number | null; readonly count: number }[];
}

interface LineageView {
  readonly endpoint: string;
  readonly pending: number;
  readonly dead: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dropped: number;
  readonly disabled: boolean;
}

/** Figures for all processes since the start, taken from the metrics of `/metrics`. */
export interface FiguresView {
  readonly latency: readonly FormLatency[];
  /** Seconds spent in each stage. */
  readonly stages: readonly { readonly stage: string; readonly count: number; readonly sum: number }[];
  readonly requests: readonly {
    readonly decision: string;
    readonly outcome: string;
    readonly count: number;
  }[];
  readonly refusals: readonly { readonly code: string; readonly count: number }[];
  readonly lineage: readonly LineageView[];
  /** Audit records whose events are not in the outbox yet; null if lineage is off. */
  readonly lineage_lag: number | null;
  /** The number of workers configured, serving, and replaced so far; null if there is a single process. */
  readonly workers: { readonly wanted: number; readonly serving: number; readonly replaced: number } | null;
  readonly wire_sessions: number;
}

/** Returns the figures of all processes. @throws QueryError E2101, and the errors of `respond` */
export function figures(parts: InsightParts, call: RequestCall): Promise<FiguresView> {
  return readServer(parts, call, 'admin_show', async () => figuresOf(await parts.insight.metrics()));
}

function figuresOf(families: readonly MetricFamily[]): FiguresView {
  const metrics = new Map(families.map((family) => [family.name, family]));
  const value = (name: string): number | null => metrics.get(name)?.values[0]?.value ?? null;
  const wanted = value('osl_workers');
  return {
    latency: latencies(metrics.get(STAGES)),
    stages: stages(metrics.get(STAGES)),
    requests: grouped(metrics.get('osl_requests_total'), ['decision', 'outcome']).map(([key, count]) => ({
      decision: key[0] ?? '',
      outcome: key[1] ?? '',
      count,
    })),
    refusals: grouped(metrics.get('osl_errors_total'), ['code'])
      .map(([key, count]) => ({ code: key[0] ?? '', count }))
      .sort((a, b) => b.count - a.count),
    lineage: lineage(metrics),
    lineage_lag: value('osl_lineage_lag_records'),
    workers:
      wanted === null
        ? null
        : {
            wanted,
            serving: value('osl_workers_serving') ?? 0,
            replaced: value('osl_workers_replaced') ?? 0,
          },
    wire_sessions: value('osl_wire_sessions') ?? 0,
  };
}

const STAGES = 'osl_request_stage_seconds';

interface Sums {
  readonly form: string;
  readonly surface: string;
  count: number;
  sum: number;
  readonly buckets: Map<string, number>;
}

function latencies(family: MetricFamily | undefined): readonly FormLatency[] {
  const all = new Map<string, Sums>();
  for (const { labels, metricName = '', value } of family?.values ?? []) {
    if (labels['stage'] !== 'total' || labels['decision'] !== 'allow') continue;
    const [form, surface] = [String(labels['form'] ?? ''), String(labels['surface'] ?? '')];
    const key = `${form} ${surface}`;
    const sums = all.get(key) ?? { form, surface, count: 0, sum: 0, buckets: new Map() };
    all.set(key, sums);
    if (metricName.endsWith('_count')) sums.count += value;
    else if (metricName.endsWith('_sum')) sums.sum += value;
    else if (metricName.endsWith('_bucket')) {
      const le = String(labels['le']);
      sums.buckets.set(le, (sums.buckets.get(le) ?? 0) + value);
    }
  }
  return [...all.values()]
    .filter(({ count }) => count > 0)
    .map(({ form, surface, count, sum, buckets }) => ({
      form,
      surface,
      count,
      sum,
      buckets: [...buckets]
        .map(([le, n]) => ({ le: le === '+Inf' ? null : Number(le), count: n }))
        .sort((a, b) => (a.le ?? Number.POSITIVE_INFINITY) - (b.le ?? Number.POSITIVE_INFINITY)),
    }))
    .sort((a, b) => b.count - a.count);
}

function stages(family: MetricFamily | undefined): FiguresView['stages'] {
  const all = new Map<string, { stage: string; count: number; sum: number }>();
  for (const { labels, metricName = '', value } of family?.values ?? []) {
    const stage = String(labels['stage']);
    const sums = all.get(stage) ?? { stage, count: 0, sum: 0 };
    all.set(stage, sums);
    if (metricName.endsWith('_count')) sums.count += value;
    else if (metricName.endsWith('_sum')) sums.sum += value;
  }
  return [...all.values()];
}

function grouped(
  family: MetricFamily | undefined,
  names: readonly string[],
): readonly (readonly [key: readonly string[], count: number])[] {
  const all = new Map<string, { readonly key: readonly string[]; count: number }>();
  for (const { labels, value } of family?.values ?? []) {
    const key = names.map((name) => String(labels[name] ?? ''));
    const sums = all.get(key.join('\n')) ?? { key, count: 0 };
    sums.count += value;
    all.set(key.join('\n'), sums);
  }
  return [...all.values()].map(({ key, count }) => [key, count]);
}

const DELIVERED = ['pending', 'dead', 'delivered', 'failed', 'dropped', 'disabled'] as const;

function lineage(metrics: ReadonlyMap<string, MetricFamily>): readonly LineageView[] {
  const all = new Map<string, Record<(typeof DELIVERED)[number], number>>();
  for (const name of DELIVERED)
    for (const { labels, value } of metrics.get(`osl_lineage_${name}`)?.values ?? []) {
      const endpoint = labels['endpoint'];
      if (typeof endpoint !== 'string') continue;
      const sums = all.get(endpoint) ?? {
        pending: 0,
        dead: 0,
        delivered: 0,
        failed: 0,
        dropped: 0,
        disabled: 0,
      };
      sums[name] += value;
      all.set(endpoint, sums);
    }
  return [...all].map(([endpoint, { disabled, ...sums }]) => ({
    endpoint,
    ...sums,
    disabled: disabled > 0,
  }));
}
