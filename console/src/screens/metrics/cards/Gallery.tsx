import { type ReactNode, useReducer, useState } from 'react';
import { useThreadAnswer } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { forgetAnswers } from '../answer/session-answers.js';
import type { CatalogThread } from '../catalog/protocol.js';
import { type Choice, NOTHING, oneOf, toggled } from '../choice/choice.js';
import { CARD_GRAINS, type CardGrain } from './card-figure.js';
import { MetricCard } from './MetricCard.js';

interface GalleryProps {
  readonly thread: CatalogThread;
  readonly onOpen: (choice: Choice) => void;
  /** Shown between the title and the cards. */
  readonly children: ReactNode;
}

const MOST_IN_GALLERY = 90;
/** Lists longer than this have a search field. */
const SEARCHED = 12;

/** All metrics visible to the caller, each with its last values. */
export function Gallery({ thread, onOpen, children }: GalleryProps) {
  const { caller } = useSession();
  const [term, setTerm] = useState('');
  const [grain, setGrain] = useState<CardGrain | 'auto'>('auto');
  const [picked, setPicked] = useState<readonly string[]>([]);
  const [turn, refresh] = useReducer((n: number) => n + 1, 0);
  const { answer } = useThreadAnswer(thread, 'metrics', { term, most: MOST_IN_GALLERY });
  const today = new Date().toISOString().slice(0, 10);
  return (
    <div className="stack wide gallery">
      <header>
        <h2>Choose a metric</h2>
        <p className="quiet">
          Each metric has one definition for all tools, and is computed over the rows that you may see. Cards
          show whole periods.
        </p>
        {children}
        <div className="row gallery-bar">
          {((answer?.total ?? 0) > SEARCHED || term !== '') && (
            <input
              type="search"
              aria-label="Search metrics"
              placeholder="Search …"
              value={term}
              onChange={(event) => setTerm(event.target.value)}
            />
          )}
          <label>
            Periods
            <select
              value={grain}
              onChange={(event) => setGrain(oneOf(CARD_GRAINS, event.target.value) ?? 'auto')}
            >
              <option value="auto">that suit</option>
              {CARD_GRAINS.map((one) => (
                <option key={one} value={one}>
                  {one}s
                </option>
              ))}
            </select>
          </label>
          <button
            type="button"
            onClick={() => {
              forgetAnswers(caller);
              refresh();
            }}
          >
            Refresh
          </button>
          {picked.length > 0 && (
            <button type="button" className="primary" onClick={() => onOpen({ ...NOTHING, metrics: picked })}>
              {`Open ${picked.length} together`}
            </button>
          )}
        </div>
      </header>
      <ul className="metric-cards">
        {(answer?.first ?? []).map((metric) => (
          <MetricCard
            key={metric.name}
            metric={metric}
            grain={grain}
            today={today}
            turn={turn}
            isPicked={picked.includes(metric.name)}
            onPick={() => setPicked(toggled(picked, metric.name))}
            onOpen={(of) =>
              onOpen({
                ...NOTHING,
                metrics: [metric.name],
                groups: of === null ? [] : [{ name: 'metric_time', grain: of }],
              })
            }
          />
        ))}
      </ul>
      {answer !== null && answer.total > answer.first.length && (
        <p className="quiet">{`${answer.first.length} of ${answer.total.toLocaleString('en')}: search for the others`}</p>
      )}
    </div>
  );
}
