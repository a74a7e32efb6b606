import { useReducer, useState } from 'react';
import { CopyText, download } from '../../../parts/CopyText.js';
import { Dialog } from '../../../parts/Dialog.js';
import { Empty } from '../../../parts/Empty.js';
import { goTo, isOwn, trust } from '../../../shell/routes.js';
import { useSession } from '../../../shell/session.js';
import { forgetAnswers } from '../answer/session-answers.js';
import type { CatalogThread } from '../catalog/protocol.js';
import type { Choice } from '../choice/choice.js';
import { type Dashboard, type DashboardPanel, fileOf, LONGEST_LINK } from './dashboard.js';
import { addressOf, type DashboardShelf, linkTo } from './dashboard-shelf.js';
import { PanelView } from './PanelView.js';

interface DashboardViewProps {
  readonly thread: CatalogThread;
  readonly dashboard: Dashboard;
  /** True if the dashboard is kept in this browser and can be changed. */
  readonly isKept: boolean;
  readonly shelf: DashboardShelf;
  readonly onOpen: (choice: Choice) => void;
}

/** Shows a dashboard. If its address was not created by this page, no query runs until the user starts it. */
export function DashboardView({ thread, dashboard, isKept, shelf, onOpen }: DashboardViewProps) {
  const { caller } = useSession();
  const [, agreed] = useReducer((n: number) => n + 1, 0);
  const [turn, refresh] = useReducer((n: number) => n + 1, 0);
  const [fault, setFault] = useState('');
  const { title, panels } = dashboard;
  if (!isOwn(location.hash))
    return (
      <Empty
        title={title}
        text={`This dashboard came from a link and has ${panels.length === 1 ? 'one panel' : `${panels.length} panels`}. Its queries run with your access, and are recorded as yours, once you start it.`}
      >
        <button
          type="button"
          className="primary"
          onClick={() => {
            trust(location.hash);
            agreed();
          }}
        >
          Show it
        </button>
      </Empty>
    );
  const today = new Date().toISOString().slice(0, 10);
  const keep = (next: readonly DashboardPanel[]): void =>
    setFault(shelf.save({ ...dashboard, panels: next }) ?? '');
  return (
    <div className="dashboard">
      <DashboardBar
        dashboard={dashboard}
        isKept={isKept}
        shelf={shelf}
        onRefresh={() => {
          forgetAnswers(caller);
          refresh();
        }}
      />
      {fault !== '' && <p role="alert">{fault}</p>}
      <div className="panels">
        {panels.map((panel, i) => (
          <PanelView
            // biome-ignore lint/suspicious/noArrayIndexKey: panels may be equal.
            key={`${i} ${panel.title}`}
            thread={thread}
            panel={panel}
            today={today}
            turn={turn}
            onOpen={onOpen}
            change={
              isKept && panels.length > 0
                ? {
                    move: (by) => keep(moved(panels, i, by)),
                    remove: () => (panels.length === 1 ? shelf.forget(title) : keep(panels.toSpliced(i, 1))),
                  }
                : null
            }
          />
        ))}
      </div>
    </div>
  );
}

function moved(panels: readonly DashboardPanel[], at: number, by: -1 | 1): readonly DashboardPanel[] {
  const panel = panels[at];
  const to = at + by;
  if (panel === undefined || to < 0 || to >= panels.length) return panels;
  return panels.toSpliced(at, 1).toSpliced(to, 0, panel);
}

interface DashboardBarProps {
  readonly dashboard: Dashboard;
  readonly isKept: boolean;
  readonly shelf: DashboardShelf;
  readonly onRefresh: () => void;
}

function DashboardBar({ dashboard, isKept, shelf, onRefresh }: DashboardBarProps) {
  const [isSharing, setSharing] = useState(false);
  const [said, setSaid] = useState('');
  const { title } = dashboard;
  const keep = (): void => {
    const refusal = shelf.save(dashboard);
    if (refusal === null) goTo(addressOf('dashboard', title));
    else setSaid(refusal);
  };
  return (
    <header className="dashboard-bar">
      <a href="#/metrics">All metrics</a>
      <h2>{title}</h2>
      <span role="status" className="quiet">
        {said}
      </span>
      <fieldset className="answer-copies">
        <legend className="hidden">Dashboard</legend>
        <button type="button" onClick={onRefresh}>
          Refresh
        </button>
        <button type="button" onClick={() => setSharing(true)}>
          Share link
        </button>
        <button
          type="button"
          onClick={() => download(`${fileName(title)}.json`, `${jsonOf(dashboard)}\n`, 'application/json')}
        >
          Save file
        </button>
        {isKept ? (
          <button
            type="button"
            onClick={() => {
              shelf.forget(title);
              goTo('#/metrics');
            }}
          >
            Delete
          </button>
        ) : (
          <button type="button" onClick={keep}>
            Keep a copy
          </button>
        )}
      </fieldset>
      {isSharing && <ShareDialog dashboard={dashboard} onClose={() => setSharing(false)} />}
    </header>
  );
}

function jsonOf(dashboard: Dashboard): string {
  return JSON.stringify(fileOf(dashboard), null, 2);
}

function fileName(title: string): string {
  return title.replaceAll(/[^\w-]+/g, '-').slice(0, 60) || 'dashboard';
}

interface ShareDialogProps {
  readonly dashboard: Dashboard;
  readonly onClose: () => void;
}

function ShareDialog({ dashboard, onClose }: ShareDialogProps) {
  const link = linkTo(dashboard, location.origin);
  return (
    <Dialog title="Link" open onClose={onClose}>
      <div className="stack">
        {link.length > LONGEST_LINK ? (
          <p>
            {`The link would have ${link.length.toLocaleString('en')} characters; at most ${LONGEST_LINK.toLocaleString('en')} work everywhere. Save the dashboard as a file instead.`}
          </p>
        ) : (
          <CopyText label="Link" text={link} />
        )}
        <p className="quiet">
          It holds the queries, no answers and no token: whoever opens it sees what their own rights show.
        </p>
      </div>
    </Dialog>
  );
}
