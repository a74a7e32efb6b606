import { useEffect, useState } from 'react';
import type { QuestionLanguage } from './library.js';
import { type AnswerState, MOST_ROWS } from './useAnswer.js';

interface ToolbarProps {
  readonly kind: QuestionLanguage;
  readonly isRunning: boolean;
  readonly isEmpty: boolean;
  readonly hasSchema: boolean;
  readonly onSchema: () => void;
  readonly onKind: (kind: QuestionLanguage) => void;
  readonly onRun: () => void;
  readonly onCancel: () => void;
  readonly onExplain: () => void;
  readonly onOpen: (dialog: 'library' | 'save' | 'share' | 'copy') => void;
}

const DIALOGS = [
  ['library', 'History'],
  ['save', 'Save'],
  ['share', 'Share'],
  ['copy', 'Copy as'],
] as const;

/** Controls to run, cancel and explain the query, and to open its dialogs. */
export function Toolbar(props: ToolbarProps) {
  const { kind, isRunning, isEmpty, hasSchema, onSchema, onKind, onRun, onCancel, onExplain, onOpen } = props;
  return (
    <div className="ask-toolbar" role="toolbar" aria-label="Question">
      {isRunning ? (
        <button type="button" className="primary" onClick={onCancel}>
          Cancel
        </button>
      ) : (
        <button type="button" className="primary" disabled={isEmpty} onClick={onRun} title="Ctrl Enter">
          Run
        </button>
      )}
      <button type="button" disabled={isEmpty} onClick={onExplain}>
        Explain
      </button>
      <select
        aria-label="Language"
        value={kind}
        onChange={(event) => onKind(event.target.value === 'sql' ? 'sql' : 'osql')}
      >
        <option value="osql">OSL-SQL</option>
        <option value="sql">SQL over tables</option>
      </select>
      <span className="ask-space" />
      <button
        type="button"
        className="plain"
        aria-expanded={hasSchema}
        aria-controls={hasSchema ? 'ask-schema' : undefined}
        onClick={onSchema}
      >
        Schema
      </button>
      {DIALOGS.map(([name, title]) => (
        <button
          key={name}
          type="button"
          className="plain"
          disabled={isEmpty && name !== 'library'}
          onClick={() => onOpen(name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

interface StatusLineProps {
  readonly state: AnswerState;
  readonly isSorting: boolean;
  readonly onReceipt: () => void;
  readonly onDownload: () => void;
}

/** Status of the answer: rows, duration, masked columns, truncation, request ID, and buttons to save it. */
export function StatusLine({ state, isSorting, onReceipt, onDownload }: StatusLineProps) {
  return (
    <div className="ask-status" role="status">
      {state.kind === 'running' && <RunningTime rows={state.rows} began={state.began} />}
      {state.kind === 'cancelled' && (
        <span className="ask-told">
          Cancelled after {count(state.store.rows)} and {seconds(state.ms)}.
          {state.store.rows > 0 && ' These rows stay here; there may be more.'}
        </span>
      )}
      {state.kind === 'answered' && <AnsweredStatus state={state} />}
      {isSorting && <span>Sorting …</span>}
      {(state.kind === 'answered' || state.kind === 'cancelled') && state.store.rows > 0 && (
        <button type="button" className="plain" onClick={onDownload}>
          Download
        </button>
      )}
      {state.kind === 'answered' && state.trailer?.receipt !== undefined && (
        <button type="button" className="plain" onClick={onReceipt}>
          Receipt
        </button>
      )}
    </div>
  );
}

/** Interval in ms at which the elapsed time is shown. */
const TICK_MS = 100;

/** Rows so far and elapsed time; screen readers do not announce each change. */
function RunningTime({ rows, began }: { readonly rows: number; readonly began: number }) {
  const [now, setNow] = useState(began);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <span className="hidden">Running</span>
      <span role="timer" aria-live="off">
        {count(rows)} so far, {seconds(Math.max(0, now - began))}
      </span>
    </>
  );
}

function AnsweredStatus({ state }: { readonly state: Extract<AnswerState, { readonly kind: 'answered' }> }) {
  const { trailer, store, ms } = state;
  return (
    <>
      <span>
        {count(store.rows)} in {Math.round(ms).toLocaleString('en')} ms
      </span>
      {trailer === null && (
        <span className="ask-told">
          Cut here: the page keeps {MOST_ROWS.toLocaleString('en')} rows, and 300 million characters. There
          are more.
        </span>
      )}
      {trailer?.truncated === true && (
        <span className="ask-told">Truncated by the gateway: there are more rows.</span>
      )}
      {(trailer?.notices ?? []).map((notice) => (
        <span key={notice} className="ask-told">
          {notice}
        </span>
      ))}
      {(trailer?.redacted_conditions ?? []).length > 0 && (
        <span className="ask-told">
          Masked values decide of it: {trailer?.redacted_conditions?.join(', ')}
        </span>
      )}
      {trailer?.freshness !== undefined && trailer.freshness.from !== 'live' && (
        <span>as of {new Date(trailer.freshness.as_of).toLocaleString()}</span>
      )}
      {trailer !== null && <span className="quiet">request {trailer.request_id}</span>}
    </>
  );
}

function count(rows: number): string {
  return rows === 1 ? '1 row' : `${rows.toLocaleString('en')} rows`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
