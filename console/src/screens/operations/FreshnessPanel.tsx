import { adminGet } from '../../api/admin.js';
import type { Figures, Freshness } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { FactList } from '../../parts/FactList.js';
import { formatAge, formatCount, formatTime } from '../../parts/load/format.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';
import { numberColumns, PlainTable } from './Processes.js';

export function FreshnessPanel() {
  const { caller } = useSession();
  const state = useLoad('freshness', (signal) => adminGet<Freshness>(caller, '/admin/freshness', {}, signal));
  return (
    <Loaded what="the state of indexes and rollups" state={state}>
      {(value) => <Ages {...value} />}
    </Loaded>
  );
}

function Ages({ indexes, rollups, published, activation, versions }: Freshness) {
  const now = Date.now();
  return (
    <div className="stack wide">
      <section>
        <h3>Versions</h3>
        <FactList
          facts={[
            ['manifest', <code key="manifest">{versions.manifest}</code>],
            [
              'policy',
              <>
                <code>{versions.policy}</code>
                {activation !== null && (
                  <span className="quiet"> activation {activation} of the control database</span>
                )}
              </>,
            ],
            [
              'published',
              published === null
                ? 'nothing: the manifest file alone'
                : `version ${published.number}, ${formatTime(published.at).slice(0, 16)}`,
            ],
          ]}
        />
      </section>
      <section>
        <h3>Indexes of text</h3>
        {indexes.length === 0 && <p className="quiet">The manifest declares no facet.</p>}
        <ul className="ages">
          {indexes.map(({ facet, indexed_at }) => (
            <li key={facet}>
              <code>{facet}</code>
              {indexed_at === null ? (
                <span className="warning-text">unknown: has it been indexed?</span>
              ) : (
                <span title={indexed_at}>read {formatAge(indexed_at, now)} ago</span>
              )}
            </li>
          ))}
        </ul>
      </section>
      <section>
        <h3>Rollups</h3>
        {rollups === null && <p className="warning-text">Their database does not report it.</p>}
        {rollups?.length === 0 && <p className="quiet">The manifest declares none.</p>}
        <ul className="ages">
          {rollups?.map(({ rollup, entity, state, built_at, rows }) => (
            <li key={rollup}>
              <code>{rollup}</code> <span className="quiet">of {entity}</span>
              <span className={state === 'ready' ? '' : 'warning-text'}>{state}</span>
              {built_at !== null && (
                <span className="quiet">
                  built {formatAge(built_at, now)} ago{rows === null ? '' : `, ${formatCount(rows)} rows`}
                </span>
              )}
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

const COLUMNS = ['pending', 'delivered', 'failed', 'dead', 'dropped'] as const;

/** Delivery of lineage events to each receiver, and the events still waiting. */
export function LineagePanel({ figures: { lineage, lineage_lag } }: { readonly figures: Figures }) {
  if (lineage.length === 0)
    return (
      <Empty
        title="No lineage receivers configured"
        text="Set OSL_LINEAGE to send events about published versions and queries."
      />
    );
  return (
    <>
      <PlainTable label="Lineage receivers" columns={['receiver', ...numberColumns(...COLUMNS), 'state']}>
        {lineage.map((one) => (
          <tr key={one.endpoint}>
            <th scope="row">{one.endpoint}</th>
            {COLUMNS.map((name) => (
              <td key={name} className="number">
                {formatCount(one[name])}
              </td>
            ))}
            <td>{one.disabled ? 'wants no more (410)' : one.dead > 0 ? 'has dead letters' : 'is told'}</td>
          </tr>
        ))}
      </PlainTable>
      {lineage_lag !== null && lineage_lag > 0 && (
        <p className="quiet">{formatCount(lineage_lag)} records of the audit log are not events yet.</p>
      )}
    </>
  );
}
