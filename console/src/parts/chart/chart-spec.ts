/** A chart as plain data. */
export interface ChartSpec {
  readonly kind: 'line' | 'bar' | 'scatter';
  /** What stands along the x axis, and in which way. */
  readonly x: { readonly name: string; readonly scale: 'time' | 'category' | 'value' };
  readonly y: { readonly name: string };
  readonly series: readonly ChartSeries[];
  /** What the chart leaves out, in words; null where it shows all. */
  readonly note: string | null;
}

export interface ChartSeries {
  readonly name: string;
  /** Pairs of x and y. Times are milliseconds since the epoch; a null y is a gap. */
  readonly points: readonly (readonly [x: number | string, y: number | null])[];
}
