import { useState } from 'react';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
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
    <div className={`matrix-screen${cell === null ? '' : ' matrix-with-why'}`}>
      <div className="matrix-side">
        <MatrixFilterBar filter={filter} onChange={change} />
        {error !== null && (
          <div className="policy-pad">
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
          <p className="matrix-foot quiet" role="status">
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

function MatrixFilterBar({ filter, onChange }: MatrixFilterBarProps) {
  return (
    <search className="bar" aria-label="Filter the matrix">
      <label className="bar-field bar-wide">
        <span>Column</span>
        <input
          type="search"
          value={filter.object}
          placeholder="email, person., osl.entities.…"
          onChange={(event) => onChange({ ...filter, object: event.target.value })}
        />
      </label>
      <label className="bar-field">
        <span>Subject</span>
        <input
          type="search"
          value={filter.subject}
          placeholder="user:, agent:…"
          onChange={(event) => onChange({ ...filter, subject: event.target.value })}
        />
      </label>
      <label className="bar-field">
        <span>Who sees it</span>
        <select
          value={filter.sees}
          onChange={(event) => {
            const sees = (['', 'anything', ...VISIBILITIES] as const).find(
              (one) => one === event.target.value,
            );
            onChange({ ...filter, sees: sees ?? '' });
          }}
        >
          <option value="">all subjects</option>
          <option value="anything">in some way</option>
          {VISIBILITIES.map((sight) => (
            <option key={sight} value={sight}>
              {VISIBILITY_WORDS[sight].how}
            </option>
          ))}
        </select>
      </label>
      <label className="bar-field bar-wide">
        <span>Acting for somebody</span>
        <input
          value={filter.chain}
          placeholder="user:counsel > agent:scout"
          onChange={(event) => onChange({ ...filter, chain: event.target.value })}
        />
      </label>
    </search>
  );
}
