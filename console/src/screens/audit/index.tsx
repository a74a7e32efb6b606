import { useCallback, useEffect, useRef, useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { AuditRecord, RecordPage } from '../../api/admin-types.js';
import type { SignedInCaller } from '../../api/caller.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { SelectField, TextField } from '../../parts/FilterFields.js';
import { formatCount } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useDebounced } from '../../parts/load/useLoad.js';
import { ProofFileCheck } from '../../parts/proof/ProofFileCheck.js';
import { KeptTabs } from '../../parts/Tabs.js';
import { useKept } from '../../parts/useKept.js';
import { useSession } from '../../shell/session.js';
import { RecordList } from './RecordList.js';
import { type ChosenRequest, RequestRecords } from './RequestRecords.js';
import { ALL, type RecordFilter, SINCE, searchParameters } from './record-filter.js';
import { Verify } from './Verify.js';
import './audit.css';

const TABS = [
  { name: 'search', title: 'Search', panel: () => <Search /> },
  { name: 'verify', title: 'Verify', panel: () => <Verify /> },
  { name: 'check', title: 'Check a proof', panel: () => <ProofFileCheck /> },
];

/** Audit screen: search, verification of the log, and checking of proofs. */
export function Screen() {
  return (
    <div className="tabbed">
      <KeptTabs label="Audit log" name="audit" tabs={TABS} />
    </div>
  );
}

function Search() {
  const { caller } = useSession();
  const [filter, setFilter] = useKept<RecordFilter>('records', ALL);
  const [chosen, setChosen] = useState<ChosenRequest | null>(null);
  const { records, isLoading, error, hasMore, more, again } = useSearch(caller, useDebounced(filter, 300));
  return (
    <div className={`beside${chosen === null ? '' : ' has-aside'}`}>
      <div className="beside-list">
        <RecordFilterBar filter={filter} onChange={setFilter} onAgain={again} />
        {error !== null && (
          <div className="pad">
            <ErrorBox error={error} again={again} />
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
        {records.length === 0 && isLoading && <Loading what="records" />}
        {records.length === 0 && !isLoading && error === null && !hasMore && (
          <Empty title="No record matches" text="Remove a filter or widen the time range." />
        )}
        {(records.length > 0 || !isLoading) && (
          <p className="row list-foot quiet" role="status">
            <span>
              {isLoading
                ? 'Loading older records …'
                : `${formatCount(records.length)} records${hasMore ? ' so far' : ''}`}
            </span>
            {hasMore && !isLoading && (
              <button type="button" onClick={more}>
                Older
              </button>
            )}
          </p>
        )}
      </div>
      {chosen !== null && <RequestRecords key={chosen.id} request={chosen} onClose={() => setChosen(null)} />}
    </div>
  );
}

interface RecordFilterBarProps {
  readonly filter: RecordFilter;
  readonly onChange: (filter: RecordFilter) => void;
  readonly onAgain: () => void;
}

const TEXTS = [
  { name: 'subject', title: 'Subject', hint: 'user:analyst' },
  { name: 'object', title: 'Object', hint: 'person' },
  { name: 'action', title: 'Action', hint: 'query, login' },
  { name: 'code', title: 'Code', hint: 'E2101' },
  { name: 'request', title: 'Request', hint: 'request ID' },
] as const;

const DECISIONS = [
  ['', 'any'],
  ['allow', 'allowed'],
  ['deny', 'denied'],
  ['error', 'error'],
] as const;

const KINDS = [
  ['decision', 'requests'],
  ['outcome', 'outcomes'],
  ['event', 'events'],
  ['', 'all'],
] as const;

const RANGES = [['', 'all'], ...SINCE.map(({ name }) => [name, name] as const)] as const;

function RecordFilterBar({ filter, onChange, onAgain }: RecordFilterBarProps) {
  return (
    <search className="bar" aria-label="Search the audit log">
      {TEXTS.map(({ name, title, hint }) => (
        <TextField
          key={name}
          title={title}
          hint={hint}
          value={filter[name]}
          onChange={(value) => onChange({ ...filter, [name]: value })}
        />
      ))}
      <SelectField
        title="Decision"
        size="narrow"
        options={DECISIONS}
        value={filter.decision}
        onChange={(decision) => onChange({ ...filter, decision })}
      />
      <SelectField
        title="Records"
        size="narrow"
        options={KINDS}
        value={filter.kind}
        onChange={(kind) => onChange({ ...filter, kind })}
      />
      <SelectField
        title="Time range"
        size="narrow"
        options={RANGES}
        value={filter.since}
        onChange={(since) => onChange({ ...filter, since })}
      />
      <button type="button" onClick={onAgain}>
        Refresh
      </button>
    </search>
  );
}

interface SearchState {
  readonly records: readonly AuditRecord[];
  readonly isLoading: boolean;
  readonly error: unknown;
  /** True if there may be older records. */
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly again: () => void;
}

const PAGE = 100;

interface LoadedRecords {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

/** Loads the records that match a filter, newest first, one page at a time. */
function useSearch(caller: SignedInCaller, filter: RecordFilter): SearchState {
  const [held, setHeld] = useState<LoadedRecords>({ records: [], next: null });
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const stop = useRef(new AbortController());
  /** Parameters of the first page. Later pages reuse them, so that the time span does not move. */
  const parameters = useRef<Readonly<Record<string, string>>>({});
  const key = JSON.stringify(filter);
  const load = useCallback(
    (from: string | null, before: readonly AuditRecord[], signal: AbortSignal): void => {
      setLoading(true);
      setError(null);
      adminGet<RecordPage>(
        caller,
        '/admin/audit/records',
        { ...parameters.current, from, most: PAGE },
        signal,
      ).then(
        ({ records, next }) => {
          if (signal.aborted) return;
          setHeld({ records: [...before, ...records], next });
          setLoading(false);
        },
        (fault: unknown) => {
          if (signal.aborted) return;
          setError(fault);
          setLoading(false);
        },
      );
    },
    [caller],
  );
  useEffect(() => {
    void turn;
    const own = new AbortController();
    stop.current = own;
    parameters.current = searchParameters(JSON.parse(key) as RecordFilter, Date.now()); // serialized above
    setHeld({ records: [], next: null });
    load(null, [], own.signal);
    return () => own.abort();
  }, [key, load, turn]);
  return {
    records: held.records,
    isLoading,
    error,
    hasMore: held.next !== null,
    more: () => {
      if (!isLoading && held.next !== null) load(held.next, held.records, stop.current.signal);
    },
    again: () => setTurn(turn + 1),
  };
}
