import { useEffect, useRef, useState } from 'react';
import type { Why } from '../../../../../clients/typescript/types.js';
import { getJson } from '../../../api/http.js';
import { Words } from '../../../parts/ErrorBox.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import type { ColumnChange } from '../graph/difference.js';
import type { MapColumn, MapObject } from '../graph/model.js';
import { CountedTitle, MoreButton } from '../ObjectList.js';
import { SIGHT_WORDS, sightWord } from '../words.js';

interface ColumnsProps {
  readonly object: MapObject;
  /** Columns that two compared callers see differently; empty if there is only one caller. */
  readonly changes: readonly ColumnChange[];
  readonly callers: readonly [first: string, second: string] | null;
  /** Name of the column to highlight because a search found it; null if there is nothing to highlight. */
  readonly wanted: string | null;
}

/** Number of columns listed initially. */
const FIRST = 100;

/** Columns of an object: type, key, visibility for the caller and, on request, the reason for it. */
export function Columns({ object, changes, callers, wanted }: ColumnsProps) {
  const [most, setMost] = useState(FIRST);
  const at = object.columns.findIndex((c) => c.name === wanted);
  const shown = object.columns.slice(0, Math.max(most, at + 1));
  const byName = new Map(changes.map((change) => [change.name, change]));
  if (object.columns.length === 0) return null;
  return (
    <section>
      <CountedTitle title="Columns" count={object.columns.length} />
      <ul className="map-columns">
        {shown.map((column) => (
          <ColumnRow
            key={column.name}
            column={column}
            object={`${object.fqn}.${column.name}`}
            change={byName.get(column.name) ?? null}
            callers={callers}
            isWanted={column.name === wanted}
          />
        ))}
      </ul>
      <MoreButton left={object.columns.length - shown.length} onMore={() => setMost(most + 500)} />
    </section>
  );
}

interface ColumnRowProps {
  readonly column: MapColumn;
  readonly object: string;
  readonly change: ColumnChange | null;
  readonly callers: ColumnsProps['callers'];
  readonly isWanted: boolean;
}

function ColumnRow({ column, object, change, callers, isWanted }: ColumnRowProps) {
  const [isAsked, setAsked] = useState(false);
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isWanted) row.current?.scrollIntoView({ block: 'center' });
  }, [isWanted]);
  const { name, type, description, sight, isKey, joins, nullable } = column;
  // Reasons are requested for the first caller, who cannot see columns that only the second sees.
  const mayAsk = change === null || change.first !== null;
  return (
    <li ref={row} className={isWanted ? 'is-wanted' : ''} aria-current={isWanted ? true : undefined}>
      <div className="map-column">
        <span className="map-column-name">{name}</span>
        <span className="map-column-type">
          {type}
          {nullable ? '' : ' · required'}
        </span>
        {isKey && <span className="tag">key</span>}
        {joins && !isKey && <span className="tag">joins</span>}
        <span className={`map-sight is-${change === null ? sight : 'changed'}`}>
          {change === null ? SIGHT_WORDS[sight] : <Seen change={change} callers={callers} />}
        </span>
        {mayAsk && (
          <button
            type="button"
            className="map-why-button"
            aria-expanded={isAsked}
            aria-label={`why? ${name}`}
            onClick={() => setAsked(!isAsked)}
          >
            why?
          </button>
        )}
      </div>
      {description !== null && <p className="map-about">{description}</p>}
      {isAsked && <WhyList object={object} />}
    </li>
  );
}

function Seen({
  change,
  callers,
}: {
  readonly change: ColumnChange;
  readonly callers: ColumnsProps['callers'];
}) {
  const [first, second] = callers ?? ['the first', 'the second'];
  return (
    <>
      <span>
        {first}: {sightWord(change.first)}
      </span>
      <span>
        {second}: {sightWord(change.second)}
      </span>
    </>
  );
}

function WhyList({ object }: { readonly object: string }) {
  const { caller } = useSession();
  const state = useLoad(object, (signal) =>
    getJson<Why>(caller, `/osl/why?object=${encodeURIComponent(object)}`, { signal }),
  );
  return (
    <Loaded what="the reason" state={state}>
      {({ masked_as, because }) => (
        <ul className="map-why">
          {masked_as !== null && (
            <li>
              shown as <Words text={masked_as} />
            </li>
          )}
          {because.map((line) => (
            <li key={line}>
              <Words text={line} />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}
