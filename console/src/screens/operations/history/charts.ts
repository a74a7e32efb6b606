import type { History } from '../../../api/admin-types.js';
import { formatCount } from '../../../parts/load/format.js';
import { msText } from '../figures.js';

type StepValues = readonly (number | null)[];
type Line = History['lines'][number];

export interface TimeLine {
  readonly name: string;
  readonly values: StepValues;
}

/** Lines over the same steps, in one unit. */
export interface TimeChart {
  readonly title: string;
  readonly lines: readonly TimeLine[];
  readonly text: (value: number) => string;
  /** Unit in which the top of the scale is a round number; 1 by default. */
  readonly unit?: number;
}

export const GROUPINGS = [
  { name: 'all', title: 'Together' },
  { name: 'surface', title: 'By surface' },
  { name: 'connector', title: 'By connector' },
] as const;
export type ChartGrouping = (typeof GROUPINGS)[number]['name'];

/** Returns the charts for `history`, which was requested with the grouping `by`. */
export function chartsOf(history: History, by: ChartGrouping): readonly TimeChart[] {
  const { lines, pools, every_seconds: seconds } = history;
  const perSecond = (steps: StepValues): StepValues =>
    steps.map((count) => (count === null ? null : count / seconds));
  const perMinute = (steps: StepValues): StepValues =>
    steps.map((count) => (count === null ? null : (60 * count) / seconds));
  const each = (of: (line: Line) => StepValues): readonly TimeLine[] =>
    lines.map((line) => ({ name: lineName(line, by), values: of(line) }));
  const pool = (of: (pool: History['pools'][number]) => StepValues): readonly TimeLine[] =>
    pools.map((one) => ({ name: one.connector, values: of(one) }));
  return [
    { title: 'Questions per second', lines: each((line) => perSecond(line.questions)), text: rateText },
    { title: 'Errors per minute', lines: errorLines(lines, by, perMinute), text: rateText },
    ...latencyCharts(lines, by, each),
    { title: 'Statements running in the database', lines: pools.map(runningLine), text: countText },
    { title: 'Waiting for a database session', lines: pool((one) => one.waiting), text: countText },
    {
      title: 'Audit records not yet on disk',
      lines: [{ name: 'records', values: history.audit_waiting }],
      text: countText,
    },
    {
      title: 'Memory',
      lines: [{ name: 'resident', values: history.memory_bytes }],
      text: bytesText,
      unit: MIB,
    },
    {
      title: 'Sessions on the Postgres port',
      lines: [{ name: 'sessions', values: history.wire_sessions }],
      text: countText,
    },
  ];
}

const MIB = 1_048_576;

function runningLine({ connector, running, size }: History['pools'][number]): TimeLine {
  const sessions = size.findLast((value) => value !== null) ?? 0;
  return {
    name: `${connector} (${formatCount(sessions)} ${sessions === 1 ? 'session' : 'sessions'})`,
    values: running,
  };
}

const SURFACE_NAMES: Readonly<Record<string, string>> = { wire: 'Postgres port', rest: 'REST', mcp: 'MCP' };

function lineName({ name }: Line, by: ChartGrouping): string {
  switch (by) {
    case 'all':
      return 'questions';
    case 'surface':
      return SURFACE_NAMES[name ?? ''] ?? name ?? '';
    case 'connector':
      return name ?? 'no connector';
  }
}

function errorLines(
  lines: readonly Line[],
  by: ChartGrouping,
  rate: (steps: StepValues) => StepValues,
): readonly TimeLine[] {
  if (by !== 'all')
    return lines.map((line) => ({
      name: lineName(line, by),
      values: rate(
        line.failed.map((failed, i) =>
          failed === null ? null : failed + (line.refused[i] ?? 0) + (line.cancelled[i] ?? 0),
        ),
      ),
    }));
  return lines.flatMap(({ refused, failed, cancelled }) => [
    { name: 'refused', values: rate(refused) },
    { name: 'failed', values: rate(failed) },
    { name: 'cancelled', values: rate(cancelled) },
  ]);
}

const QUANTILES = [
  { name: 'half within (p50)', of: (line: Line) => line.p50_ms },
  { name: '95 of 100 within (p95)', of: (line: Line) => line.p95_ms },
  { name: '99 of 100 within (p99)', of: (line: Line) => line.p99_ms },
] as const;

function latencyCharts(
  lines: readonly Line[],
  by: ChartGrouping,
  each: (of: (line: Line) => StepValues) => readonly TimeLine[],
): readonly TimeChart[] {
  if (by !== 'all')
    return QUANTILES.map(({ name, of }) => ({ title: `Time: ${name}`, lines: each(of), text: msText }));
  const all = lines.flatMap((line) => QUANTILES.map(({ name, of }) => ({ name, values: of(line) })));
  return [{ title: 'Time of a question', lines: all, text: msText }];
}

function rateText(value: number): string {
  return value === 0 || value >= 100 ? formatCount(Math.round(value)) : String(Number(value.toPrecision(2)));
}

function countText(value: number): string {
  return formatCount(Math.round(value));
}

function bytesText(value: number): string {
  return `${formatCount(Math.round(value / MIB))} MiB`;
}

/** Returns a round number that no value exceeds: 1, 2 or 5 times a power of ten, in the chart's unit. */
export function roundedTop({ lines, unit = 1 }: TimeChart): number {
  let top = 0;
  for (const { values } of lines) for (const value of values) top = Math.max(top, value ?? 0);
  if (top === 0) return unit;
  const power = unit * 10 ** Math.floor(Math.log10(top / unit));
  return power * ([1, 2, 5].find((factor) => factor * power >= top) ?? 10);
}

export const HEIGHT = 100;

/** Returns the SVG path of a line, 1 wide per step and `HEIGHT` high, with gaps at missing values. */
export function pathOf(values: StepValues, top: number): string {
  let path = '';
  let open = false;
  for (const [i, value] of values.entries()) {
    if (value === null) {
      open = false;
      continue;
    }
    const y = (HEIGHT * (1 - value / top)).toFixed(1);
    // A step between two gaps is a dot: a line without length, with round ends.
    path += open ? `L${i} ${y}` : `M${i} ${y}L${i} ${y}`;
    open = true;
  }
  return path;
}

/** Formats the local time of a step: `14:03:10`, or `14:03` if steps are minutes or longer. */
export function timeText(ms: number, everyMs: number): string {
  const at = new Date(ms);
  const two = (n: number): string => String(n).padStart(2, '0');
  const minute = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return everyMs < 60_000 ? `${minute}:${two(at.getSeconds())}` : minute;
}
