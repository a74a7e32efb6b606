import { type KeyboardEvent, type PointerEvent, useMemo, useState } from 'react';
import { numberColumns, PlainTable } from '../Processes.js';
import { HEIGHT, pathOf, roundedTop, type TimeChart, type TimeLine, timeText } from './charts.js';

/** Time steps shared by all charts. `pointed` and `chosen` are indexes of steps; null if there is no such step. */
export interface TimeAxis {
  /** Start of the first step in ms since 1970. */
  readonly from: number;
  readonly everyMs: number;
  readonly count: number;
  readonly pointed: number | null;
  readonly chosen: number | null;
  readonly onPoint: (step: number | null) => void;
  readonly onChoose: (step: number) => void;
}

interface TimeChartViewProps {
  readonly chart: TimeChart;
  readonly axis: TimeAxis;
}

/** A line chart over time, with the values at the pointed step (by default the newest), and a table. */
export function TimeChartView({ chart, axis }: TimeChartViewProps) {
  const { title, lines, text } = chart;
  const { from, everyMs, count, pointed } = axis;
  const top = useMemo(() => roundedTop(chart), [chart]);
  const at = pointed ?? count - 1;
  const label = (step: number): string => timeText(from + step * everyMs, Math.max(everyMs, 60_000));
  return (
    <figure className="box time-chart" aria-label={title}>
      <figcaption>
        <h4>{title}</h4>
        <span className="quiet">{text(top)}</span>
      </figcaption>
      <Plot chart={chart} axis={axis} top={top} />
      <div className="time-labels quiet" aria-hidden="true">
        <span>{label(0)}</span>
        <span>{label(Math.floor(count / 2))}</span>
        <span>{label(count - 1)}</span>
      </div>
      <ul className="time-legend">
        {lines.map((line, i) => (
          <li key={line.name}>
            <svg viewBox="0 0 18 6" width="18" height="6" aria-hidden="true">
              <path className={lineClass(i)} d="M1 3L17 3" />
            </svg>
            <span className="time-name">{line.name}</span> <strong>{valueText(line, at, text)}</strong>
          </li>
        ))}
        {lines.length === 0 && <li className="quiet">nothing yet</li>}
      </ul>
      <Table chart={chart} axis={axis} />
    </figure>
  );
}

interface PlotProps extends TimeChartViewProps {
  readonly top: number;
}

function Plot({ chart: { title, lines, text }, axis, top }: PlotProps) {
  const { from, everyMs, count, pointed, chosen, onPoint, onChoose } = axis;
  const at = pointed ?? count - 1;
  const paths = useMemo(() => lines.map(({ values }) => pathOf(values, top)), [lines, top]);
  const words = lines.map((line) => `${line.name} ${valueText(line, at, text)}`).join(', ');
  const stepOf = (event: PointerEvent<HTMLElement>): number => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return within(Math.round(((event.clientX - left) / width) * (count - 1)), count);
  };
  const press = (event: KeyboardEvent): void => {
    const next = keyStep(event.key, at, count);
    if (next === null) return;
    event.preventDefault();
    if (event.key === 'Enter' || event.key === ' ') onChoose(at);
    else onPoint(next);
  };
  return (
    <div
      className="time-plot"
      role="slider"
      tabIndex={0}
      aria-label={`${title}: time`}
      aria-valuemin={0}
      aria-valuemax={count - 1}
      aria-valuenow={at}
      aria-valuetext={`${timeText(from + at * everyMs, everyMs)}: ${words}`}
      onKeyDown={press}
      onBlur={() => onPoint(null)}
      onPointerMove={(event) => onPoint(stepOf(event))}
      onPointerLeave={() => onPoint(null)}
      onPointerUp={(event) => onChoose(stepOf(event))}
    >
      <svg viewBox={`0 0 ${count - 1} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {chosen !== null && <path className="time-chosen" d={`M${chosen} 0V${HEIGHT}`} />}
        {pointed !== null && <path className="time-pointed" d={`M${pointed} 0V${HEIGHT}`} />}
        {paths.map((path, i) => (
          <path key={lines[i]?.name} className={lineClass(i)} d={path} />
        ))}
      </svg>
    </div>
  );
}

const FAR = 30;

/** Returns the step to which a key moves from `at`; null if the key has no function. */
function keyStep(key: string, at: number, count: number): number | null {
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowDown':
      return within(at - 1, count);
    case 'ArrowRight':
    case 'ArrowUp':
      return within(at + 1, count);
    case 'PageDown':
      return within(at - FAR, count);
    case 'PageUp':
      return within(at + FAR, count);
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    case 'Enter':
    case ' ':
      return at;
    default:
      return null;
  }
}

function within(step: number, count: number): number {
  return Math.max(0, Math.min(count - 1, step));
}

const LINE_STYLES = 8;

function lineClass(i: number): string {
  return `time-line time-line-${i % LINE_STYLES}`;
}

function valueText({ values }: TimeLine, step: number, text: (value: number) => string): string {
  const value = values[step] ?? null;
  return value === null ? '–' : text(value);
}

/** The chart's values as a table, newest first, without empty steps. It is rendered only when opened. */
function Table({ chart: { title, lines, text }, axis: { from, everyMs, count } }: TimeChartViewProps) {
  const [isOpen, setOpen] = useState(false);
  const steps = Array.from({ length: isOpen ? count : 0 }, (_, i) => count - 1 - i).filter((step) =>
    lines.some(({ values }) => values[step] !== null),
  );
  return (
    <details className="time-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table</summary>
      {isOpen && (
        <PlainTable
          label={`${title}, as a table`}
          columns={['time', ...numberColumns(...lines.map(({ name }) => name))]}
        >
          {steps.map((step) => (
            <tr key={step}>
              <th scope="row">{timeText(from + step * everyMs, everyMs)}</th>
              {lines.map((line) => (
                <td key={line.name} className="number">
                  {valueText(line, step, text)}
                </td>
              ))}
            </tr>
          ))}
        </PlainTable>
      )}
    </details>
  );
}
