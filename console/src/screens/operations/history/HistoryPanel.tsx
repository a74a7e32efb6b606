import { useMemo, useState } from 'react';
import { adminGet } from '../../../api/admin.js';
import type { History, SessionView } from '../../../api/admin-types.js';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import { Loading } from '../../../parts/load/Loaded.js';
import { useLoad, usePolling } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { type ChartGrouping, chartsOf, GROUPINGS } from './charts.js';
import { StepStatements } from './StepStatements.js';
import { type TimeAxis, TimeChartView } from './TimeChartView.js';
import './history.css';

const SPANS = [
  { name: 'hour', title: 'Last hour', pollMs: 5_000 },
  { name: 'day', title: 'Last day', pollMs: 30_000 },
] as const;
type HistorySpan = (typeof SPANS)[number]['name'];

interface GroupedHistory {
  readonly history: History;
  readonly by: ChartGrouping;
}

/** Questions, errors, latency and load of the last hour or day. Selecting a time step shows its statements. */
export function HistoryPanel({ sessions }: { readonly sessions: readonly SessionView[] }) {
  const { caller } = useSession();
  const [span, setSpan] = useState<HistorySpan>('hour');
  const [by, setBy] = useState<ChartGrouping>('all');
  /** Times in ms since 1970, not step indexes, because the index of a step changes as time passes. */
  const [pointed, setPointed] = useState<number | null>(null);
  const [chosen, setChosen] = useState<{ readonly at: number; readonly everyMs: number } | null>(null);
  const [last, setLast] = useState<GroupedHistory | null>(null);
  const { error, isLoading, again } = useLoad(`history ${span} ${by}`, async (signal) => {
    const history = await adminGet<History>(caller, '/admin/history', { span, by }, signal);
    setLast({ history, by });
    return history;
  });
  usePolling(
    () => {
      if (!isLoading) again();
    },
    SPANS.find(({ name }) => name === span)?.pollMs ?? null,
  );
  const charts = useMemo(() => (last === null ? [] : chartsOf(last.history, last.by)), [last]);
  const axis = last === null ? null : axisOf(last.history);
  return (
    <section className="stack" aria-label="Over time">
      <div className="row history-choices">
        <h3>Over time</h3>
        <Choice label="Span" options={SPANS} chosen={span} onChoose={setSpan} />
        <Choice label="Lines" options={GROUPINGS} chosen={by} onChoose={setBy} />
      </div>
      {error !== null && <ErrorBox error={error} again={again} />}
      {axis === null && error === null && <Loading what="the last hour" />}
      {axis !== null && (
        <div className="time-charts">
          {charts.map((chart) => (
            <TimeChartView
              key={chart.title}
              chart={chart}
              axis={{
                ...axis,
                pointed: pointed === null ? null : stepAt(pointed, axis),
                chosen: chosen === null ? null : stepAt(chosen.at, axis),
                onPoint: (step) => setPointed(step === null ? null : startOf(step, axis)),
                onChoose: (step) => setChosen({ at: startOf(step, axis), everyMs: axis.everyMs }),
              }}
            />
          ))}
        </div>
      )}
      {chosen === null ? (
        <p className="quiet">Click a chart, or press Enter on it, to see the statements of that minute.</p>
      ) : (
        <StepStatements {...chosen} sessions={sessions} onClose={() => setChosen(null)} />
      )}
    </section>
  );
}

type StepGrid = Pick<TimeAxis, 'from' | 'everyMs' | 'count'>;

function axisOf({ from, every_seconds, wire_sessions }: History): StepGrid {
  return { from: Date.parse(from), everyMs: 1_000 * every_seconds, count: wire_sessions.length };
}

function startOf(step: number, { from, everyMs }: StepGrid): number {
  return from + step * everyMs;
}

/** Returns the step that contains a time; null if that step is not shown. */
function stepAt(at: number, { from, everyMs, count }: StepGrid): number | null {
  const step = Math.floor((at - from) / everyMs);
  return step >= 0 && step < count ? step : null;
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly options: readonly { readonly name: T; readonly title: string }[];
  readonly chosen: T;
  readonly onChoose: (name: T) => void;
}

function Choice<T extends string>({ label, options, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset className="choice">
      <legend className="hidden">{label}</legend>
      {options.map(({ name, title }) => (
        <button key={name} type="button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {title}
        </button>
      ))}
    </fieldset>
  );
}
