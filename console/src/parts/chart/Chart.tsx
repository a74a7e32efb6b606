import { useEffect, useRef, useState } from 'react';
import { watchDark } from '../../shell/theme.js';
import { download } from '../CopyText.js';
import { type ChartColours, type ChartSpec, optionOf } from './option.js';
import '../parts.css';

interface ChartProps {
  readonly spec: ChartSpec;
  /** File name for saved charts, without extension. */
  readonly name?: string;
  /** Called when a point or bar is clicked. */
  readonly onPick?: (series: number, point: number) => void;
}

type ChartModule = typeof import('./echarts.js');

/** Chart that fills its container. The chart library is loaded when the first chart is shown. */
export function Chart({ spec, name = 'chart', onPick }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [echarts, setEcharts] = useState<ChartModule | null>(null);
  const picked = useRef(onPick);
  picked.current = onPick;
  useEffect(() => {
    import('./echarts.js').then(setEcharts, () => undefined);
  }, []);
  useEffect(() => {
    const element = place.current;
    if (echarts === null || element === null) return;
    const chart = echarts.init(element, null, { renderer: 'canvas' });
    const draw = (): void => chart.setOption(optionOf(spec, chartColours()), { notMerge: true });
    draw();
    chart.on('click', ({ seriesIndex, dataIndex }) => picked.current?.(seriesIndex ?? 0, dataIndex));
    const unwatch = watchDark(draw);
    const observer = new ResizeObserver(() => chart.resize());
    observer.observe(element);
    return () => {
      unwatch();
      observer.disconnect();
      chart.dispose();
    };
  }, [echarts, spec]);
  return (
    <figure className="chart" aria-label={describeChart(spec)}>
      <div className="chart-place" ref={place} role="img" aria-label={describeChart(spec)} />
      <figcaption className="chart-foot">
        <span className="quiet">{spec.note ?? ''}</span>
        <span>
          <button
            type="button"
            className="plain"
            disabled={echarts === null}
            onClick={() => echarts !== null && savePng(echarts, spec, name)}
          >
            Save PNG
          </button>
          <button
            type="button"
            className="plain"
            disabled={echarts === null}
            onClick={() => echarts !== null && download(`${name}.svg`, svgOf(echarts, spec), 'image/svg+xml')}
          >
            Save SVG
          </button>
        </span>
      </figcaption>
    </figure>
  );
}

const SAVED = { width: 1200, height: 640 };

/** Renders the chart as SVG without adding it to the page. */
function svgOf({ init }: ChartModule, spec: ChartSpec): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, ...SAVED });
  chart.setOption({ ...optionOf(spec, chartColours()), backgroundColor: chartColours().panel });
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

function savePng({ init }: ChartModule, spec: ChartSpec, name: string): void {
  const place = document.createElement('div');
  const chart = init(place, null, { renderer: 'canvas', devicePixelRatio: 2, ...SAVED });
  const colours = chartColours();
  chart.setOption({ ...optionOf(spec, colours), backgroundColor: colours.panel });
  chart.renderToCanvas({ pixelRatio: 2, backgroundColor: colours.panel }).toBlob((blob) => {
    if (blob !== null) download(`${name}.png`, blob, 'image/png');
    chart.dispose();
  }, 'image/png');
}

/** Returns the current colour of a custom property, in a form that the chart library accepts. */
function colourOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Number of colours for series, in base.css. */
const SERIES = 8;

function chartColours(): ChartColours {
  return {
    text: colourOf('text'),
    quiet: colourOf('quiet'),
    line: colourOf('line'),
    panel: colourOf('panel'),
    series: Array.from({ length: SERIES }, (_, i) => colourOf(`series-${i}`)),
  };
}

const KINDS = { line: 'Line chart', bar: 'Bar chart', scatter: 'Scatter plot' } as const;

/** Describes the chart in one sentence, for screen readers. */
function describeChart({ kind, x, y, series }: ChartSpec): string {
  const points = series.reduce((sum, one) => sum + one.points.length, 0);
  const names = series.length > 1 ? `${series.length} series` : y.name;
  return `${KINDS[kind]} of ${names} by ${x.name}, ${points} ${points === 1 ? 'point' : 'points'}`;
}
