import type { PoolView } from '../../api/admin-types.js';
import { Scroll } from './Scroll.js';

/** Sessions with the databases: how many there may be, are open, run, and are waited for. */
export function Pools({ pools }: { readonly pools: readonly PoolView[] }) {
  return (
    <Scroll label="Pools">
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">connector</th>
            <th scope="col">process</th>
            <th scope="col">for</th>
            <th scope="col">in use</th>
            <th scope="col" className="number">
              open
            </th>
            <th scope="col" className="number">
              wait
            </th>
            <th scope="col">database</th>
          </tr>
        </thead>
        <tbody>
          {pools.map((pool) => (
            <tr key={`${pool.process} ${pool.connector} ${pool.purpose}`}>
              <th scope="row">{pool.connector}</th>
              <td>{pool.process}</td>
              <td>{pool.purpose}</td>
              <td>
                <span className="meter-line">
                  <meter
                    aria-label={`${pool.connector} ${pool.purpose} in use`}
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
        </tbody>
      </table>
    </Scroll>
  );
}

const REACH: Readonly<Record<string, string>> = {
  open: 'answers',
  full: 'takes no more sessions',
  lost: 'does not answer',
};
