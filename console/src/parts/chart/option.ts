import type { EChartsCoreOption } from 'echarts/core';

export interface ChartSpec {
  readonly kind: 'line' | 'bar' | 'scatter';
  readonly x: { readonly name: string; readonly scale: 'time' | 'category' | 'value' };
  readonly y: { readonly name: string };
  readonly series: readonly ChartSeries[];
  /** Note about omitted data; null if the chart shows everything. */
  readonly note: string | null;
}

export interface ChartSeries {
  readonly name: string;
  /** Pairs of x and y. Times are in milliseconds since the epoch; if y is null, the line has a gap. */
  readonly points: readonly (readonly [x: number | string, y: number | null])[];
}

export interface ChartColours {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly panel: string;
  readonly series: readonly string[];
}

/** Returns the ECharts options for `spec`. Tooltips are drawn by the chart, never inserted as HTML. */
export function optionOf(spec: ChartSpec, colours: ChartColours): EChartsCoreOption {
  const isBar = spec.kind === 'bar';
  const isMany = spec.series.length > 1;
  const axis = {
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.quiet, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.line } },
    nameTextStyle: { color: colours.quiet },
    nameLocation: 'middle',
  };
  const along = {
    ...axis,
    type: spec.x.scale,
    name: spec.x.name,
    nameGap: isBar ? 12 : 30,
    splitLine: { show: false },
    ...(isBar && {
      inverse: true,
      nameLocation: 'start',
      nameTextStyle: { color: colours.quiet, align: 'left' },
    }),
    ...(spec.x.scale === 'value' && { scale: true }),
  };
  const across = {
    ...axis,
    type: 'value',
    name: isMany ? '' : spec.y.name,
    nameGap: isBar ? 28 : 46,
    scale: spec.kind !== 'bar',
  };
  return {
    animation: false,
    // As in the table: with the browser's time zone, a date would become the evening before.
    useUTC: true,
    color: [...colours.series],
    backgroundColor: 'transparent',
    textStyle: { fontFamily: 'system-ui, sans-serif' },
    grid: {
      left: isBar ? 8 : 44,
      right: 24,
      top: isMany ? (isBar ? 60 : 42) : 30,
      bottom: isBar && isMany ? 10 : isBar ? 34 : 44,
      containLabel: true,
    },
    ...(isMany && { legend: { type: 'scroll', top: 6, textStyle: { color: colours.text } } }),
    tooltip: {
      trigger: spec.kind === 'scatter' ? 'item' : 'axis',
      renderMode: 'richText',
      backgroundColor: colours.panel,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
    },
    xAxis: isBar ? across : along,
    yAxis: isBar ? along : across,
    series: spec.series.map(({ name, points }) => ({
      type: spec.kind,
      name,
      data: points.map(([x, y]) => (isBar ? [y, x] : [x, y])),
      ...(spec.kind === 'line' && { showSymbol: points.length < 60, symbolSize: 5 }),
      ...(spec.kind === 'scatter' && {
        symbolSize: points.length > 500 ? 4 : 7,
        large: points.length > 5_000,
      }),
      ...(isBar && { barMaxWidth: 22 }),
    })),
  };
}
