import type { ChartSpec } from './chart-spec.js';

const KINDS = { line: 'Line chart', bar: 'Bar chart', scatter: 'Scatter plot' } as const;

/** The chart in one sentence, for those who do not see it. */
export function describeChart({ kind, x, y, series }: ChartSpec): string {
  const points = series.reduce((sum, one) => sum + one.points.length, 0);
  const names = series.length > 1 ? `${series.length} series` : y.name;
  return `${KINDS[kind]} of ${names} by ${x.name}, ${points} ${points === 1 ? 'point' : 'points'}`;
}
