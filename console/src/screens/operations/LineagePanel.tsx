import type { Figures } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { counted } from '../../parts/load/words.js';
import { Scroll } from './Scroll.js';

const COLUMNS = ['pending', 'delivered', 'failed', 'dead', 'dropped'] as const;

/** What receivers of lineage were told, and what waits for them. */
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
      <Scroll label="Lineage receivers">
        <table className="plain-table">
          <thead>
            <tr>
              <th scope="col">receiver</th>
              {COLUMNS.map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
              <th scope="col">state</th>
            </tr>
          </thead>
          <tbody>
            {lineage.map((one) => (
              <tr key={one.endpoint}>
                <th scope="row">{one.endpoint}</th>
                {COLUMNS.map((name) => (
                  <td key={name} className="number">
                    {counted(one[name])}
                  </td>
                ))}
                <td>
                  {one.disabled ? 'wants no more (410)' : one.dead > 0 ? 'has dead letters' : 'is told'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {lineage_lag !== null && lineage_lag > 0 && (
        <p className="quiet">{counted(lineage_lag)} records of the audit log are not events yet.</p>
      )}
    </>
  );
}
