import { ProblemError, postJson } from '../../../api/http.js';
import { errorText, Words } from '../../../parts/ErrorBox.js';
import { useSession } from '../../../shell/session.js';
import { shownFigure } from '../answer/columns.js';
import { type QueuedAnswer, useInView, useQueuedAnswer } from '../answer/session-answers.js';
import type { CatalogMetric } from '../catalog/protocol.js';
import {
  type CardFigure,
  type CardGrain,
  type CardPeriod,
  cardFigure,
  changeBetween,
  periodName,
} from './card-figure.js';

interface MetricCardProps {
  readonly metric: CatalogMetric;
  readonly grain: CardGrain | 'auto';
  /** Today in UTC, the time zone of metrics. */
  readonly today: string;
  readonly turn: number;
  readonly isPicked: boolean;
  readonly onPick: () => void;
  /** Called with the grain of the card's line; null if the card has no line. */
  readonly onOpen: (grain: CardGrain | null) => void;
}

/** A metric with its last value, the change from the previous period, and a line chart of the last periods. */
export function MetricCard(props: MetricCardProps) {
  const { caller } = useSession();
  const { metric, grain, today, turn, isPicked, onPick, onOpen } = props;
  const [place, isInView] = useInView<HTMLLIElement>();
  const state = useQueuedAnswer<CardFigure>(caller, {
    key: `card ${grain} ${metric.name}`,
    isInView,
    turn,
    ask: () => cardFigure(metric, grain, today, (body) => postJson(caller, '/osl/query', body)),
  });
  const figure = state.kind === 'answered' ? state.answer : null;
  return (
    <li ref={place} className="metric-card" aria-busy={state.kind === 'waiting'}>
      <button
        type="button"
        className="box metric-card-open"
        onClick={() => onOpen(figure?.kind === 'series' ? figure.grain : null)}
      >
        <span className="metric-card-name">{metric.name}</span>
        <span className="metric-card-about">{metric.description ?? ''}</span>
        <CardState state={state} metric={metric} />
        <span className="metric-card-of">
          {metric.kind} · {metric.entity ?? 'several entities'}
          {metric.deprecated === null ? '' : ' · deprecated'}
        </span>
      </button>
      <label className="metric-card-pick">
        <input type="checkbox" checked={isPicked} onChange={onPick} aria-label={`Choose ${metric.name}`} />
      </label>
    </li>
  );
}

interface CardStateProps {
  readonly state: QueuedAnswer<CardFigure>;
  readonly metric: CatalogMetric;
}

function CardState({ state, metric }: CardStateProps) {
  switch (state.kind) {
    case 'waiting':
      return <span className="metric-card-figure is-waiting">…</span>;
    case 'failed':
      return <Refusal error={state.error} />;
    case 'answered':
      return <Figure figure={state.answer} metric={metric} />;
  }
}

/** Shows the gateway's error instead of a figure. */
function Refusal({ error }: { readonly error: unknown }) {
  return (
    <span className="metric-card-why">
      {error instanceof ProblemError && <code>{error.problem.code} </code>}
      <Words text={errorText(error)} />
    </span>
  );
}

interface CardFigureProps {
  readonly figure: CardFigure;
  readonly metric: CatalogMetric;
}

function Figure({ figure, metric }: CardFigureProps) {
  switch (figure.kind) {
    case 'none':
      return (
        <span className="metric-card-why">
          No rows that you may see, or no group large enough to be shown.
        </span>
      );
    case 'total':
      return (
        <>
          <span className="metric-card-figure">{shownFigure(figure.value, metric.format) || '—'}</span>
          <span className="metric-card-change">over all rows: {metric.name} has no time</span>
          <Notes notes={figure.notes} />
        </>
      );
    case 'series':
      return <Series figure={figure} metric={metric} />;
  }
}

const ARROWS = { up: '▲', down: '▼', same: '=' } as const;

interface SeriesProps extends CardFigureProps {
  readonly figure: Extract<CardFigure, { readonly kind: 'series' }>;
}

function Series({ figure, metric }: SeriesProps) {
  const { periods, grain, last, notes } = figure;
  const [now, before] = [periods.at(-1), periods.at(-2)];
  const change = changeBetween(now?.value ?? null, before?.value ?? null, metric.format);
  const beforeName = before === undefined ? null : periodName(before.start, grain);
  return (
    <>
      <span className="metric-card-figure">
        {shownFigure(last, metric.format) || '—'}
        <span className="metric-card-period">{now === undefined ? '' : periodName(now.start, grain)}</span>
      </span>
      <span className="metric-card-change">
        {change === null ? (
          beforeName !== null && before?.value === null && `no value for ${beforeName}`
        ) : (
          <>
            <span aria-hidden="true">{ARROWS[change.direction]} </span>
            {change.text} since {beforeName}
          </>
        )}
      </span>
      {periods.some(({ value }) => value !== null) && (
        <Sparkline periods={periods} label={lineWords(figure, metric)} />
      )}
      <Notes notes={notes} />
    </>
  );
}

function Notes({ notes }: { readonly notes: readonly string[] }) {
  return notes.map((note) => (
    <span key={note} className="metric-card-note">
      {note}
    </span>
  ));
}

/** Describes the line in words, for screen readers. */
function lineWords({ periods, grain }: SeriesProps['figure'], { format }: CatalogMetric): string {
  const known = periods.filter((p): p is CardPeriod & { readonly value: number } => p.value !== null);
  const [first] = known;
  if (first === undefined) return 'no values';
  const named = ({ start, value }: CardPeriod): string =>
    `${shownFigure(value, format)} in ${periodName(start, grain)}`;
  const low = known.reduce((a, b) => (b.value < a.value ? b : a), first);
  const high = known.reduce((a, b) => (b.value > a.value ? b : a), first);
  const gaps = periods.length - known.length;
  const words = [`${periods.length} ${grain}s`, `lowest ${named(low)}`, `highest ${named(high)}`];
  return [...words, ...(gaps === 0 ? [] : [`no value in ${gaps} of them`])].join(', ');
}

const WIDTH = 240;
const HEIGHT = 48;
const EDGE = 4;

interface SparklineProps {
  readonly periods: readonly CardPeriod[];
  /** Describes the line for screen readers. */
  readonly label: string;
}

/** Small line chart. A period without a value is a gap in the line; a value between two gaps is a dot. */
function Sparkline({ periods, label }: SparklineProps) {
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
