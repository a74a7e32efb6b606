import type { AccessExplanation } from '../../../../clients/typescript/types.js';
import { adminPost } from '../../api/admin.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { VisibilityPill } from '../../parts/sight/Visibility.js';
import { useSession } from '../../shell/session.js';

type ExplainedGrant = AccessExplanation['grants'][number];

interface RowCellsProps {
  /** A column of the row's entity. */
  readonly object: string;
  readonly chain: readonly string[];
  /** Primary key. */
  readonly row: readonly string[];
}

/** Cells of one row for the subject, with the grants that open them, or that it sees no such row. */
export function RowCells({ object, chain, row }: RowCellsProps) {
  const { caller } = useSession();
  const relation = object.slice(0, object.lastIndexOf('.'));
  const state = useLoad(JSON.stringify([relation, chain, row]), () =>
    adminPost<AccessExplanation>(caller, '/osl/access/explain', { object: relation, chain, row }),
  );
  return (
    <Loaded what="the row" state={state}>
      {(value) => <Cells value={value} />}
    </Loaded>
  );
}

function Cells({ value }: { readonly value: AccessExplanation }) {
  if (value.row === null) return null;
  const { key, visible, shown_by, taken_away_by } = value.row;
  if (!visible)
    return (
      <p role="status">
        Row <code>{key.join(', ')}</code> is not seen, or there is none.{' '}
        {taken_away_by.length > 0 && `Restricted by ${taken_away_by.join(', ')}.`}
      </p>
    );
  const opening = value.grants.filter(({ rule }) => shown_by.includes(rule));
  return (
    <>
      <p role="status">
        Row <code>{key.join(', ')}</code> is seen, by {shown_by.join(', ')}.
      </p>
      <table className="row-cells" aria-label="Cells of the row">
        <thead>
          <tr>
            <th scope="col">cell</th>
            <th scope="col">opened by</th>
          </tr>
        </thead>
        <tbody>
          {value.columns
            .filter(({ sees }) => sees !== 'aggregates')
            .map(({ name, sees }) => {
              const covers = ({ columns }: ExplainedGrant): boolean =>
                columns === '*' || columns.includes(name);
              const grants = opening.filter(covers);
              const isComputed = !value.grants.some(covers);
              return (
                <tr key={name}>
                  <th scope="row">
                    {name} <VisibilityPill sight={grants.length === 0 && !isComputed ? 'nothing' : sees} />
                  </th>
                  <td>
                    {grants.length === 0 && (
                      <span className="quiet">
                        {isComputed ? 'computed from other columns' : 'no grant in this row'}
                      </span>
                    )}
                    {grants.map(({ rule, unmask }) => (
                      <div key={rule}>
                        <code>{rule}</code>
                        {unmask.length > 0 && <span className="quiet"> unmasks {unmask.join(', ')}</span>}
                      </div>
                    ))}
                  </td>
                </tr>
              );
            })}
        </tbody>
      </table>
    </>
  );
}
