import { useRef, useState } from 'react';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import type { LoadState } from '../../../parts/load/useLoad.js';
import { goTo } from '../../../shell/routes.js';
import { type Dashboard, type FileProblem, LONGEST_FILE, readDashboard } from './dashboard.js';
import { addressOf, type DashboardShelf } from './dashboard-shelf.js';

interface DashboardListProps {
  readonly shelf: DashboardShelf;
  /** Dashboards that the server lists for the caller. */
  readonly shared: LoadState<readonly Dashboard[]>;
}

/** The caller's dashboards and those that the server lists, and a button to import one from a file. */
export function DashboardList({ shelf, shared }: DashboardListProps) {
  const input = useRef<HTMLInputElement>(null);
  const [problems, setProblems] = useState<readonly FileProblem[]>([]);
  const [fault, setFault] = useState('');
  const take = async (file: File): Promise<void> => {
    // A character has at most 4 bytes, so a larger file has too many characters and need not be read.
    const text = file.size > 4 * LONGEST_FILE ? ' '.repeat(LONGEST_FILE + 1) : await file.text();
    const reading = readDashboard(text);
    setFault('');
    if (reading.kind === 'refused') return setProblems(reading.problems);
    setProblems([]);
    const { dashboard } = reading;
    const refusal = shelf.save(dashboard);
    if (refusal !== null) return setFault(refusal);
    goTo(addressOf('dashboard', dashboard.title));
  };
  return (
    <section className="row dashboards" aria-label="Dashboards">
      <h3>Dashboards</h3>
      <ul className="row">
        {shelf.dashboards.map(({ title, panels }) => (
          <Entry key={`own ${title}`} kind="dashboard" title={title} about={count(panels.length)} />
        ))}
        {shared.value?.map(({ title, panels }) => (
          <Entry
            key={`shared ${title}`}
            kind="shared"
            title={title}
            about={`shared · ${count(panels.length)}`}
          />
        ))}
      </ul>
      {shared.error !== null && <ErrorBox error={shared.error} again={shared.again} />}
      {shelf.dashboards.length === 0 && shared.value?.length === 0 && (
        <p className="quiet">None yet: open a metric and choose “Add to dashboard”.</p>
      )}
      <button type="button" onClick={() => input.current?.click()}>
        Import a file
      </button>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        aria-label="Dashboard file"
        hidden
        onChange={(event) => {
          const file = event.target.files?.[0];
          event.target.value = '';
          if (file !== undefined) void take(file);
        }}
      />
      {problems.length > 0 && <ProblemList problems={problems} />}
      {fault !== '' && <p role="alert">{fault}</p>}
    </section>
  );
}

function count(panels: number): string {
  return panels === 1 ? '1 panel' : `${panels} panels`;
}

interface EntryProps {
  readonly kind: 'dashboard' | 'shared';
  readonly title: string;
  readonly about: string;
}

function Entry({ kind, title, about }: EntryProps) {
  return (
    <li>
      <button type="button" onClick={() => goTo(addressOf(kind, title))}>
        {title} <span className="quiet">{about}</span>
      </button>
    </li>
  );
}

const MOST_PROBLEMS = 20;

/** Lists the faults in a dashboard's file, each with its path. */
export function ProblemList({ problems }: { readonly problems: readonly FileProblem[] }) {
  return (
    <div className="error-box" role="alert">
      <p className="error-words">This is not a valid dashboard.</p>
      <ul>
        {problems.slice(0, MOST_PROBLEMS).map(({ at, text }) => (
          <li key={`${at} ${text}`}>
            <code>{at === '' ? 'the file' : at}</code> {text}
          </li>
        ))}
      </ul>
      {problems.length > MOST_PROBLEMS && (
        <p className="quiet">{`and ${problems.length - MOST_PROBLEMS} more`}</p>
      )}
    </div>
  );
}
