import { useState } from 'react';
import { CopyText } from '../../../parts/CopyText.js';
import { Dialog } from '../../../parts/Dialog.js';
import { Loaded } from '../../../parts/load/Loaded.js';
import { useLoad, useThreadAnswer } from '../../../parts/load/useLoad.js';
import { hashOf } from '../../../shell/routes.js';
import { useSession } from '../../../shell/session.js';
import { type CommonGroups, findCommonGroups } from '../catalog/common-groups.js';
import type { DrillCondition } from '../catalog/drill.js';
import type { CatalogMetric, CatalogThread } from '../catalog/protocol.js';
import { type Choice, keyOf } from '../choice/choice.js';
import { AnswerView, type MetricsAnswerViewProps } from './AnswerView.js';
import type { AnswerPoint } from './table.js';
import type { MetricsAnswer } from './useMetricsAnswer.js';

interface DrillableAnswerProps extends Pick<MetricsAnswerViewProps, 'asked' | 'show'> {
  readonly thread: CatalogThread;
  /** Common properties of the metrics; null if they are to be loaded when the first point is chosen. */
  readonly ground: CommonGroups | null;
}

interface ChosenPoint {
  readonly point: AnswerPoint;
  readonly metric: string | null;
}

/** An answer whose points, bars and cells lead to the rows behind them. */
export function DrillableAnswer({ thread, ground, asked, show = 'both' }: DrillableAnswerProps) {
  const { caller } = useSession();
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

/** Returns the metric shown in a column of the answer; for a column of a group, the first metric. */
function metricFor(name: string | null, { metrics }: CommonGroups): CatalogMetric | null {
  return metrics.find((m) => m.name.toLowerCase() === name?.toLowerCase()) ?? metrics[0] ?? null;
}

interface DrillDialogProps {
  readonly thread: CatalogThread;
  readonly asked: MetricsAnswer;
  readonly point: AnswerPoint;
  readonly metric: CatalogMetric;
  /** Entities that the metrics are computed from, used if the chosen metric does not name its entity. */
  readonly entities: readonly string[];
  readonly onClose: () => void;
}

/** Dialog with queries for the rows behind a value, which open on the Ask screen without being run. */
function DrillDialog({ thread, asked, point, metric, entities, onClose }: DrillDialogProps) {
  const reason = notByRows(metric);
  const question = {
    entities: metric.entity === null ? entities : [metric.entity],
    metric: metric.name,
    conditions: conditionsOf(asked, point),
    range: (point.isBefore ? asked.compared?.before : null) ?? asked.choice.range,
  };
  const { answer, fault } = useThreadAnswer(thread, 'drill', reason === null ? question : null);
  return (
    <Dialog title={`Rows behind ${metric.name}`} open onClose={onClose}>
      <div className="stack">
        <p className="quiet">{pointWords(asked, point)}</p>
        {reason !== null && <p>{reason}</p>}
        {fault !== null && <p role="alert">{fault instanceof Error ? fault.message : String(fault)}</p>}
        {(answer ?? []).map((query) =>
          query.kind === 'refused' ? (
            <p key={query.entity}>{query.why}</p>
          ) : (
            <section key={query.entity} className="stack">
              <CopyText label={`Rows of ${query.entity}`} text={query.text} />
              <p>
                <a className="button" href={hashOf('ask', { q: query.text })}>
                  {`Open rows of ${query.entity} in Ask`}
                </a>
              </p>
            </section>
          ),
        )}
        {answer?.some(({ kind }) => kind === 'query') === true && (
          <p className="quiet">The query runs once you start it, and shows only rows that you may see.</p>
        )}
      </div>
    </Dialog>
  );
}

/** Returns why a value of this metric cannot be traced to the rows of its period; null if it can. */
function notByRows({ name, kind }: CatalogMetric): string | null {
  return ['cumulative', 'offset', 'conversion'].includes(kind)
    ? `${name} is of the kind ${kind}: its value is computed from rows of other periods too, so no list of rows stands for it.`
    : null;
}

/** Returns the conditions on the rows behind a row of an answer: the query's filters and the row's groups. */
function conditionsOf({ choice, answer }: MetricsAnswer, { row }: AnswerPoint): readonly DrillCondition[] {
  return [
    ...choice.filters.map((filter): DrillCondition => ({ kind: 'filter', filter })),
    ...groupsOf(choice, answer.columns).map(({ group, column }): DrillCondition => {
      const value = row[column] ?? null;
      return group.grain === null
        ? { kind: 'value', name: group.name, value }
        : {
            kind: 'period',
            name: group.name,
            grain: group.grain,
            start: value === null ? null : String(value),
          };
    }),
  ];
}

function groupsOf({ groups }: Choice, columns: MetricsAnswer['answer']['columns']) {
  return groups.flatMap((group) => {
    const found = columns.find(({ name }) => name.toLowerCase() === keyOf(group).toLowerCase());
    return found === undefined ? [] : [{ group, column: found.name }];
  });
}

function pointWords({ choice, answer }: MetricsAnswer, { row }: AnswerPoint): string {
  const words = groupsOf(choice, answer.columns).map(({ column }) => `${column}: ${row[column] ?? 'none'}`);
  return words.length === 0 ? 'All rows of the query.' : words.join(', ');
}
