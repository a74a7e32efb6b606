interface EndedBarProps {
  readonly onSignIn: () => void;
}

/** Says that the token has ended, and what to do; nothing else of the screen changes. */
export function EndedBar({ onSignIn }: EndedBarProps) {
  return (
    <div className="ended" role="alert">
      <span>Your token has expired. What you typed is kept.</span>
      <button type="button" className="primary" onClick={onSignIn}>
        Sign in again
      </button>
    </div>
  );
}
