import { useState } from 'react';
import type { SignedInCaller } from '../../../api/caller.js';
import { Dialog } from '../../../parts/Dialog.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad } from '../../../parts/load/useLoad.js';
import { type CommonGroups, findCommonGroups } from '../catalog/common-groups.js';
import type { CatalogMetric, CatalogThread } from '../catalog/protocol.js';
import { AnswerView, type MetricsAnswerViewProps } from './AnswerView.js';
import { DrillDialog } from './DrillDialog.js';
import type { AnswerPoint } from './table.js';

interface DrillableAnswerProps extends Pick<MetricsAnswerViewProps, 'asked' | 'show'> {
  readonly caller: SignedInCaller;
  readonly thread: CatalogThread;
  /** Common properties of the metrics; null if they are read when the first point is chosen. */
  readonly ground: CommonGroups | null;
}

interface ChosenPoint {
  readonly point: AnswerPoint;
  readonly metric: string | null;
}

/** An answer whose points, bars and cells lead to the rows behind them. */
export function DrillableAnswer({ caller, thread, ground, asked, show = 'both' }: DrillableAnswerProps) {
  const [chosen, setChosen] = useState<ChosenPoint | null>(null);
  const [isWanted, setWanted] = useState(false);
  const { metrics } = asked.choice;
  const state = useLoad(isWanted && ground === null ? metrics.join('\n') : null, (signal) =>
    findCommonGroups(caller, thread, metrics, signal),
  );
  const found = ground ?? state.value;
  const metric = chosen === null || found === null ? null : metricFor(chosen.metric, found);
  const close = (): void => setChosen(null);
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
      {chosen !== null && found === null && (
        <Dialog title="Rows behind it" open onClose={close}>
          <Loaded what="what the metrics are computed from" state={state}>
            {() => null}
          </Loaded>
        </Dialog>
      )}
      {chosen !== null && found !== null && metric !== null && (
        <DrillDialog
          point={chosen.point}
          metric={metric}
          thread={thread}
          asked={asked}
          entities={found.entities}
          onClose={close}
        />
      )}
    </>
  );
}

/** The metric of a column of the answer; the first one for columns of groups. */
function metricFor(name: string | null, { metrics }: CommonGroups): CatalogMetric | null {
  return metrics.find((m) => m.name.toLowerCase() === name?.toLowerCase()) ?? metrics[0] ?? null;
}
