// biome-ignore-all lint/a11y/useSemanticElements: an HTML table would need all rows, but only some are rendered.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid handles the keyboard as a whole.
import { type KeyboardEvent, useId } from 'react';
import type { AuditRecord } from '../../api/admin-types.js';
import { useRowWindow } from '../../parts/grid/grid-data.js';
import { formatCount, formatDuration, formatTime, shortName } from '../../parts/load/format.js';

interface RecordListProps {
  readonly records: readonly AuditRecord[];
  /** ID of the request whose records are shown next to the list. */
  readonly chosen: string | null;
  readonly onChoose: (record: AuditRecord) => void;
  /** Called when the user comes near the end of the list, to load older records. */
  readonly onEnd: () => void;
}

const ROW = 32;
const HEAD = 32;
const NEAR = 20;
const COLUMNS = ['time', 'who', 'what', 'about', 'result'] as const;

/** List that renders only the records in view. Arrow keys move, Enter shows all records of the request. */
export function RecordList({ records, chosen, onChoose, onEnd }: RecordListProps) {
  const id = useId();
  const rows = records.length;
  const { scroller, active, setActive, moveByKey, onScroll, shown } = useRowWindow({
    rows,
    columns: null,
    rowHeight: ROW,
    headHeight: () => HEAD,
  });
  const onKey = (event: KeyboardEvent): void => {
    const next = moveByKey(event);
    const record = records[active.row];
    if (next !== null && next.row >= rows - NEAR) onEnd();
    if (next !== null || event.key !== 'Enter' || record === undefined) return;
    event.preventDefault();
    onChoose(record);
  };
  const drawn = records.slice(shown.first, shown.end);
  return (
    <div
      ref={scroller}
      className="grid-frame records"
      role="grid"
      aria-label="Records"
      aria-rowcount={rows + 1}
      aria-activedescendant={`${id}-${active.row}`}
      tabIndex={0}
      onKeyDown={onKey}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        onScroll(event);
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
      <div className="grid-body records-body" role="presentation" style={{ height: shown.height }}>
        <div role="rowgroup" className="grid-rows" style={{ transform: `translateY(${shown.top}px)` }}>
          {drawn.map((record, i) => (
            <Row
              key={`${record.writer} ${record.seq}`}
              id={`${id}-${shown.first + i}`}
              record={record}
              index={shown.first + i}
              isActive={shown.first + i === active.row}
              isChosen={record.request_id === chosen}
              onClick={() => {
                setActive({ row: shown.first + i, column: 0 });
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
        {formatTime(record.ts)}
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
        <span className={`pill badge ${tone}`}>{text}</span>
      </div>
    </div>
  );
}

/** Colour of a record's result badge. */
type Tone = 'good' | 'bad' | 'neutral';

/** Returns the caller in a record: the chain if any, else the subject, else a text for an unauthenticated caller. */
export function whoOf({ subject, chain }: AuditRecord): string {
  if (chain.length > 0) return chain.join(' → ');
  return subject ?? 'nobody proved who';
}

/** Returns the short names of a record's first objects, and the number of the remaining ones. */
function aboutOf({ objects, objects_omitted }: AuditRecord): string {
  const first = objects.slice(0, 3).map(shortName).join(', ');
  const more = objects.length - 3 + objects_omitted;
  return more > 0 ? `${first} and ${formatCount(more)} more` : first;
}

export function resultOf({ kind, decision, outcome, code }: AuditRecord): {
  readonly text: string;
  readonly tone: Tone;
} {
  const text = kind === 'decision' ? (decision ?? '') : kind === 'outcome' ? (outcome ?? '') : 'event';
  const tone = text === 'allow' || text === 'ok' ? 'good' : text === 'event' ? 'neutral' : 'bad';
  return { text: code === null ? text : `${text} ${code}`, tone };
}

/** Describes a record in one sentence. */
export function sentenceOf(record: AuditRecord): string {
  const { kind, action, surface, form, decision, outcome, rows, duration_us, code } = record;
  switch (kind) {
    case 'decision': {
      const about = aboutOf(record);
      const asked = `${action}${form === null ? '' : ` (${form})`} over ${surface}${about === '' ? '' : `, about ${about}`}`;
      return decision === 'allow'
        ? `${asked}: allowed`
        : `${asked}: ${decision ?? 'refused'}${code === null ? '' : ` with ${code}`}`;
    }
    case 'outcome': {
      const result = outcome === 'ok' ? 'succeeded' : (outcome ?? 'ended');
      const returned = rows === null ? '' : `, ${formatCount(rows)} ${rows === 1 ? 'row' : 'rows'} returned`;
      const took = duration_us === null ? '' : ` in ${formatDuration(duration_us)}`;
      return `${result}${code === null ? '' : ` with ${code}`}${returned}${took}`;
    }
    case 'event':
      return action;
  }
}

/** Returns the details that a record's sentence omits, in reading order; null for those that it does not have. */
export function particularsOf(
  record: AuditRecord,
): readonly (readonly [name: string, value: string | null])[] {
  const { versions, objects, statement_hmac, standby, detail, writer, epoch, seq } = record;
  return [
    ['objects', objects.length === 0 ? null : objects.join(', ')],
    ['policy', versions?.policy ?? null],
    ['manifest', versions?.manifest ?? null],
    ['statement', statement_hmac === null ? null : `${statement_hmac} (its keyed fingerprint)`],
    ['read from', standby === undefined ? null : `standby ${standby.name}, as of ${standby.as_of}`],
    ['detail', detail ?? null],
    ['place', `record ${seq} of ${writer}, opening ${epoch}`],
  ];
}
