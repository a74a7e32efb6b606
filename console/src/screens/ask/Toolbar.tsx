import { type AnswerState, MOST_ROWS } from './useAnswer.js';
import type { QuestionLanguage } from './useDraft.js';

interface ToolbarProps {
  readonly kind: QuestionLanguage;
  readonly isRunning: boolean;
  readonly isEmpty: boolean;
  readonly onKind: (kind: QuestionLanguage) => void;
  readonly onRun: () => void;
  readonly onCancel: () => void;
  readonly onExplain: () => void;
  readonly onOpen: (dialog: 'library' | 'save' | 'share' | 'copy') => void;
}

/** Controls to run, cancel and explain the query, and to open its dialogs. */
export function Toolbar(props: ToolbarProps) {
  const { kind, isRunning, isEmpty, onKind, onRun, onCancel, onExplain, onOpen } = props;
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
      <button type="button" className="plain" onClick={() => onOpen('library')}>
        History
      </button>
      <button type="button" className="plain" disabled={isEmpty} onClick={() => onOpen('save')}>
        Save
      </button>
      <button type="button" className="plain" disabled={isEmpty} onClick={() => onOpen('share')}>
        Share
      </button>
      <button type="button" className="plain" disabled={isEmpty} onClick={() => onOpen('copy')}>
        Copy as
      </button>
    </div>
  );
}

interface StatusLineProps {
  readonly state: AnswerState;
  readonly onReceipt: () => void;
}

/** Status of the answer: rows, duration, masked columns, truncation, its request ID in the audit log, and its receipt. */
export function StatusLine({ state, onReceipt }: StatusLineProps) {
  return (
    <div className="ask-status" role="status">
      {state.kind === 'running' && <span>{count(state.rows)} so far …</span>}
      {state.kind === 'cancelled' && <span>Cancelled after {count(state.store.rows)}.</span>}
      {state.kind === 'answered' && (
        <>
          <span>
            {count(state.store.rows)} in {Math.round(state.ms).toLocaleString('en')} ms
          </span>
          {state.trailer === null && (
            <span className="ask-told">
              Cut here: the page keeps {MOST_ROWS.toLocaleString('en')} rows, and 300 million characters.
              There are more.
            </span>
          )}
          {state.trailer?.truncated === true && (
            <span className="ask-told">Truncated by the gateway: there are more rows.</span>
          )}
          {(state.trailer?.notices ?? []).map((notice) => (
            <span key={notice} className="ask-told">
              {notice}
            </span>
          ))}
          {(state.trailer?.redacted_conditions ?? []).length > 0 && (
            <span className="ask-told">
              Masked values decide of it: {state.trailer?.redacted_conditions?.join(', ')}
            </span>
          )}
          {state.trailer?.freshness !== undefined && state.trailer.freshness.from !== 'live' && (
            <span>as of {new Date(state.trailer.freshness.as_of).toLocaleString()}</span>
          )}
          {state.trailer !== null && <span className="quiet">request {state.trailer.request_id}</span>}
          {state.trailer?.receipt !== undefined && (
            <button type="button" className="plain" onClick={onReceipt}>
              Receipt
            </button>
          )}
        </>
      )}
    </div>
  );
}

function count(rows: number): string {
  return rows === 1 ? '1 row' : `${rows.toLocaleString('en')} rows`;
}
