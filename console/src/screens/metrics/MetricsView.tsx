import { useMemo, useReducer, useState } from 'react';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { Loaded, Loading } from '../../parts/load/Loaded.js';
import { useAnswer, useThreadAnswer } from '../../parts/load/useLoad.js';
import { goTo, isOwn, trust, usePlace } from '../../shell/routes.js';
import { useSession } from '../../shell/session.js';
import { AnswerBar } from './answer/AnswerBar.js';
import { AnswerView } from './answer/AnswerView.js';
import { DrillableAnswer } from './answer/DrillableAnswer.js';
import { type MetricsAnswerState, useMetricsAnswer } from './answer/useMetricsAnswer.js';
import { Gallery } from './cards/Gallery.js';
import { type CommonGroups, findCommonGroups } from './catalog/common-groups.js';
import type { CatalogMetric, CatalogThread } from './catalog/protocol.js';
import {
  type Choice,
  choiceOf,
  keyOf,
  linkOf,
  NOTHING,
  toggled,
  withGroups,
  withMetrics,
} from './choice/choice.js';
import { AddDialog } from './dashboards/AddDialog.js';
import { DashboardList, ProblemList } from './dashboards/DashboardList.js';
import { DashboardView } from './dashboards/DashboardView.js';
import {
  type DashboardPlace,
  type DashboardShelf,
  dashboardAt,
  useSharedDashboards,
  useShelf,
} from './dashboards/dashboard-shelf.js';
import { FilterPick, RangePick } from './pick/FilterPick.js';
import { GroupList, PickList } from './pick/GroupList.js';

interface MetricsViewProps {
  readonly thread: CatalogThread;
}

const NO_GROUND: CommonGroups = { metrics: [], entities: [], hasTime: false };

export function MetricsView({ thread }: MetricsViewProps) {
  const { caller } = useSession();
  const { parameters } = usePlace();
  const choice = choiceOf(parameters.toString());
  const shelf = useShelf(caller.key);
  const shared = useSharedDashboards();
  const board = dashboardAt(parameters, shelf.dashboards, shared.value ?? []);
  const [isAdding, setAdding] = useState(false);
  const link = linkOf(choice);
  const [isPicking, setPicking] = useState(false);
  const [, agreed] = useReducer((n: number) => n + 1, 0);
  const mayAsk = choice.metrics.length === 0 || isOwn(location.hash);
  const state = useMetricsAnswer(caller, mayAsk ? choice : NOTHING, mayAsk ? link : '');
  const names = mayAsk ? choice.metrics.join('\n') : '';
  const find = useMemo(() => {
    const asked = names === '' ? [] : names.split('\n');
    // Superseded requests need not be aborted: `useAnswer` uses only the result of the last one.
    return () => findCommonGroups(caller, thread, asked, new AbortController().signal);
  }, [caller, thread, names]);
  const { answer: ground } = useAnswer(find);
  const go = (next: Choice): void => {
    goTo(`#/metrics?${linkOf(next)}`);
  };
  const toggle = (name: string): void => go(withMetrics(choice, toggled(choice.metrics, name)));
  if (board.kind === 'missing' && shared.value === null)
    return (
      <Loaded what="the dashboard" state={shared}>
        {() => null}
      </Loaded>
    );
  if (board.kind !== 'none') return <DashboardAt thread={thread} place={board} shelf={shelf} onOpen={go} />;
  if (choice.metrics.length === 0)
    return (
      <Gallery thread={thread} onOpen={go}>
        <DashboardList shelf={shelf} shared={shared} />
      </Gallery>
    );
  const today = new Date().toISOString().slice(0, 10);
  return (
    <div className={`metrics${isPicking ? ' is-picking' : ''}`}>
      <div className="metrics-picks">
        <MetricList thread={thread} picked={choice.metrics} onToggle={(metric) => toggle(metric.name)} />
        <GroupList
          thread={thread}
          ground={ground ?? NO_GROUND}
          groups={choice.groups}
          onGroups={(groups) => go(withGroups(choice, groups))}
        />
        {ground?.hasTime === true && (
          <RangePick range={choice.range} today={today} onRange={(range) => go({ ...choice, range })} />
        )}
        <FilterPick
          thread={thread}
          ground={ground ?? NO_GROUND}
          filters={choice.filters}
          onFilters={(filters) => go({ ...choice, filters })}
        />
      </div>
      <div className="metrics-answer">
        <button type="button" className="metrics-narrow" onClick={() => setPicking(!isPicking)}>
          {isPicking ? 'Show the answer' : 'Pick'}
        </button>
        <AnswerBar choice={choice} onChoice={go} onAdd={() => setAdding(true)} />
        {isAdding && <AddDialog choice={choice} shelf={shelf} onClose={() => setAdding(false)} />}
        {mayAsk ? (
          <Answered state={state} thread={thread} ground={ground} />
        ) : (
          <LinkedQuestion
            choice={choice}
            onAsk={() => {
              trust(location.hash);
              agreed();
            }}
          />
        )}
      </div>
    </div>
  );
}

interface DashboardAtProps {
  readonly thread: CatalogThread;
  readonly place: Exclude<DashboardPlace, { readonly kind: 'none' }>;
  readonly shelf: DashboardShelf;
  readonly onOpen: (choice: Choice) => void;
}

function DashboardAt({ thread, place, shelf, onOpen }: DashboardAtProps) {
  switch (place.kind) {
    case 'missing':
      return (
        <Empty title={place.title} text="There is no dashboard of this title here.">
          <a href="#/metrics">All metrics</a>
        </Empty>
      );
    case 'refused':
      return (
        <Empty title="This link has no valid dashboard">
          <ProblemList problems={place.problems} />
          <a href="#/metrics">All metrics</a>
        </Empty>
      );
    case 'found':
      return (
        <DashboardView
          key={location.hash}
          thread={thread}
          dashboard={place.dashboard}
          isKept={place.isKept}
          shelf={shelf}
          onOpen={onOpen}
        />
      );
  }
}

/** A query from a link, which runs only after the user confirms it. */
function LinkedQuestion({ choice, onAsk }: { readonly choice: Choice; readonly onAsk: () => void }) {
  const groups = choice.groups.map(keyOf);
  return (
    <Empty
      title={[choice.metrics.join(', '), ...(groups.length === 0 ? [] : [`by ${groups.join(', ')}`])].join(
        ' ',
      )}
      text="This query came from a link. It runs with your access, and is recorded as yours, once you start it."
    >
      <button type="button" className="primary" onClick={onAsk}>
        Ask it
      </button>
    </Empty>
  );
}

interface AnsweredProps {
  readonly state: MetricsAnswerState;
  readonly thread: CatalogThread;
  readonly ground: CommonGroups | null;
}

function Answered({ state, thread, ground }: AnsweredProps) {
  switch (state.kind) {
    case 'nothing':
      return null;
    case 'asking':
      return state.last === null ? <Loading what="the answer" /> : <AnswerView asked={state.last} isOld />;
    case 'failed':
      return <ErrorBox error={state.error} again={state.again} />;
    case 'answered':
      return <DrillableAnswer thread={thread} ground={ground} asked={state.asked} />;
  }
}

interface MetricListProps {
  readonly thread: CatalogThread;
  readonly picked: readonly string[];
  readonly onToggle: (metric: CatalogMetric) => void;
}

const MOST = 60;

function MetricList({ thread, picked, onToggle }: MetricListProps) {
  const [term, setTerm] = useState('');
  const { answer } = useThreadAnswer(thread, 'metrics', { term, most: MOST });
  return (
    <PickList
      title="Metrics"
      all={answer?.first ?? []}
      total={answer?.total ?? 0}
      term={term}
      onTerm={setTerm}
      nameOf={(m) => m.name}
      isPicked={(m) => picked.includes(m.name)}
      onToggle={onToggle}
      row={(m) => (
        <span className="pick-words" title={m.description ?? undefined}>
          <span className="pick-name">{m.name}</span>
          {m.deprecated !== null && <span className="tag">deprecated</span>}
          <span className="pick-about">{m.entity ?? 'several entities'}</span>
        </span>
      )}
      none="You have no metrics."
    />
  );
}
