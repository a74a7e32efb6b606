import { adminGet } from '../../../api/admin.js';
import type { SessionView, SlowStatement } from '../../../api/admin-types.js';
import { formatAge, formatCount, shortName } from '../../../parts/load/format.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad, usePolling } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { msText } from '../figures.js';
import { numberColumns, PlainTable } from '../Processes.js';
import { timeText } from './charts.js';

const MINUTE_MS = 60_000;

const COLUMNS = [
  ...numberColumns('took'),
  ...['ended', 'by'],
  { name: 'statement', look: 'wide-column' },
  ...numberColumns('rows'),
  ...['outcome', 'request'],
] as const;

interface StepStatementsProps {
  /** Start of the step in ms since 1970. */
  readonly at: number;
  readonly everyMs: number;
  readonly sessions: readonly SessionView[];
  readonly onClose: () => void;
}

/** The slowest statements in the minutes of a time step and, if the step is recent, the requests running now. */
export function StepStatements({ at, everyMs, sessions, onClose }: StepStatementsProps) {
  const { caller } = useSession();
  const from = MINUTE_MS * Math.floor(at / MINUTE_MS);
  const until = MINUTE_MS * Math.ceil((at + everyMs) / MINUTE_MS);
  const isCurrent = Date.now() < until + MINUTE_MS;
  const state = useLoad(`statements ${from} ${until}`, (signal) => {
    const times = { from: new Date(from).toISOString(), until: new Date(until).toISOString() };
    const path = '/admin/history/statements';
    return adminGet<{ readonly statements: readonly SlowStatement[] }>(caller, path, times, signal);
  });
  usePolling(state.again, isCurrent ? 5_000 : null);
  const running = isCurrent ? sessions.filter(({ state }) => state === 'active') : [];
  const end = until - from > MINUTE_MS ? ` to ${timeText(until, MINUTE_MS)}` : '';
  return (
    <section className="stack step-statements" aria-label="Statements of the chosen time">
      <div className="row history-choices">
        <h3>
          {timeText(from, MINUTE_MS)}
          {end}
        </h3>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      {running.length > 0 && <Running sessions={running} />}
      <h4>Slowest statements</h4>
      <Loaded what="statements" state={state}>
        {({ statements }) => <Statements statements={statements} />}
      </Loaded>
    </section>
  );
}

function Running({ sessions }: { readonly sessions: readonly SessionView[] }) {
  const now = Date.now();
  return (
    <>
      <h4>Running now</h4>
      <ul className="stack running">
        {sessions.map((session) => (
          <li key={session.id}>
            <strong>{formatAge(session.state_since, now)}</strong> {session.subject ?? 'not known yet'}{' '}
            <span className="quiet">{session.surface}</span>{' '}
            <code>{session.shape ?? session.objects.map(shortName).join(', ')}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

function Statements({ statements }: { readonly statements: readonly SlowStatement[] }) {
  if (statements.length === 0)
    return <p className="quiet">None is kept: no statement ended then, or it is over a day ago.</p>;
  return (
    <>
      <PlainTable label="Slowest statements" columns={COLUMNS}>
        {statements.map((one) => (
          <tr key={`${one.process} ${one.request_id} ${one.at}`}>
            <th scope="row" className="number">
              {msText(one.duration_ms)}
            </th>
            <td>{timeText(Date.parse(one.at), 1_000)}</td>
            <td>
              {one.surface} <span className="quiet">{one.process}</span>
            </td>
            <td className="shape" title={one.shape}>
              {one.shape}
            </td>
            <td className="number">{formatCount(one.rows)}</td>
            <td>
              {one.outcome} {one.code !== null && <code>{one.code}</code>}
            </td>
            <td>
              <code>{one.request_id}</code>
            </td>
          </tr>
        ))}
      </PlainTable>
      <p className="quiet">
        Each process keeps the five slowest of each minute of the last hour, and the slowest of each older
        minute of the last day. The audit log has who asked, by the ID of the request.
      </p>
    </>
  );
}
