import { useMemo, useState } from 'react';
import type { Schema } from '../../../../clients/typescript/types.js';
import { Chart } from '../../parts/chart/Chart.js';
import { Empty } from '../../parts/Empty.js';
import { DataGrid } from '../../parts/grid/DataGrid.js';
import type { RowStore } from '../../parts/rows/row-store.js';
import { Tabs } from '../../parts/Tabs.js';
import { answerGrid, type MaskedIn, type SortOrder, whyObjects } from './answer-grid.js';
import { chartFor } from './chart-for.js';
import { type Passage, passageOf } from './passages.js';
import type { AnswerState } from './useAnswer.js';
import { WhyPanel } from './WhyPanel.js';

type AnswerWithRows = Extract<AnswerState, { readonly kind: 'running' | 'answered' | 'cancelled' }>;
type AnswerTab = 'table' | 'chart' | 'passages';

interface AnswerViewProps {
  readonly state: AnswerWithRows;
  readonly schema: Schema | null;
  readonly sorting: SortOrder;
}

/** Shows the rows of an answer as a table, a chart or passages. */
export function AnswerView({ state, schema, sorting }: AnswerViewProps) {
  const { store } = state;
  const described = state.kind === 'running' ? null : state.described;
  const [tab, setTab] = useState<AnswerTab | null>(null);
  const [chosen, setChosen] = useState<{ readonly row: number | null; readonly column: number } | null>(null);
  const columns = described?.columns ?? [];
  // biome-ignore lint/correctness/useExhaustiveDependencies: the store is mutated when rows arrive.
  const data = useMemo(
    () => answerGrid(store, columns, maskedInSchema(schema), sorting.order),
    [store, store.rows, described, schema, sorting.order],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` follows the described columns.
  const chart = useMemo(
    () =>
      described === null
        ? null
        : chartFor({
            columns,
            rows: store.rows,
            at: (row, column) => store.at(row, store.names.indexOf(columns[column]?.name ?? '')),
          }),
    [store, described],
  );
  const withPassages = described !== null && hasPassages(store);
  const tabs: readonly { readonly name: AnswerTab; readonly title: string }[] = [
    { name: 'table', title: 'Table' },
    ...(chart === null || withPassages ? [] : [{ name: 'chart', title: 'Chart' } as const]),
    ...(withPassages ? [{ name: 'passages', title: 'Passages' } as const] : []),
  ];
  const current = tabs.find(({ name }) => name === tab)?.name ?? (withPassages ? 'passages' : 'table');
  const why = chosen === null || described === null ? null : whyObjects(columns[chosen.column], described);
  if (store.rows === 0) return <NoRows kind={state.kind} />;
  return (
    <div className="ask-shown">
      <Tabs label="Answer" tabs={tabs} chosen={current} onChoose={setTab}>
        {current === 'table' && (
          <DataGrid
            label="Rows"
            data={data}
            version={data.rows}
            chosen={chosen}
            sort={sorting.sort}
            onSort={
              described === null
                ? undefined
                : (column) => {
                    setChosen(null);
                    sorting.byColumn(column);
                  }
            }
            onChoose={(row, column) => {
              const isMasked = row === null || data.cell(row, column).kind === 'masked';
              setChosen(isMasked && data.columns[column]?.masked === true ? { row, column } : null);
            }}
            headOf={(column) =>
              data.columns[column]?.masked === true ? (
                <button
                  type="button"
                  className="ask-why masked"
                  onClick={() => setChosen({ row: null, column })}
                  aria-label={`Why is ${data.columns[column]?.name ?? ''} masked?`}
                >
                  why?
                </button>
              ) : null
            }
          />
        )}
        {current === 'chart' && chart !== null && <Chart spec={chart} name="answer" />}
        {current === 'passages' && <PassagesView store={store} />}
      </Tabs>
      {why !== null && <WhyPanel objects={why} onClose={() => setChosen(null)} />}
    </div>
  );
}

function NoRows({ kind }: { readonly kind: AnswerWithRows['kind'] }) {
  switch (kind) {
    case 'running':
      return (
        <div className="ask-later">
          <Empty
            title="Running …"
            text="Rows are shown as they arrive. Cancel ends the query in the database too."
          />
        </div>
      );
    case 'answered':
      return <Empty title="No rows" text="No rows match among the rows that you can see." />;
    case 'cancelled':
      return <Empty title="Cancelled" text="No rows had arrived. Change the query, or run it again." />;
  }
}

/** Returns a function that tells if the caller's schema masks an answer's column in no, some or all rows. */
function maskedInSchema(schema: Pick<Schema, 'entities' | 'relationships'> | null): MaskedIn {
  if (schema === null) return () => null;
  const known = new Map<string, 'none' | 'some' | 'all'>();
  for (const { fqn, columns } of schema.entities)
    for (const { name, masked } of columns) known.set(`${fqn}.${name}`, masked);
  for (const { bridge } of schema.relationships)
    for (const { name, masked } of bridge?.columns ?? [])
      known.set(`osl.entities.${bridge?.name ?? ''}.${name}`, masked);
  return ({ source }) => (source === null ? null : (known.get(source) ?? null));
}

const MOST = 200;

/** Shows the passages of an answer as text, each with its source. */
function PassagesView({ store }: { readonly store: RowStore }) {
  const passages = Array.from({ length: Math.min(MOST, store.rows) }, (_, row) =>
    passageOf(rowOf(store, row)),
  );
  return (
    <ol className="stack wide passages">
      {passages.map((passage, i) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: passages are identified by position.
        passage === null ? null : <PassageItem key={i} passage={passage} />,
      )}
      {store.rows > MOST && (
        <li className="quiet">
          The first {MOST} of {store.rows}.
        </li>
      )}
    </ol>
  );
}

function hasPassages(store: RowStore): boolean {
  return store.rows > 0 && store.names.includes('text') && store.names.includes('cite');
}

function rowOf(store: RowStore, row: number): Readonly<Record<string, unknown>> {
  return Object.fromEntries(store.names.map((name, column) => [name, store.at(row, column)]));
}

function PassageItem({ passage }: { readonly passage: Passage }) {
  const { cite, score, stretches, redacted } = passage;
  return (
    <li>
      <div className="passage-cite">
        {cite !== null && (
          <>
            <code>{cite.document}</code>{' '}
            <span className="quiet">
              {cite.facet}, version {cite.version}, characters {cite.start}–{cite.end}
            </span>
          </>
        )}
        {score !== null && <span className="quiet"> score {score.toFixed(3)}</span>}
      </div>
      <blockquote>
        {stretches.map(({ text, isHighlight }, i) => {
          const Part = isHighlight ? 'mark' : 'span';
          // biome-ignore lint/suspicious/noArrayIndexKey: segments are identified by position.
          return <Part key={i}>{text}</Part>;
        })}
      </blockquote>
      {redacted.length > 0 && <p className="passage-redacted">redacted in it: {redacted.join(', ')}</p>}
    </li>
  );
}
