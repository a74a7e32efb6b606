import { SIGHT_WORDS, SIGHTS } from '../../parts/sight/sights.js';
import type { MatrixFilter } from './matrix-filter.js';

interface MatrixFilterBarProps {
  readonly filter: MatrixFilter;
  readonly onChange: (filter: MatrixFilter) => void;
}

/** Which columns and which subjects are shown. */
export function MatrixFilterBar({ filter, onChange }: MatrixFilterBarProps) {
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
            const sees = (['', 'anything', ...SIGHTS] as const).find((one) => one === event.target.value);
            onChange({ ...filter, sees: sees ?? '' });
          }}
        >
          <option value="">all subjects</option>
          <option value="anything">in some way</option>
          {SIGHTS.map((sight) => (
            <option key={sight} value={sight}>
              {SIGHT_WORDS[sight].how}
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
