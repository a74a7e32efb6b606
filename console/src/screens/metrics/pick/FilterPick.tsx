import { useId, useMemo, useState } from 'react';
import { useAnswer } from '../../../parts/thread/useAnswer.js';
import type { Ground } from '../catalog/ground.js';
import type { CatalogThread } from '../catalog/protocol.js';
import type { Filter } from '../choice/choice.js';
import { FilterValues } from './FilterValues.js';
import { filterWords } from './filter-words.js';

export interface FilterPickProps {
  readonly thread: CatalogThread;
  readonly ground: Ground;
  readonly filters: readonly Filter[];
  readonly onFilters: (filters: readonly Filter[]) => void;
}

const MOST = 200;

/** Conditions, each picked from the values that there are. */
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
