import { useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { Figures, Limits, QuotaView, SessionView } from '../../api/admin-types.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatCount } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useDebounced, useLoad } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';
import { amountText, quotaName } from './figures.js';

interface LimitsPanelProps {
  readonly sessions: readonly SessionView[];
  readonly figures: Figures;
}

/** The policy's limits and their use, in total or for the subject that is entered. */
export function LimitsPanel({ sessions, figures }: LimitsPanelProps) {
  const { caller } = useSession();
  const [subject, setSubject] = useState('');
  const [task, setTask] = useState('');
  const settled = useDebounced(subject.trim());
  const settledTask = useDebounced(task.trim());
  const { value, error, again } = useLoad(`limits ${settled} ${settledTask}`, (signal) =>
    adminGet<Limits>(caller, '/admin/limits', { chain: settled, task: settledTask }, signal),
  );
  const names = [...new Set(sessions.map((session) => session.chain.join(',')))].filter(
    (name) => name !== '',
  );
  const hasTasks = value?.quotas.some(({ per }) => per === 'task') === true;
  const refused = figures.refusals.find(({ code }) => code === 'E4290')?.count ?? 0;
  return (
    <div className="stack wide">
      <label className="row limits-who">
        <span>Used by</span>
        <input
          type="search"
          list="limits-subjects"
          value={subject}
          placeholder="subject, or chain: user:ann,user:scout"
          onChange={(event) => setSubject(event.target.value)}
        />
        <datalist id="limits-subjects">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      {hasTasks && (
        <label className="row limits-who">
          <span>Task</span>
          <input
            type="search"
            value={task}
            placeholder="name of a task"
            onChange={(event) => setTask(event.target.value)}
          />
        </label>
      )}
      {error !== null && <ErrorBox error={error} fix={{ label: 'Try again', take: again }} />}
      {value === null && error === null && <Loading what="limits" />}
      {value !== null && (
        <>
          <section>
            <h3>In windows</h3>
            {value.quotas.length === 0 && <p className="quiet">The policy has none.</p>}
            <ul className="quotas">
              {value.quotas.map((quota) => (
                <Quota key={quotaName(quota)} quota={quota} />
              ))}
            </ul>
          </section>
          <section>
            <h3>Requests of one subject in a second</h3>
            <ul className="row codes">
              {value.per_second.map(({ bucket, most }) => (
                <li key={bucket} className="box">
                  {bucket} <strong>{formatCount(most)}</strong>
                </li>
              ))}
            </ul>
            <p className="quiet">
              {formatCount(refused)} requests were refused for a limit since the start (E4290).
            </p>
          </section>
        </>
      )}
    </div>
  );
}

function Quota({ quota }: { readonly quota: QuotaView }) {
  const { unit, most, used, per, renews_at } = quota;
  const name = quotaName(quota);
  return (
    <li className="quota">
      <span>{name}</span>
      {used === null ? (
        <span className="quiet">
          up to {amountText(unit, most)}; name a {per === 'task' ? 'subject and a task' : 'subject'} to see
          its use
        </span>
      ) : (
        <span className="row meter-line">
          <meter aria-label={name} value={Math.min(used, most)} max={most} high={most * 0.8} />
          {amountText(unit, used)} of {amountText(unit, most)}
          {renews_at !== null && (
            <span className="quiet">renews at {new Date(renews_at).toLocaleString()}</span>
          )}
        </span>
      )}
    </li>
  );
}
