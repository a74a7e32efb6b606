import { useId } from 'react';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import { Loading } from '../../../parts/load/Loaded.js';
import { useSession } from '../../../shell/session.js';
import { DrillableAnswer } from '../answer/DrillableAnswer.js';
import { type QueuedAnswer, useInView, useQueuedAnswer } from '../answer/session-answers.js';
import { askMetrics, type MetricsAnswer } from '../answer/useMetricsAnswer.js';
import type { CatalogThread } from '../catalog/protocol.js';
import { type Choice, linkOf } from '../choice/choice.js';
import { choiceOn, type DashboardPanel, type PanelForm } from './dashboard.js';

interface PanelViewProps {
  readonly thread: CatalogThread;
  readonly panel: DashboardPanel;
  /** Today in UTC, the time zone of metrics. */
  readonly today: string;
  readonly turn: number;
  readonly onOpen: (choice: Choice) => void;
  /** Callbacks that move or remove the panel; null if the dashboard cannot be changed. */
  readonly change: { readonly move: (by: -1 | 1) => void; readonly remove: () => void } | null;
}

/** A panel of a dashboard, which queries its metrics once it comes into view. */
export function PanelView({ thread, panel, today, turn, onOpen, change }: PanelViewProps) {
  const { caller } = useSession();
  const id = useId();
  const [place, isInView] = useInView<HTMLElement>();
  const choice = choiceOn(panel, today);
  const state = useQueuedAnswer<MetricsAnswer>(caller, {
    key: `panel ${linkOf(choice)}`,
    isInView,
    turn,
    ask: () => askMetrics(caller, choice),
  });
  return (
    <section ref={place} className="box panel" aria-labelledby={id} aria-busy={state.kind === 'waiting'}>
      <header>
        <h3 id={id}>{panel.title}</h3>
        <span className="panel-tools">
          <button type="button" className="plain" onClick={() => onOpen(choice)}>
            Open<span className="hidden"> {panel.title}</span>
          </button>
          {change !== null && (
            <>
              <Tool label={`Move ${panel.title} up`} sign="↑" onClick={() => change.move(-1)} />
              <Tool label={`Move ${panel.title} down`} sign="↓" onClick={() => change.move(1)} />
              <Tool label={`Remove ${panel.title}`} sign="✕" onClick={change.remove} />
            </>
          )}
        </span>
      </header>
      {panel.period !== null && <p className="panel-about">{panel.period}</p>}
      <PanelAnswer thread={thread} state={state} show={panel.show} />
    </section>
  );
}

interface ToolProps {
  readonly label: string;
  readonly sign: string;
  readonly onClick: () => void;
}

function Tool({ label, sign, onClick }: ToolProps) {
  return (
    <button type="button" className="plain" aria-label={label} title={label} onClick={onClick}>
      {sign}
    </button>
  );
}

interface PanelAnswerProps {
  readonly thread: CatalogThread;
  readonly state: QueuedAnswer<MetricsAnswer>;
  readonly show: PanelForm;
}

function PanelAnswer({ thread, state, show }: PanelAnswerProps) {
  switch (state.kind) {
    case 'waiting':
      return <Loading what="the answer" />;
    case 'failed':
      return <ErrorBox error={state.error} again={state.again} />;
    case 'answered':
      return <DrillableAnswer thread={thread} ground={null} asked={state.answer} show={show} />;
  }
}
