import { useState } from 'react';
import type { SignedInCaller } from '../../../api/caller.js';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import { Loading } from '../../../parts/load/Loaded.js';
import { useLoad } from '../../../parts/load/useLoad.js';
import { type CommonGroups, findCommonGroups } from '../catalog/common-groups.js';
import type { CatalogMetric, CatalogThread } from '../catalog/protocol.js';
import { AnswerView, type MetricsAnswerViewProps } from './AnswerView.js';
import { DrillDialog } from './DrillDialog.js';
import type { AnswerPoint } from './table.js';

interface DrillableAnswerProps extends Pick<MetricsAnswerViewProps, 'asked' | 'show'> {
  readonly caller: SignedInCaller;
  readonly thread: CatalogThread;
}

interface ChosenPoint {
  readonly point: AnswerPoint;
  readonly metric: string | null;
}

/** An answer whose points, bars and cells lead to the rows behind them. */
export function DrillableAnswer({ caller, thread, asked, show = 'both' }: DrillableAnswerProps) {
  const [chosen, setChosen] = useState<ChosenPoint | null>(null);
  const [isWanted, setWanted] = useState(false);
  const { metrics } = asked.choice;
  // Needs plans of the server, so it is not asked before the first point is chosen.
  const { value, error, again } = useLoad(isWanted ? metrics.join('\n') : null, (signal) =>
    findCommonGroups(caller, thread, metrics, signal),
  );
  const metric = chosen === null || value === null ? null : metricFor(chosen.metric, value);
  return (
    <>
      <AnswerView
        asked={asked}
        isOld={false}
        show={show}
        onDrill={(point, name) => {
          setWanted(true);
          setChosen({ point, metric: name });
        }}
      />
      {chosen !== null && error !== null && <ErrorBox error={error} again={again} />}
      {chosen !== null && value === null && error === null && <Loading what="the rows behind it" />}
      {chosen !== null && value !== null && metric !== null && (
        <DrillDialog
          point={chosen.point}
          metric={metric}
          thread={thread}
          asked={asked}
          entities={value.entities}
          onClose={() => setChosen(null)}
        />
      )}
    </>
  );
}

/** The metric of a column of the answer; the first one for columns of groups. */
function metricFor(name: string | null, { metrics }: CommonGroups): CatalogMetric | null {
  return metrics.find((m) => m.name.toLowerCase() === name?.toLowerCase()) ?? metrics[0] ?? null;
}
