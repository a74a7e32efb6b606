import { useId, useState } from 'react';
import type { Answer } from '../../../../../clients/typescript/types.js';
import { postJson } from '../../../api/http.js';
import { Dialog } from '../../../parts/Dialog.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad, useThreadAnswer } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { wordOf } from '../answer/columns.js';
import type { CommonGroups } from '../catalog/common-groups.js';
import type { CatalogThread } from '../catalog/protocol.js';
import {
  type DayRange,
  type Filter,
  type FilterValue,
  OPERATORS,
  type Operator,
  oneOf,
  toggled,
} from '../choice/choice.js';
import { namedRanges } from '../choice/period.js';

interface FilterPickProps {
  readonly thread: CatalogThread;
  readonly ground: CommonGroups;
  readonly filters: readonly Filter[];
  readonly onFilters: (filters: readonly Filter[]) => void;
}

/** Maximum number of columns and of values that are offered. */
const MOST = 200;

/** Editor for filters. Users choose each value from those present in the data. */
export function FilterPick({ thread, ground, filters, onFilters }: FilterPickProps) {
  const id = useId();
  const [open, setOpen] = useState<string | null>(null);
  const { entities } = ground;
  const { answer } = useThreadAnswer(thread, 'offered', { entities, term: '', most: MOST });
  const offered = (answer?.first ?? []).filter((o) => o.filterable && !o.isTime);
  const metric = ground.metrics[0]?.name ?? null;
  const set = (name: string, filter: Filter | null): void => {
    const rest = filters.filter((f) => f.name !== name);
    onFilters(filter === null ? rest : [...rest, filter]);
  };
  return (
    <section className="pick" aria-labelledby={id}>
      <h3 id={id}>Filters</h3>
      <ul className="pick-filters">
        {filters.map((filter) => (
          <li key={filter.name}>
            <button type="button" className="pick-filter" onClick={() => setOpen(filter.name)}>
              {filterWords(filter)}
            </button>
            <button
              type="button"
              className="plain"
              aria-label={`Take away the filter ${filter.name}`}
              onClick={() => set(filter.name, null)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <select
        aria-label="Add a filter"
        value=""
        disabled={offered.length === 0}
        onChange={(event) => setOpen(event.target.value)}
      >
        <option value="">Add a filter …</option>
        {offered.map((o) => (
          <option key={o.name} value={o.name}>
            {o.name}
          </option>
        ))}
      </select>
      {(answer?.total ?? 0) > MOST && (
        <p className="quiet">{`The first ${MOST} of ${answer?.total.toLocaleString('en')} columns.`}</p>
      )}
      {open !== null && open !== '' && metric !== null && (
        <FilterValues
          key={open}
          name={open}
          metric={metric}
          filter={filters.find((f) => f.name === open) ?? null}
          onFilter={(filter) => set(open, filter)}
          onClose={() => setOpen(null)}
        />
      )}
    </section>
  );
}

interface RangePickProps {
  readonly range: DayRange;
  /** Today in UTC, the time zone of metrics. */
  readonly today: string;
  readonly onRange: (range: DayRange) => void;
}

/** Selects a range of days: a predefined one, or two days from a calendar. */
export function RangePick({ range, today, onRange }: RangePickProps) {
  const id = useId();
  const named = namedRanges(today);
  const at = named.findIndex(({ range: r }) => r.start === range.start && r.end === range.end);
  return (
    <section className="pick" aria-labelledby={id}>
      <h3 id={id}>Time</h3>
      <select
        aria-label="Time range"
        value={at}
        onChange={(event) => {
          const chosen = named[Number(event.target.value)];
          if (chosen !== undefined) onRange(chosen.range);
        }}
      >
        {at < 0 && <option value={-1}>From … to …</option>}
        {named.map(({ name }, i) => (
          <option key={name} value={i}>
            {name}
          </option>
        ))}
      </select>
      <div className="pick-days">
        <label>
          from
          <input
            type="date"
            value={range.start ?? ''}
            onChange={(e) => onRange({ ...range, start: e.target.value || null })}
          />
        </label>
        <label>
          to
          <input
            type="date"
            value={range.end ?? ''}
            onChange={(e) => onRange({ ...range, end: e.target.value || null })}
          />
        </label>
      </div>
    </section>
  );
}

/** Maximum number of values listed by name; the others are only counted. */
const NAMED = 3;

/** Describes a filter in words: `customer__region is eu, us`. */
function filterWords({ name, operator, values }: Filter): string {
  switch (operator) {
    case 'empty':
      return `${name} is empty`;
    case 'not_empty':
      return `${name} is not empty`;
    case 'is':
      return `${name} is ${listed(values)}`;
    case 'is_not':
      return `${name} is not ${listed(values)}`;
  }
}

function listed(values: readonly unknown[]): string {
  const named = values.slice(0, NAMED).map(wordOf).join(', ');
  return values.length > NAMED ? `${named} and ${values.length - NAMED} more` : named;
}

interface FilterValuesProps {
  readonly name: string;
  /** Metric by which the values are sorted, largest first. */
  readonly metric: string;
  readonly filter: Filter | null;
  readonly onFilter: (filter: Filter | null) => void;
  readonly onClose: () => void;
}

/** Values of a dimension, from a governed query, so that users can select only values that they may see. */
function FilterValues({ name, metric, filter, onFilter, onClose }: FilterValuesProps) {
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
      <div className="stack">
        <select
          aria-label="Condition"
          value={operator}
          onChange={(event) => set(oneOf(OPERATORS, event.target.value) ?? 'is', picked)}
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
