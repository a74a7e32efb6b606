import type { Kind } from './useDraft.js';

interface ToolbarProps {
  readonly kind: Kind;
  readonly isRunning: boolean;
  readonly isEmpty: boolean;
  readonly onKind: (kind: Kind) => void;
  readonly onRun: () => void;
  readonly onCancel: () => void;
  readonly onExplain: () => void;
  readonly onOpen: (dialog: 'library' | 'save' | 'share' | 'copy') => void;
}

/** What is done with the question. */
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
