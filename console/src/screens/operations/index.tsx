import { adminGet } from '../../api/admin.js';
import type { Figures, PoolView, ProcessView, SessionView } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { FigureCard } from '../../parts/FigureCard.js';
import { formatCount } from '../../parts/load/format.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad, usePolling } from '../../parts/load/useLoad.js';
import { KeptTabs } from '../../parts/Tabs.js';
import { useSession } from '../../shell/session.js';
import { FreshnessPanel, LineagePanel } from './FreshnessPanel.js';
import { HistoryPanel } from './history/HistoryPanel.js';
import { Latency } from './Latency.js';
import { LimitsPanel } from './LimitsPanel.js';
import { numberColumns, PlainTable, Processes } from './Processes.js';
import { Sessions } from './Sessions.js';
import './operations.css';

interface Live {
  readonly processes: readonly ProcessView[];
  readonly sessions: readonly SessionView[];
  readonly pools: readonly PoolView[];
  readonly figures: Figures;
}

const EVERY_MS = 5_000;

/** Current state of the server, polled while the page is visible. */
export function Screen() {
  const { caller } = useSession();
  const state = useLoad('live', async (signal): Promise<Live> => {
    const { processes } = await adminGet<Pick<Live, 'processes'>>(caller, '/admin/standing', {}, signal);
    const { sessions } = await adminGet<Pick<Live, 'sessions'>>(caller, '/admin/sessions', {}, signal);
    const { pools } = await adminGet<Pick<Live, 'pools'>>(caller, '/admin/pools', {}, signal);
    const figures = await adminGet<Figures>(caller, '/admin/figures', {}, signal);
    return { processes, sessions, pools, figures };
  });
  // A new poll starts only after the last one has finished, so that requests to a slow server do not pile up.
  usePolling(() => {
    if (!state.isLoading) state.again();
  }, EVERY_MS);
  return (
    <div className="stack wide pad operations">
      <Loaded what="the state of the server" state={state}>
        {(live) => (
          <>
            <Summary live={live} />
            <Processes processes={live.processes} workers={live.figures.workers} />
            <HistoryPanel sessions={live.sessions} />
            <KeptTabs label="Operations" name="operations" tabs={tabsOf(live, state.again)} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function tabsOf(live: Live, again: () => void) {
  const { sessions, pools, figures } = live;
  return [
    { name: 'sessions', title: 'Sessions', panel: () => <Sessions sessions={sessions} onDone={again} /> },
    { name: 'latency', title: 'Latency', panel: () => <Latency figures={figures} /> },
    { name: 'pools', title: 'Pools', panel: () => <Pools pools={pools} /> },
    { name: 'limits', title: 'Limits', panel: () => <LimitsPanel sessions={sessions} figures={figures} /> },
    { name: 'freshness', title: 'Freshness', panel: () => <FreshnessPanel /> },
    { name: 'lineage', title: 'Lineage', panel: () => <LineagePanel figures={figures} /> },
  ];
}

function Summary({ live: { processes, sessions, pools, figures } }: { readonly live: Live }) {
  const asked = figures.requests.reduce((sum, { count }) => sum + count, 0);
  const refused = figures.requests.reduce((sum, r) => (r.decision === 'allow' ? sum : sum + r.count), 0);
  const waiting = pools.reduce((sum, pool) => sum + pool.waiting, 0);
  const failing = processes.some(({ audit }) => audit.failing !== null);
  return (
    <div className="figures">
      <FigureCard title="sessions and requests" figure={formatCount(sessions.length)} />
      <FigureCard title="requests since start" figure={formatCount(asked)} />
      <FigureCard title="refused" figure={formatCount(refused)} />
      <FigureCard title="waiting for the database" figure={formatCount(waiting)} bad={waiting > 0} />
      <FigureCard title="audit log" figure={failing ? 'failing' : 'healthy'} bad={failing} />
    </div>
  );
}

/** Database connections: maximum, open, in use, and the number of requests waiting for a connection. */
function Pools({ pools }: { readonly pools: readonly PoolView[] }) {
  if (pools.length === 0)
    return <Empty title="No connection pools" text="They appear here with the first query of a database." />;
  return (
    <PlainTable
      label="Pools"
      columns={['connector', 'process', 'for', 'in use', ...numberColumns('open', 'wait'), 'database']}
    >
      {pools.map((pool) => (
        <tr key={`${pool.process} ${nameOf(pool)} ${pool.purpose}`}>
          <th scope="row">{nameOf(pool)}</th>
          <td>{pool.process}</td>
          <td>{pool.purpose}</td>
          <td>
            <span className="row meter-line">
              <meter
                aria-label={`${nameOf(pool)} ${pool.purpose} in use`}
                value={pool.running}
                max={Math.max(1, pool.size)}
                high={Math.max(1, pool.size * 0.8)}
              />
              {pool.running} of {pool.size}
            </span>
          </td>
          <td className="number">{pool.open}</td>
          <td className="number">{pool.waiting}</td>
          <td>{REACH[pool.reach] ?? pool.reach}</td>
        </tr>
      ))}
    </PlainTable>
  );
}

/** Returns the connector, followed by the standby if the connections lead to one. */
function nameOf({ connector, standby }: PoolView): string {
  return standby === null ? connector : `${connector}/${standby}`;
}

const REACH: Readonly<Record<string, string>> = {
  open: 'answers',
  full: 'takes no more sessions',
  lost: 'does not answer',
};
