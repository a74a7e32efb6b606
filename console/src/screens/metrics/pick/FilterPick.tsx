import { useId, useMemo, useState } from 'react';
import { useAnswer } from '../../../parts/thread/queryable-thread.js';
import { wordOf } from '../answer/columns.js';
import type { CommonGroups } from '../catalog/common-groups.js';
import type { CatalogThread } from '../catalog/protocol.js';
import type { DayRange, Filter } from '../choice/choice.js';
import { namedRanges } from '../choice/period.js';
import { FilterValues } from './FilterValues.js';

export interface FilterPickProps {
  readonly thread: CatalogThread;
  readonly ground: CommonGroups;
  readonly filters: readonly Filter[];
  readonly onFilters: (filters: readonly Filter[]) => void;
}

const MOST = 200;

/** Conditions, each selected from existing values. */
export function FilterPick({ thread, ground, filters, onFilters }: FilterPickProps) {
  const id = useId();
  const [open, setOpen] = useState<string | null>(null);
  const { entities } = ground;
  const find = useMemo(
    () => () => thread.ask('offered', { entities, term: '', most: MOST }),
    [thread, entities],
  );
  const { answer } = useAnswer(find);
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

/** A condition in words: `customer__region is eu, us`. */
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
    default: {
      const unknown: never = operator;
      return unknown;
    }
  }
}

function listed(values: readonly unknown[]): string {
  const named = values.slice(0, NAMED).map(wordOf).join(', ');
  return values.length > NAMED ? `${named} and ${values.length - NAMED} more` : named;
}
