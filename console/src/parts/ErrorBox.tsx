import { useContext } from 'react';
import { EndedError } from '../api/caller.js';
import { ProblemError, UnreachedError, UnreadableError } from '../api/http.js';
import { SessionContext } from '../shell/session.js';
import { caretOf, formatTimeLeft } from './load/format.js';
import './parts.css';

/** Text of a message; names in backticks are displayed as code. */
export function Words({ text }: { readonly text: string }) {
  return text.split('`').map((part, i) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are identified by position.
    i % 2 === 1 ? <code key={i}>{part}</code> : <span key={i}>{part}</span>,
  );
}

interface ErrorAction {
  readonly label: string;
  readonly take: () => void;
}

interface ErrorBoxProps {
  readonly error: unknown;
  /** Query text to which the error's position refers. */
  readonly text?: string;
  readonly fix?: ErrorAction | null;
  /** Repeats the failed request. */
  readonly again?: () => void;
}

/** Error message with its code, position and hint, advice, and a button for the suggested action. */
export function ErrorBox({ error, text, fix = null, again }: ErrorBoxProps) {
  const problem = error instanceof ProblemError ? error.problem : null;
  const caret = text === undefined || problem?.position == null ? null : caretOf(text, problem.position);
  const { advice, action } = useRemedy(error, again);
  // Until the user signs in again, no other action can help.
  const button = error instanceof EndedError ? action : (fix ?? action);
  return (
    <div className="error-box" role="alert">
      <p className="error-words">
        {problem !== null && <span className="error-code">{problem.code} </span>}
        <Words text={errorText(error)} />
      </p>
      {caret !== null && (
        <pre className="error-place">
          {caret.shown}
          {'\n'}
          {caret.marks}
        </pre>
      )}
      {problem !== null && problem.hint !== null && (
        <p className="error-hint">
          <Words text={problem.hint} />
        </p>
      )}
      {advice !== null && <p>{advice}</p>}
      {button !== null && (
        <button type="button" className="primary" onClick={button.take}>
          {button.label}
        </button>
      )}
      {problem !== null && <p className="quiet">request {problem.request_id}</p>}
    </div>
  );
}

/** Returns the message of an error of any type. */
export function errorText(error: unknown): string {
  if (isLoadFault(error)) return RELOAD_TITLE;
  return error instanceof Error ? error.message : String(error);
}

interface Remedy {
  /** Advice in addition to the gateway's hint; null: no advice. */
  readonly advice: string | null;
  readonly action: ErrorAction | null;
}

function useRemedy(error: unknown, again: (() => void) | undefined): Remedy {
  const session = useContext(SessionContext);
  const retry = again === undefined ? null : { label: 'Try again', take: again };
  if (isLoadFault(error)) return { advice: RELOAD_WORDS, action: RELOAD };
  if (error instanceof EndedError)
    return session?.hasEnded === true
      ? {
          advice: 'Sign in again to go on. What you typed is kept.',
          action: { label: 'Sign in again', take: session.signInAgain },
        }
      : { advice: 'You have signed in again.', action: retry };
  return { advice: adviceOn(error), action: retry };
}

function adviceOn(error: unknown): string | null {
  if (error instanceof UnreachedError)
    return 'Check your connection, and that the gateway is running. What you typed is kept.';
  if (error instanceof UnreadableError)
    return 'Something between this page and the gateway, such as a proxy, may have answered. If it stays so, ask whoever runs the gateway.';
  if (!(error instanceof ProblemError)) return null;
  const { problem, retryAt } = error;
  if (retryAt !== null) {
    const time = new Date(retryAt);
    return `From ${time.toLocaleTimeString()} it works again: in ${formatTimeLeft(time.toISOString(), Date.now())}.`;
  }
  if (problem.status >= 500)
    return 'Your question is not the cause. If it stays so, give the ID of the request to whoever runs the gateway.';
  if (problem.status === 403 && problem.hint === null)
    return 'Your access does not cover this. Ask the policy owner.';
  return null;
}

/**
 * Errors raised by Vite when a part of the console cannot be loaded, because its files have new names after an upgrade
 * or the server is unreachable. Only reloading the page helps.
 */
const faults = new WeakSet<object>();

addEventListener('vite:preloadError', (event) => {
  const { payload } = event as Event & { readonly payload?: unknown }; // Vite's event has a payload
  if (typeof payload === 'object' && payload !== null) faults.add(payload);
});

const RELOAD_TITLE = 'The console has to be loaded again';
const RELOAD_WORDS =
  'A part of it could not be loaded: the gateway was replaced by another version, or cannot be reached.';
export const RELOAD: ErrorAction = { label: 'Load the page again', take: () => location.reload() };

function isLoadFault(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error);
}
