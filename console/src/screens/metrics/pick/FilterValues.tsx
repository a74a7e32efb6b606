import { useState } from 'react';
import type { Answer } from '../../../../../clients/typescript/types.js';
import { postJson } from '../../../api/http.js';
import { Dialog } from '../../../parts/Dialog.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { wordOf } from '../answer/columns.js';
import { type Filter, type FilterValue, OPERATORS, type Operator } from '../choice/choice.js';

export interface FilterValuesProps {
  readonly name: string;
  /** Metric by which the values are sorted, largest first. */
  readonly metric: string;
  readonly filter: Filter | null;
  readonly onFilter: (filter: Filter | null) => void;
  readonly onClose: () => void;
}

const MOST = 200;

/** Values of a dimension, from a governed query, so that users can select only values that they may see. */
export function FilterValues({ name, metric, filter, onFilter, onClose }: FilterValuesProps) {
  const { caller } = useSession();
  const [term, setTerm] = useState('');
  const state = useLoad(`${metric} ${name}`, (signal) => {
    const body = { metrics: [metric], group_by: [name], order_by: [`-${metric}`], limit: MOST };
    return postJson<Answer>(caller, '/osl/query', body, { signal });
  });
  const column = state.value?.columns[0];
  const values = state.value?.rows.map((row) => row[column?.name ?? ''] ?? null) ?? null;
  const [operator, setOperator] = useState<Operator>(filter?.operator ?? 'is');
  const picked = filter?.values ?? [];
  const set = (next: Operator, values: readonly FilterValue[]): void => {
    setOperator(next);
    const takesValues = next === 'is' || next === 'is_not';
    onFilter(
      takesValues && values.length === 0 ? null : { name, operator: next, values: takesValues ? values : [] },
    );
  };
  const shown = (values ?? [])
    .filter((v): v is FilterValue => v !== null && typeof v !== 'object')
    .filter((v) => wordOf(v).toLowerCase().includes(term.toLowerCase()));
  return (
    <Dialog title={`Filter by ${name}`} open onClose={onClose}>
      <div className="filter">
        <select
          aria-label="Condition"
          value={operator}
          onChange={(event) => set(OPERATORS.find((o) => o === event.target.value) ?? 'is', picked)}
        >
          <option value="is">is one of</option>
          <option value="is_not">is none of</option>
          <option value="empty">is empty</option>
          <option value="not_empty">is not empty</option>
        </select>
        <Loaded what="its values" state={state}>
          {() => null}
        </Loaded>
        {column?.redacted === true && (
          <p className="quiet">This column is masked for you, so its values are masked here too.</p>
        )}
        {values !== null && (operator === 'is' || operator === 'is_not') && (
          <>
            {values.length > 12 && (
              <input
                type="search"
                aria-label="Search values"
                placeholder="Search …"
                value={term}
                onChange={(e) => setTerm(e.target.value)}
              />
            )}
            <ul className="pick-list filter-values">
              {shown.map((value) => (
                <li key={`${typeof value} ${String(value)}`}>
                  <label className="pick-row">
                    <input
                      type="checkbox"
                      checked={picked.includes(value)}
                      onChange={() => set(operator, toggled(picked, value))}
                    />
                    {wordOf(value)}
                  </label>
                </li>
              ))}
            </ul>
            {values.length === MOST && (
              <p className="quiet">
                The first {MOST} by {metric}.
              </p>
            )}
          </>
        )}
        <button type="button" className="primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

function toggled(picked: readonly FilterValue[], value: FilterValue): readonly FilterValue[] {
  return picked.includes(value) ? picked.filter((v) => v !== value) : [...picked, value];
}
