import { useId } from 'react';
import type { Range } from '../choice/choice.js';
import { namedRanges } from '../choice/period.js';

export interface RangePickProps {
  readonly range: Range;
  /** Today in UTC, which is the clock of metrics. */
  readonly today: string;
  readonly onRange: (range: Range) => void;
}

/** Which days count: by name, or two days from a calendar. */
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
