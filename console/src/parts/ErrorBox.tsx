import './parts.css';
import { ProblemError } from '../api/http.js';
import { caretOf } from './caret.js';

/** Sentence of the gateway; names in backticks are shown as code. */
export function Words({ text }: { readonly text: string }) {
  return text.split('`').map((part, i) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: a part is its place.
    i % 2 === 1 ? <code key={i}>{part}</code> : <span key={i}>{part}</span>,
  );
}

interface ErrorBoxProps {
  readonly error: unknown;
  /** Query text that the error's position refers to. */
  readonly text?: string;
  /** Action that would fix the error, if there is one. */
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
