import type { ReactNode } from 'react';
import { ProblemError } from '../api/http.js';
import { useSession } from '../shell/session.js';
import { ErrorBox } from './ErrorBox.js';
import './parts.css';

interface EmptyProps {
  readonly title: string;
  readonly text?: string;
  readonly children?: ReactNode;
}

/** Placeholder for an empty view, with the reason and a suggestion. */
export function Empty({ title, text, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {text !== undefined && <p>{text}</p>}
      {children}
    </div>
  );
}

/** Notice for a caller to whom no grant applies. */
export function NoAccess() {
  const { signInAgain } = useSession();
  return (
    <Empty
      title="You have no access yet"
      text="No grant of the policy applies to you. Ask the policy owner for a role, or sign in as somebody else."
    >
      <button type="button" onClick={signInAgain}>
        Sign in as somebody else
      </button>
    </Empty>
  );
}

interface SchemaFaultProps {
  readonly title: string;
  readonly error: unknown;
  readonly again: () => void;
}

/** Shown in place of a screen whose schema could not be loaded. */
export function SchemaFault({ title, error, again }: SchemaFaultProps) {
  if (isNoAccess(error)) return <NoAccess />;
  return (
    <Empty title={title}>
      <ErrorBox error={error} again={again} />
    </Empty>
  );
}

/** True if the gateway answered that the caller has access to nothing. */
export function isNoAccess(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === 'E2102';
}
