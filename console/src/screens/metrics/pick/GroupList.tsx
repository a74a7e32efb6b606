import { type ReactNode, useId, useState } from 'react';
import { useThreadAnswer } from '../../../parts/load/useLoad.js';
import type { CommonGroups } from '../catalog/common-groups.js';
import type { DimensionChoice } from '../catalog/dimensions.js';
import type { CatalogThread } from '../catalog/protocol.js';
import { GRAINS, type Group, oneOf, type TimeGrain } from '../choice/choice.js';

interface GroupListProps {
  readonly thread: CatalogThread;
  readonly ground: CommonGroups;
  readonly groups: readonly Group[];
  readonly onGroups: (groups: readonly Group[]) => void;
}

const MOST = 80;

/** `metric_time` as a dimension, in addition to those in the schema. */
const TIME: DimensionChoice = {
  name: 'metric_time',
  from: 'time',
  column: 'time',
  type: 'timestamptz',
  description: 'The time of each metric.',
  masked: 'none',
  isTime: true,
  filterable: false,
  isKey: false,
};

const FIRST_GRAIN: TimeGrain = 'month';

/** Lists the dimensions that the selected metrics have in common. Time dimensions have a control for their grain. */
export function GroupList({ thread, ground, groups, onGroups }: GroupListProps) {
  const [term, setTerm] = useState('');
  const { entities, hasTime } = ground;
  const { answer } = useThreadAnswer(thread, 'offered', { entities, term, most: MOST });
  const time = hasTime && 'metric_time'.includes(term.trim().toLowerCase()) ? [TIME] : [];
  const picked = new Map(groups.map((g) => [g.name, g]));
  const offered = [...time, ...(answer?.first ?? [])];
  const names = new Set(offered.map((o) => o.name));
  // Selected groups that these metrics do not offer are listed too, so that they can be removed.
  const others = answer === null || term !== '' ? [] : groups.filter((g) => !names.has(g.name)).map(unshared);
  const toggle = ({ name, isTime }: DimensionChoice): void => {
    if (picked.has(name)) onGroups(groups.filter((g) => g.name !== name));
    else onGroups([...groups, { name, grain: isTime ? FIRST_GRAIN : null }]);
  };
  return (
    <PickList
      title="Group by"
      all={[...others, ...offered]}
      total={(answer?.total ?? 0) + time.length}
      term={term}
      onTerm={setTerm}
      nameOf={(o) => o.name}
      isPicked={(o) => picked.has(o.name)}
      onToggle={toggle}
      row={(one) => (
        <>
          <span className="pick-words" title={one.description ?? one.name}>
            <span className="pick-name">{one.column}</span>
            {!names.has(one.name) && <span className="tag">not shared</span>}
            {one.masked !== 'none' && <span className="tag pick-masked">masked</span>}
            <span className="pick-about">{one.name === TIME.name ? 'of the metric' : one.from}</span>
          </span>
          {one.isTime && picked.has(one.name) && (
            <select
              aria-label={`Grain of ${one.name}`}
              value={picked.get(one.name)?.grain ?? FIRST_GRAIN}
              onChange={(event) => onGroups(withGrain(groups, one.name, event.target.value))}
            >
              {GRAINS.filter((grain) => one.type !== 'date' || grain !== 'hour').map((grain) => (
                <option key={grain}>{grain}</option>
              ))}
            </select>
          )}
        </>
      )}
      none="The picked metrics share nothing to group by."
    />
  );
}

/** Returns the entry for a group not offered by the schema for these metrics: from a link, or selected for others. */
function unshared({ name, grain }: Group): DimensionChoice {
  const at = name.lastIndexOf('__');
  const [from, column] = at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 2)];
  return { ...TIME, name, from, column, type: '', description: null, isTime: grain !== null };
}

function withGrain(groups: readonly Group[], name: string, value: string): readonly Group[] {
  const grain = oneOf(GRAINS, value) ?? FIRST_GRAIN;
  return groups.map((group) => (group.name === name ? { name, grain } : group));
}

interface PickListProps<T> {
  readonly title: string;
  readonly all: readonly T[];
  readonly total: number;
  readonly term: string;
  readonly onTerm: (term: string) => void;
  readonly nameOf: (one: T) => string;
  readonly isPicked: (one: T) => boolean;
  readonly onToggle: (one: T) => void;
  readonly row: (one: T) => ReactNode;
  readonly none: string;
}

/** Lists longer than this have a search field. */
const SEARCHED = 10;

export function PickList<T>(props: PickListProps<T>) {
  const { title, all, total, term, onTerm, nameOf, isPicked, onToggle, row, none } = props;
  const id = useId();
  return (
    <section className="pick" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {(total > SEARCHED || term !== '') && (
        <input
          type="search"
          aria-label={`Search ${title.toLowerCase()}`}
          placeholder="Search …"
          value={term}
          onChange={(event) => onTerm(event.target.value)}
        />
      )}
      <ul className="pick-list">
        {all.map((one) => (
          <li key={nameOf(one)}>
            <label className="pick-row">
              <input type="checkbox" checked={isPicked(one)} onChange={() => onToggle(one)} />
              {row(one)}
            </label>
          </li>
        ))}
      </ul>
      {all.length === 0 && <p className="quiet">{term === '' ? none : 'Nothing of that name.'}</p>}
      {total > all.length && (
        <p className="quiet">{`${all.length} of ${total.toLocaleString('en')}: search for the others`}</p>
      )}
    </section>
  );
}
