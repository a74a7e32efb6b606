import { type RecordFilter, SINCE } from './record-filter.js';

interface FilterBarProps {
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

/** What is looked for in the log. */
export function FilterBar({ filter, onChange, onAgain }: FilterBarProps) {
  const choose = <T extends string>(value: string, of: readonly T[]): T | undefined =>
    of.find((one) => one === value);
  return (
    <search className="bar" aria-label="Search the audit log">
      {TEXTS.map(({ name, title, hint }) => (
        <label key={name} className="bar-field">
          <span>{title}</span>
          <input
            type="search"
            value={filter[name]}
            placeholder={hint}
            onChange={(event) => onChange({ ...filter, [name]: event.target.value })}
          />
        </label>
      ))}
      <label className="bar-field bar-narrow">
        <span>Decision</span>
        <select
          value={filter.decision}
          onChange={(event) =>
            onChange({ ...filter, decision: choose(event.target.value, ['allow', 'deny', 'error']) ?? '' })
          }
        >
          <option value="">any</option>
          <option value="allow">allowed</option>
          <option value="deny">denied</option>
          <option value="error">error</option>
        </select>
      </label>
      <label className="bar-field bar-narrow">
        <span>Records</span>
        <select
          value={filter.kind}
          onChange={(event) =>
            onChange({ ...filter, kind: choose(event.target.value, ['decision', 'outcome', 'event']) ?? '' })
          }
        >
          <option value="decision">requests</option>
          <option value="outcome">outcomes</option>
          <option value="event">events</option>
          <option value="">all</option>
        </select>
      </label>
      <label className="bar-field bar-narrow">
        <span>Time range</span>
        <select value={filter.since} onChange={(event) => onChange({ ...filter, since: event.target.value })}>
          <option value="">all</option>
          {SINCE.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="button" className="bar-button" onClick={onAgain}>
        Refresh
      </button>
    </search>
  );
}
