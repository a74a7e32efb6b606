import { useState } from 'react';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { SelectField, TextField } from '../../parts/FilterFields.js';
import { formatCount } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useDebounced } from '../../parts/load/useLoad.js';
import { useKept } from '../../parts/useKept.js';
import { VISIBILITIES, VISIBILITY_WORDS } from '../../parts/Visibility.js';
import { useSession } from '../../shell/session.js';
import { Explain, type ExplainedCell } from './Explain.js';
import { MatrixGrid } from './MatrixGrid.js';
import { type MatrixFilter, NO_FILTER, useMatrix } from './matrix-filter.js';

/** Matrix of columns and subjects; selecting a cell explains it. */
export function Matrix() {
  const { caller } = useSession();
  const [filter, setFilter] = useKept<MatrixFilter>('matrix', NO_FILTER);
  /** Paging cursors of the subject pages visited after the first one; the current page is last. */
  const [starts, setStarts] = useState<readonly string[]>([]);
  const [cell, setCell] = useState<ExplainedCell | null>(null);
  const settled = useDebounced(filter);
  const state = useMatrix(caller, settled, starts.at(-1) ?? null);
  const { first, error } = state;
  const change = (next: MatrixFilter): void => {
    setFilter(next);
    setStarts([]);
  };
  return (
    <div className={`beside${cell === null ? '' : ' has-aside'}`}>
      <div className="beside-list">
        <MatrixFilterBar filter={filter} onChange={change} />
        {error !== null && (
          <div className="pad">
            <ErrorBox error={error} again={state.again} />
          </div>
        )}
        {first === null && error === null && <Loading what="who sees what" />}
        {first !== null && first.row_count === 0 && (
          <Empty title="No matching column" text="Try a part of its name, such as email, or of its entity." />
        )}
        {first !== null && first.row_count > 0 && first.subjects.length === 0 && (
          <Empty title="No matching subject" text="No subject of the policy matches. Change the filter." />
        )}
        {first !== null && first.row_count > 0 && first.subjects.length > 0 && (
          <MatrixGrid state={state} first={first} chosen={cell} onChoose={setCell} />
        )}
        {first !== null && (
          <p className="row list-foot quiet" role="status">
            <span>
              {formatCount(first.row_count)} columns, {formatCount(first.subject_count)} subjects
            </span>
            <span>▽ in some rows only</span>
            <span>
              {starts.length > 0 && (
                <button type="button" onClick={() => setStarts(starts.slice(0, -1))}>
                  Earlier subjects
                </button>
              )}
              {first.next_subject !== null && (
                <button type="button" onClick={() => setStarts([...starts, first.next_subject ?? ''])}>
                  Further subjects
                </button>
              )}
            </span>
          </p>
        )}
      </div>
      {cell !== null && <Explain cell={cell} onClose={() => setCell(null)} />}
    </div>
  );
}

interface MatrixFilterBarProps {
  readonly filter: MatrixFilter;
  readonly onChange: (filter: MatrixFilter) => void;
}

const SIGHTS: readonly (readonly [MatrixFilter['sees'], string])[] = [
  ['', 'all subjects'],
  ['anything', 'in some way'],
  ...VISIBILITIES.map((sight) => [sight, VISIBILITY_WORDS[sight].how] as const),
];

function MatrixFilterBar({ filter, onChange }: MatrixFilterBarProps) {
  return (
    <search className="bar" aria-label="Filter the matrix">
      <TextField
        title="Column"
        size="wide"
        hint="email, person., osl.entities.…"
        value={filter.object}
        onChange={(object) => onChange({ ...filter, object })}
      />
      <TextField
        title="Subject"
        hint="user:, agent:…"
        value={filter.subject}
        onChange={(subject) => onChange({ ...filter, subject })}
      />
      <SelectField
        title="Who sees it"
        options={SIGHTS}
        value={filter.sees}
        onChange={(sees) => onChange({ ...filter, sees })}
      />
      <TextField
        title="Acting for somebody"
        size="wide"
        hint="user:counsel > agent:scout"
        value={filter.chain}
        onChange={(chain) => onChange({ ...filter, chain })}
      />
    </search>
  );
}
