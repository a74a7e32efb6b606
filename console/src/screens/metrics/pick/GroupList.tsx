import { useMemo, useState } from 'react';
import { useAnswer } from '../../../parts/thread/useAnswer.js';
import type { Ground } from '../catalog/ground.js';
import type { CatalogThread } from '../catalog/protocol.js';
import { GRAINS, type Grain, type Group } from '../choice/choice.js';
import type { Offered } from '../dimensions/offered.js';
import { PickList } from './PickList.js';

export interface GroupListProps {
  readonly thread: CatalogThread;
  readonly ground: Ground;
  readonly groups: readonly Group[];
  readonly onGroups: (groups: readonly Group[]) => void;
}

const MOST = 80;

/** `metric_time` as something to group by, beside what the schema offers. */
const TIME: Offered = {
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

export const FIRST_GRAIN: Grain = 'month';

/** What the picked metrics can be grouped by, together. Times have a grain beside them. */
export function GroupList({ thread, ground, groups, onGroups }: GroupListProps) {
  const [term, setTerm] = useState('');
  const { entities, hasTime } = ground;
  const find = useMemo(
    () => () => thread.ask('offered', { entities, term, most: MOST }),
    [thread, entities, term],
  );
  const { answer } = useAnswer(find);
  const time = hasTime && 'metric_time'.includes(term.trim().toLowerCase()) ? [TIME] : [];
  const picked = new Map(groups.map((g) => [g.name, g]));
  const toggle = ({ name, isTime }: Offered): void => {
    if (picked.has(name)) onGroups(groups.filter((g) => g.name !== name));
    else onGroups([...groups, { name, grain: isTime ? FIRST_GRAIN : null }]);
  };
  return (
    <PickList
      title="Group by"
      all={[...time, ...(answer?.first ?? [])]}
      total={(answer?.total ?? 0) + time.length}
      term={term}
      onTerm={setTerm}
      nameOf={(o) => o.name}
      isPicked={(o) => picked.has(o.name)}
      onToggle={toggle}
      row={(offered) => (
        <>
          <span className="pick-words" title={offered.description ?? offered.name}>
            <span className="pick-name">{offered.column}</span>
            {offered.masked !== 'none' && <span className="pick-tag is-masked">masked</span>}
            <span className="pick-about">{offered.name === TIME.name ? 'of the metric' : offered.from}</span>
          </span>
          {offered.isTime && picked.has(offered.name) && (
            <select
              aria-label={`Grain of ${offered.name}`}
              value={picked.get(offered.name)?.grain ?? FIRST_GRAIN}
              onChange={(event) => onGroups(withGrain(groups, offered.name, event.target.value))}
            >
              {GRAINS.filter((grain) => offered.type !== 'date' || grain !== 'hour').map((grain) => (
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

function withGrain(groups: readonly Group[], name: string, value: string): readonly Group[] {
  const grain = GRAINS.find((g) => g === value) ?? FIRST_GRAIN;
  return groups.map((group) => (group.name === name ? { name, grain } : group));
}
