import './parts.css';
import { ProblemError } from '../api/http.js';
import { caretOf } from './caret.js';

/** Message from the gateway; names in backticks are displayed as code. */
export function Words({ text }: { readonly text: string }) {
  return text.split('`').map((part, i) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are identified by position.
    i % 2 === 1 ? <code key={i}>{part}</code> : <span key={i}>{part}</span>,
  );
}

interface ErrorBoxProps {
  readonly error: unknown;
  /** Query text to which the error's position refers. */
  readonly text?: string;
  readonly fix?: { readonly label: string; readonly take: () => void } | null;
}

/** Error message with its code, position and hint, and a fix if there is one. */
export function ErrorBox({ error, text, fix }: ErrorBoxProps) {
  if (!(error instanceof ProblemError))
    return (
      <div className="error-box" role="alert">
        <p className="error-words">{error instanceof Error ? error.message : String(error)}</p>
      </div>
    );
  const { code, detail, hint, position, request_id } = error.problem;
  const caret = text === undefined || position == null ? null : caretOf(text, position);
  return (
    <div className="error-box" role="alert">
      <p className="error-words">
        <span className="error-code">{code}</span> <Words text={detail} />
      </p>
      {caret !== null && (
        <pre className="error-place">
          {caret.shown}
          {'\n'}
          {caret.marks}
        </pre>
      )}
      {hint !== null && (
        <p className="error-hint">
          <Words text={hint} />
        </p>
      )}
      {error.retryAfter !== null && <p className="error-hint">Try again in {error.retryAfter} s.</p>}
      {fix != null && (
        <button type="button" className="primary" onClick={fix.take}>
          {fix.label}
        </button>
      )}
      <p className="quiet">request {request_id}</p>
    </div>
  );
}

/**
 * Errors raised by Vite when a part of the console cannot be loaded: its files have new names after an upgrade, or the
 * server is unreachable. Only reloading the page helps.
 */
const faults = new WeakSet<object>();

addEventListener('vite:preloadError', (event) => {
  const { payload } = event as Event & { readonly payload?: unknown }; // Vite's event has a payload
  if (typeof payload === 'object' && payload !== null) faults.add(payload);
});

export const RELOAD_TITLE = 'The console has to be loaded again';
export const RELOAD_WORDS =
  'A part of it could not be loaded: the gateway was replaced by another version, or cannot be reached.';

export function isLoadFault(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error);
}
