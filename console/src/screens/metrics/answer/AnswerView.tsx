import { useMemo } from 'react';
import type { Answer } from '../../../../../clients/typescript/types.js';
import { download } from '../../../parts/CopyText.js';
import { Chart } from '../../../parts/chart/Chart.js';
import { DataGrid } from '../../../parts/grid/DataGrid.js';
import type { Choice } from '../choice/choice.js';
import type { PanelForm } from '../dashboards/dashboard.js';
import { changeOf, notesOf, shownChange, shownFigure } from './columns.js';
import { type AnswerDrawing, drawingOf, type Tile } from './plot.js';
import { type AnswerPoint, csvOf, tableOf } from './table.js';
import type { MetricsAnswer } from './useMetricsAnswer.js';

export interface MetricsAnswerViewProps {
  readonly asked: MetricsAnswer;
  /** True while a newer query is running. */
  readonly isOld: boolean;
  /** Parts to show. A chart that cannot be drawn is replaced by the table. */
  readonly show?: PanelForm;
  /** Called with the chosen point and its metric. The metric is null if a cell in a group column was chosen. */
  readonly onDrill?: (point: AnswerPoint, metric: string | null) => void;
}

/** Shows an answer in a form that suits its columns, and as a table. */
export function AnswerView({ asked, isOld, show = 'both', onDrill }: MetricsAnswerViewProps) {
  const { choice, answer, reading, compared, uncompared } = asked;
  const pairs = compared?.pairs ?? null;
  const drawing = useMemo(() => drawingOf(reading, pairs), [reading, pairs]);
  const hasTable = show !== 'chart' || drawing.kind === 'none';
  const table = useMemo(() => tableOf(reading, pairs), [reading, pairs]);
  return (
    <div className={`answer${isOld ? ' is-old' : ''}`} aria-busy={isOld}>
      {uncompared !== null && <p className="answer-said">{uncompared}</p>}
      {compared !== null && (
        <p className="answer-said">
          compared with {compared.before.start} to {compared.before.end}
        </p>
      )}
      {show !== 'table' && <Drawing drawing={drawing} name={nameOf(choice)} onDrill={onDrill} />}
      {hasTable && (
        <div className="box answer-table" data-rows={table.rows}>
          <DataGrid
            label="Answer"
            data={table}
            onChoose={(row, column) => {
              const point = row === null ? null : table.pointAt(row, column);
              if (point !== null) onDrill?.(point, table.figureOf(column));
            }}
          />
        </div>
      )}
      <div className="answer-foot">
        <span className="quiet">
          {onDrill !== undefined && (hasTable || drawing.kind === 'charts') && (
            <>
              Choose a point, a bar or a cell (<kbd>Enter</kbd>) for the rows behind it.
            </>
          )}
        </span>
        <button
          type="button"
          className="plain"
          onClick={() => download(`${nameOf(choice)}.csv`, csvOf(table), 'text/csv')}
        >
          Save CSV
        </button>
      </div>
      <Notes answer={answer} />
    </div>
  );
}

interface DrawingProps {
  readonly drawing: AnswerDrawing;
  readonly name: string;
  readonly onDrill: MetricsAnswerViewProps['onDrill'];
}

function Drawing({ drawing, name, onDrill }: DrawingProps) {
  switch (drawing.kind) {
    case 'tiles':
      return <Tiles tiles={drawing.tiles} />;
    case 'none':
      return <p className="answer-said">{drawing.why}</p>;
    case 'charts':
      return drawing.charts.map((spec) => (
        <div key={`${spec.y.name} ${spec.series.length}`} className="box answer-chart">
          <h3>{spec.y.name}</h3>
          <Chart
            spec={spec}
            name={name}
            onPick={(series, at) => {
              const point = spec.points[series]?.[at];
              if (point != null) onDrill?.(point, spec.figures[series] ?? null);
            }}
          />
        </div>
      ));
  }
}

/** Returns the name for saved files, derived from the metrics. */
function nameOf({ metrics }: Choice): string {
  return metrics
    .join('-')
    .replaceAll(/[^\w-]/g, '_')
    .slice(0, 60);
}

function Notes({ answer }: { readonly answer: Answer }) {
  return (
    <ul className="answer-notes">
      {notesOf(answer).map((note) => (
        <li key={note}>{note}</li>
      ))}
      <li className="answer-request">request {answer.request_id}</li>
    </ul>
  );
}

function Tiles({ tiles }: { readonly tiles: readonly Tile[] }) {
  return (
    <ul className="row tiles">
      {tiles.map(({ figure, now, before }) => {
        const change = before === null ? null : changeOf(now, before.value);
        return (
          <li key={figure.name} className="box">
            <span className="tile-name">{figure.name}</span>
            <span className="tile-figure">{shownFigure(now, figure.format) || '—'}</span>
            {before !== null && (
              <span className="tile-before">
                {change === null ? '' : `${shownChange(change)} · `}before{' '}
                {shownFigure(before.value, figure.format) || '—'}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
