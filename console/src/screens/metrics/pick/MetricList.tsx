import { useMemo, useState } from 'react';
import { useAnswer } from '../../../parts/thread/useAnswer.js';
import type { CatalogThread, Metric } from '../catalog/protocol.js';
import { PickList } from './PickList.js';

export interface MetricListProps {
  readonly thread: CatalogThread;
  readonly picked: readonly string[];
  readonly onToggle: (metric: Metric) => void;
}

const MOST = 60;

/** The metrics that the caller has. */
export function MetricList({ thread, picked, onToggle }: MetricListProps) {
  const [term, setTerm] = useState('');
  const find = useMemo(() => () => thread.ask('metrics', { term, most: MOST }), [thread, term]);
  const { answer } = useAnswer(find);
  return (
    <PickList
      title="Metrics"
      all={answer?.first ?? []}
      total={answer?.total ?? 0}
      term={term}
      onTerm={setTerm}
      nameOf={(m) => m.name}
      isPicked={(m) => picked.includes(m.name)}
      onToggle={onToggle}
      row={(m) => (
        <span className="pick-words" title={m.description ?? undefined}>
          <span className="pick-name">{m.name}</span>
          {m.deprecated !== null && <span className="pick-tag">deprecated</span>}
          <span className="pick-about">{m.entity ?? 'several entities'}</span>
        </span>
      )}
      none="You have no metrics."
    />
  );
}
