import { useState } from 'react';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useLater } from '../../parts/load/useLater.js';
import { counted } from '../../parts/load/words.js';
import { useSession } from '../../shell/session.js';
import { FilterBar } from './FilterBar.js';
import { RecordList } from './RecordList.js';
import { ALL, type RecordFilter } from './record-filter.js';
import { type ChosenRequest, Story } from './Story.js';
import { useSearch } from './useSearch.js';

/** Records, and the story of the request of one of them. */
export function Search() {
  const { caller } = useSession();
  const [filter, setFilter] = useState<RecordFilter>(ALL);
  const [chosen, setChosen] = useState<ChosenRequest | null>(null);
  const { records, isLoading, error, hasMore, more, again } = useSearch(caller, useLater(filter, 300));
  return (
    <div className={`audit-search${chosen === null ? '' : ' audit-with-story'}`}>
      <div className="audit-side">
        <FilterBar filter={filter} onChange={setFilter} onAgain={again} />
        {error !== null && (
          <div className="audit-pad">
            <ErrorBox error={error} fix={{ label: 'Try again', take: again }} />
          </div>
        )}
        {records.length > 0 && (
          <RecordList
            records={records}
            chosen={chosen?.id ?? null}
            onChoose={(record) => setChosen({ id: record.request_id, near: record.ts })}
            onEnd={more}
          />
        )}
        {records.length === 0 && !isLoading && error === null && !hasMore && (
          <Empty title="No record matches" text="Remove a filter or widen the time range." />
        )}
        <p className="audit-foot quiet" role="status">
          <span>
            {isLoading ? 'Loading …' : `${counted(records.length)} records${hasMore ? ' so far' : ''}`}
          </span>
          {hasMore && !isLoading && (
            <button type="button" onClick={more}>
              Older
            </button>
          )}
        </p>
      </div>
      {chosen !== null && <Story key={chosen.id} request={chosen} onClose={() => setChosen(null)} />}
    </div>
  );
}
