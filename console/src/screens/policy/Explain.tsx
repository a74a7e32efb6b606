import { useEffect, useState } from 'react';
import type { AccessExplanation } from '../../../../clients/typescript/types.js';
import { adminPost } from '../../api/admin.js';
import { Words } from '../../parts/ErrorBox.js';
import { FactList } from '../../parts/FactList.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { VisibilityPill } from '../../parts/Visibility.js';
import { useSession } from '../../shell/session.js';

export interface ExplainedCell {
  readonly object: string;
  readonly chain: readonly string[];
}

/** Explains how a subject sees a column and, if a row is given, the cells of that row. */
export function Explain({ cell, onClose }: { readonly cell: ExplainedCell; readonly onClose: () => void }) {
  const { caller } = useSession();
  const [row, setRow] = useState<readonly string[] | null>(null);
  const key = JSON.stringify(cell);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new cell starts without a row.
  useEffect(() => setRow(null), [cell.object, cell.chain]);
  const state = useLoad(key, () =>
    adminPost<AccessExplanation>(caller, '/osl/access/explain', {
      object: cell.object,
      chain: cell.chain,
    }),
  );
  return (
    <aside className="aside" aria-label="Why" aria-busy={state.isLoading}>
      <header>
        <div>
          <h2>Why?</h2>
          <p className="why-who">
            {cell.chain.join(' → ')} <span className="quiet">sees</span> <code>{cell.object}</code>
          </p>
        </div>
        <button type="button" className="plain" onClick={onClose} aria-label="Close the explanation">
          ✕
        </button>
      </header>
      <Loaded what="the reason" state={state}>
        {(value) => <Reasons value={value} />}
      </Loaded>
      <RowQuestion onAsk={setRow} />
      {row !== null && <RowCells {...cell} row={row} />}
    </aside>
  );
}

function Reasons({ value }: { readonly value: AccessExplanation }) {
  const { sees, label, mask, because, grants, taken_away_by } = value;
  return (
    <>
      <p className="row">
        <VisibilityPill sight={sees} />
        {label !== null && (
          <span>
            label <code>{label}</code>
            {mask !== null && (
              <>
                , masked by <code>{mask}</code>
              </>
            )}
          </span>
        )}
      </p>
      <ul className="why-because">
        {because.map((line) => (
          <li key={line}>
            <Words text={line} />
          </li>
        ))}
      </ul>
      {taken_away_by.length > 0 && (
        <section>
          <h3>Restricted by</h3>
          <ul className="why-taken">
            {taken_away_by.map(({ subject, would_see }) => (
              <li key={subject}>
                <strong>{subject}</strong>: without it, it would be <VisibilityPill sight={would_see} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h3>{grants.length === 0 ? 'No grant bears on it' : 'Grants'}</h3>
        {grants.map((grant) => (
          <Grant key={grant.id} grant={grant} />
        ))}
      </section>
    </>
  );
}

function Grant({ grant }: { readonly grant: AccessExplanation['grants'][number] }) {
  const { rule, columns, rows, unmask, min_group_size, conditions, counts, lacking } = grant;
  return (
    <div className={`grant${counts ? '' : ' grant-off'}`}>
      <p className="grant-rule">
        <code>{rule}</code> <span className="quiet">{counts ? 'counts' : 'does not count now'}</span>
      </p>
      <FactList
        facts={[
          ['columns', typeof columns === 'string' ? 'all' : columns.join(', ')],
          ['rows', rows === null ? 'all' : <code key="rows">{rows}</code>],
          ['unmasks', unmask.length === 0 ? null : unmask.join(', ')],
          ['groups of', min_group_size === null ? null : `${min_group_size} at least`],
          ['only', conditions === null ? null : <code key="only">{JSON.stringify(conditions)}</code>],
        ]}
      />
      {lacking.map(({ subject, attribute }) => (
        <p key={`${subject} ${attribute}`} className="grant-lacks">
          {subject} has no attribute <code>{attribute}</code>
        </p>
      ))}
    </div>
  );
}

/** Form for checking whether the subject can see a row, identified by its primary key. */
function RowQuestion({ onAsk }: { readonly onAsk: (row: readonly string[] | null) => void }) {
  const [text, setText] = useState('');
  return (
    <section>
      <h3>One row</h3>
      <form
        className="why-row"
        onSubmit={(event) => {
          event.preventDefault();
          onAsk(text.trim() === '' ? null : text.split(',').map((part) => part.trim()));
        }}
      >
        <label className="hidden" htmlFor="why-key">
          Primary key of a row
        </label>
        <input
          id="why-key"
          value={text}
          placeholder="primary key"
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit">Check access</button>
      </form>
    </section>
  );
}

type ExplainedGrant = AccessExplanation['grants'][number];

interface RowCellsProps {
  /** Full name of a column of the row's entity. */
  readonly object: string;
  readonly chain: readonly string[];
  /** Values of the primary key, in the order of its columns. */
  readonly row: readonly string[];
}

/** Cells of a row as the subject sees them, with their grants; or a message that the row is not visible. */
function RowCells({ object, chain, row }: RowCellsProps) {
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
