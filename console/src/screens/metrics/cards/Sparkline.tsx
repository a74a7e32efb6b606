import type { CardPeriod } from './card-figure.js';

const WIDTH = 240;
const HEIGHT = 48;
const EDGE = 4;

interface SparklineProps {
  readonly periods: readonly CardPeriod[];
  /** Describes the line for screen readers. */
  readonly label: string;
}

/** Small line chart. A period without a value is a gap in the line; a value between two gaps is a dot. */
export function Sparkline({ periods, label }: SparklineProps) {
  const values = periods.flatMap(({ value }) => (value === null ? [] : [value]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (i: number): number => EDGE + (i / Math.max(1, periods.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value: number): number =>
    high === low ? HEIGHT / 2 : HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
  const points = periods.map(({ value }, i) =>
    value === null ? null : { x: round(x(i)), y: round(y(value)) },
  );
  const isAlone = (i: number): boolean =>
    (points[i - 1] ?? null) === null && (points[i + 1] ?? null) === null;
  const path = points
    .map((point, i) =>
      point === null ? '' : `${(points[i - 1] ?? null) === null ? 'M' : 'L'}${point.x} ${point.y}`,
    )
    .join('');
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={path} />
      {points.map((point, i) =>
        point !== null && (i === points.length - 1 || isAlone(i)) ? (
          <path
            key={periods[i]?.start}
            className={i === points.length - 1 ? 'sparkline-last' : 'sparkline-dot'}
            d={`M${point.x} ${point.y}h0.01`}
          />
        ) : null,
      )}
    </svg>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
