import { useMemo } from 'react';
import { Chart } from '../../../parts/chart/Chart.js';
import { DataGrid } from '../../../parts/grid/DataGrid.js';
import type { Choice } from '../choice/choice.js';
import { Notes } from './Notes.js';
import { drawingOf } from './plot.js';
import { Tiles } from './Tiles.js';
import { tableOf } from './table.js';
import type { Asked } from './useAsked.js';

export interface AnswerViewProps {
  readonly asked: Asked;
  /** Whether a newer question is on its way. */
  readonly isOld: boolean;
}

/** What was answered: drawn as its shape asks for, and as a table. */
export function AnswerView({ asked, isOld }: AnswerViewProps) {
  const { choice, answer, reading, compared, uncompared } = asked;
  const pairs = compared?.pairs ?? null;
  const drawing = useMemo(() => drawingOf(reading, pairs), [reading, pairs]);
  const table = useMemo(() => tableOf(reading, pairs), [reading, pairs]);
  return (
    <div className={`answer${isOld ? ' is-old' : ''}`} aria-busy={isOld}>
      {uncompared !== null && <p className="answer-said">{uncompared}</p>}
      {compared !== null && (
        <p className="answer-said">
          compared with {compared.before.start} to {compared.before.end}
        </p>
      )}
      {drawing.kind === 'tiles' && <Tiles tiles={drawing.tiles} />}
      {drawing.kind === 'none' && <p className="answer-said">{drawing.why}</p>}
      {drawing.kind === 'charts' &&
        drawing.charts.map((spec) => (
          <div key={`${spec.y.name} ${spec.series.length}`} className="answer-chart">
            <h3>{spec.y.name}</h3>
            <Chart spec={spec} name={nameOf(choice)} />
          </div>
        ))}
      <div className="answer-table" data-rows={table.rows}>
        <DataGrid label="Answer" data={table} />
      </div>
      <Notes answer={answer} />
    </div>
  );
}

/** Of files that are saved. */
function nameOf({ metrics }: Choice): string {
  return metrics
    .join('-')
    .replaceAll(/[^\w-]/g, '_')
    .slice(0, 60);
}
