import { useEffect, useState } from 'react';

/** What an asynchronous question was answered last: null before the first answer. A question that is overtaken counts no more. */
export function useAnswer<T>(ask: (() => Promise<T>) | null): {
  readonly answer: T | null;
  readonly fault: unknown;
} {
  const [state, setState] = useState<{ readonly answer: T | null; readonly fault: unknown }>({
    answer: null,
    fault: null,
  });
  useEffect(() => {
    if (ask === null) return;
    let isLatest = true;
    ask().then(
      (answer) => {
        if (isLatest) setState({ answer, fault: null });
      },
      (fault: unknown) => {
        if (isLatest) setState({ answer: null, fault });
      },
    );
    return () => {
      isLatest = false;
    };
  }, [ask]);
  return state;
}
