import type { FormLatency, QuotaView } from '../../api/admin-types.js';
import { formatCount } from '../../parts/load/format.js';

/** Durations, in milliseconds, of requests with the same form and surface. */
export interface LatencyLine {
  readonly form: string;
  readonly surface: string;
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Converts the server's histograms to durations, in the server's order, which is most frequent first. */
export function latencyLines(latency: readonly FormLatency[]): readonly LatencyLine[] {
  return latency.map((one) => ({
    form: one.form,
    surface: one.surface,
    count: one.count,
    mean: one.count === 0 ? 0 : (1_000 * one.sum) / one.count,
    p50: 1_000 * quantileOf(one.buckets, 0.5),
    p95: 1_000 * quantileOf(one.buckets, 0.95),
    p99: 1_000 * quantileOf(one.buckets, 0.99),
  }));
}

/** Quantile of a histogram with cumulative buckets, interpolated linearly within each bucket. */
export function quantileOf(buckets: FormLatency['buckets'], q: number): number {
  const all = buckets.at(-1)?.count ?? 0;
  if (all === 0) return 0;
  const rank = q * all;
  let [below, from] = [0, 0];
  for (const { le, count } of buckets) {
    if (count >= rank) {
      if (le === null) return from; // the last bucket has no upper bound
      return count === below ? le : from + ((le - from) * (rank - below)) / (count - below);
    }
    below = count;
    from = le ?? from;
  }
  return from;
}

/** Formats milliseconds: `850 µs`, `2.1 ms`, `1.5 s`. */
export function msText(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1_000)} µs`;
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return `${(ms / 1_000).toFixed(1)} s`;
}

const UNITS: Readonly<Record<QuotaView['unit'], string>> = {
  requests: 'requests',
  rows: 'rows',
  bytes: 'bytes',
  ms: 'seconds of the database',
  cost: 'estimated cost',
  tokens: 'model tokens',
  entities: 'different entities',
};

/** Describes a limit in words, with its name in the policy. */
export function quotaName({ name, unit, bucket, per, role, each, whose }: QuotaView): string {
  const separately = each === null ? '' : `each ${each}`;
  const owners =
    whose ?? (role === null ? separately || 'everybody' : `role ${role}${separately && `, ${separately}`}`);
  const of = bucket === 'query' ? '' : ` (${bucket})`;
  return `${name}: ${UNITS[unit]}${of} per ${per}, ${owners}`;
}

/** Formats an amount given in a quota's unit: milliseconds as seconds, large numbers of bytes as MiB. */
export function amountText(unit: QuotaView['unit'], amount: number): string {
  if (unit === 'bytes' && amount >= 1_048_576) return `${formatCount(Math.round(amount / 1_048_576))} MiB`;
  if (unit === 'ms') return `${formatCount(Math.round(amount / 1_000))} s`;
  return formatCount(Math.round(amount));
}
