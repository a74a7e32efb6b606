import { type FormEvent, useId, useState } from 'react';
import { Dialog } from '../../../parts/Dialog.js';
import { goTo } from '../../../shell/routes.js';
import { type Choice, keyOf, oneOf } from '../choice/choice.js';
import {
  type Dashboard,
  LONGEST_TITLE,
  MOST_PANELS,
  PANEL_FORMS,
  type PanelForm,
  panelOf,
} from './dashboard.js';
import { addressOf, type DashboardShelf } from './dashboard-shelf.js';

interface AddDialogProps {
  readonly choice: Choice;
  readonly shelf: DashboardShelf;
  readonly onClose: () => void;
}

const FORMS: Readonly<Record<PanelForm, string>> = {
  chart: 'chart',
  table: 'table',
  both: 'chart and table',
};

/** Dialog that adds the query as a panel to a new or existing dashboard kept in this browser. */
export function AddDialog({ choice, shelf, onClose }: AddDialogProps) {
  const list = useId();
  const [board, setBoard] = useState(shelf.dashboards[0]?.title ?? 'My dashboard');
  const [title, setTitle] = useState(titleFor(choice));
  const [show, setShow] = useState<PanelForm>('chart');
  const [fault, setFault] = useState('');
  const add = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = board.trim();
    const known = shelf.dashboards.find((one) => one.title === wanted);
    const today = new Date().toISOString().slice(0, 10);
    const panels = [...(known?.panels ?? []), panelOf(choice, title.trim(), show, today)];
    const next: Dashboard = { title: wanted, roles: known?.roles ?? [], panels };
    const refusal =
      panels.length > MOST_PANELS ? `A dashboard has at most ${MOST_PANELS} panels.` : shelf.save(next);
    if (refusal !== null) setFault(refusal);
    else {
      onClose();
      goTo(addressOf('dashboard', wanted));
    }
  };
  return (
    <Dialog title="Add to dashboard" open onClose={onClose}>
      <form className="stack add-panel" onSubmit={add}>
        <label>
          Dashboard
          <input
            required
            list={list}
            maxLength={LONGEST_TITLE}
            pattern=".*\S.*"
            value={board}
            onChange={(event) => setBoard(event.target.value)}
          />
        </label>
        <datalist id={list}>
          {shelf.dashboards.map((one) => (
            <option key={one.title} value={one.title} />
          ))}
        </datalist>
        <label>
          Title of the panel
          <input
            required
            maxLength={LONGEST_TITLE}
            pattern=".*\S.*"
            value={title}
            onChange={(event) => setTitle(event.target.value)}
          />
        </label>
        <label>
          Show
          <select
            value={show}
            onChange={(event) => setShow(oneOf(PANEL_FORMS, event.target.value) ?? 'chart')}
          >
            {PANEL_FORMS.map((one) => (
              <option key={one} value={one}>
                {FORMS[one]}
              </option>
            ))}
          </select>
        </label>
        {fault !== '' && <p role="alert">{fault}</p>}
        <p className="quiet">
          It is kept in this browser. A time range that has a name, such as “last 12 months”, moves with the
          days.
        </p>
        <button type="submit" className="primary">
          Add
        </button>
      </form>
    </Dialog>
  );
}

/** Returns a title for the query, such as `revenue by region, month`. */
function titleFor({ metrics, groups }: Choice): string {
  const by = groups.map((group) => group.grain ?? keyOf(group).split('__').at(-1));
  const words = metrics.join(', ') + (by.length === 0 ? '' : ` by ${by.join(', ')}`);
  return words.slice(0, LONGEST_TITLE);
}
