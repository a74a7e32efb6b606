// biome-ignore-all lint/a11y/useSemanticElements: rows that are not drawn leave no table of HTML whole.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid takes the keyboard as one.
import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react';
import type { AuditRecord } from '../../api/admin-types.js';
import { scrollTo, windowOf } from '../../parts/grid/window.js';
import { momentOf } from '../../parts/load/words.js';
import { aboutOf, resultOf, whoOf } from './record-words.js';

interface RecordListProps {
  readonly records: readonly AuditRecord[];
  /** The request whose records are shown beside. */
  readonly chosen: string | null;
  readonly onChoose: (record: AuditRecord) => void;
  /** The end is near: older ones are wanted. */
  readonly onEnd: () => void;
}

const ROW = 32;
const HEAD = 32;
const NEAR = 20;
const COLUMNS = ['time', 'who', 'what', 'about', 'result'] as const;

/** Records, of which only those in view are drawn. Arrows move, Enter tells the story of a request. */
export function RecordList({ records, chosen, onChoose, onEnd }: RecordListProps) {
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ scrollTop: 0, viewHeight: 400 });
  const [active, setActive] = useState(0);
  const rows = records.length;
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = (): void =>
      setView({ scrollTop: element.scrollTop, viewHeight: Math.max(ROW, element.clientHeight - HEAD) });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);
  const shown = windowOf({ rows, rowHeight: ROW, ...view });
  const move = (row: number): void => {
    const next = Math.min(Math.max(0, row), rows - 1);
    setActive(next);
    if (scroller.current !== null)
      scroller.current.scrollTop = scrollTo(next, { rows, rowHeight: ROW, ...view });
    if (next >= rows - NEAR) onEnd();
  };
  const onKey = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(view.viewHeight / ROW) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows - 1,
    };
    const to = steps[event.key];
    const record = records[active];
    if (to !== undefined) {
      event.preventDefault();
      move(to);
    } else if (event.key === 'Enter' && record !== undefined) {
      event.preventDefault();
      onChoose(record);
    }
  };
  const drawn = records.slice(shown.first, shown.end);
  return (
    <div
      ref={scroller}
      className="records"
      role="grid"
      aria-label="Records"
      aria-rowcount={rows + 1}
      aria-activedescendant={`${id}-${active}`}
      tabIndex={0}
      onKeyDown={onKey}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        setView((now) => ({ ...now, scrollTop }));
        if (scrollTop > 0 && scrollTop + clientHeight > scrollHeight - NEAR * ROW) onEnd();
      }}
    >
      <div className="records-head records-row" role="row">
        {COLUMNS.map((name) => (
          <div key={name} role="columnheader">
            {name}
          </div>
        ))}
      </div>
      <div className="records-body" role="presentation" style={{ height: shown.height }}>
        <div role="rowgroup" className="records-rows" style={{ transform: `translateY(${shown.top}px)` }}>
          {drawn.map((record, i) => (
            <Row
              key={`${record.writer} ${record.seq}`}
              id={`${id}-${shown.first + i}`}
              record={record}
              index={shown.first + i}
              isActive={shown.first + i === active}
              isChosen={record.request_id === chosen}
              onClick={() => {
                setActive(shown.first + i);
                onChoose(record);
              }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  readonly id: string;
  readonly record: AuditRecord;
  readonly index: number;
  readonly isActive: boolean;
  readonly isChosen: boolean;
  readonly onClick: () => void;
}

function Row({ id, record, index, isActive, isChosen, onClick }: RowProps) {
  const { text, tone } = resultOf(record);
  const classes = `records-row${isActive ? ' records-active' : ''}${isChosen ? ' records-chosen' : ''}`;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on the grid does the same.
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      className={classes}
      onClick={onClick}
    >
      <div role="gridcell" className="records-time" title={record.ts}>
        {momentOf(record.ts)}
      </div>
      <div role="gridcell" title={whoOf(record)}>
        {whoOf(record)}
      </div>
      <div role="gridcell">
        {record.action} <span className="quiet">{record.surface}</span>
      </div>
      <div role="gridcell" title={record.objects.join(', ')}>
        {aboutOf(record)}
      </div>
      <div role="gridcell">
        <span className={`badge badge-${tone}`}>{text}</span>
      </div>
    </div>
  );
}
