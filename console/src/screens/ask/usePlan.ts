import { useCallback, useEffect, useRef, useState } from 'react';
import { type Body, explain, type Plan } from '../../api/ask.js';
import type { Caller } from '../../api/caller.js';

export type PlanState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'asking' }
  | { readonly kind: 'explained'; readonly plan: Plan }
  | { readonly kind: 'failed'; readonly text: string; readonly error: unknown };

/** The plan of one question at a time. */
export function usePlan(caller: Caller) {
  const [state, setState] = useState<PlanState>({ kind: 'idle' });
  const asking = useRef<AbortController | null>(null);
  const ask = useCallback(
    (text: string, body: Body) => {
      asking.current?.abort();
      const controller = new AbortController();
      asking.current = controller;
      const show = (next: PlanState): void => {
        if (!controller.signal.aborted) setState(next);
      };
      show({ kind: 'asking' });
      explain(caller, body, controller.signal).then(
        (plan) => show({ kind: 'explained', plan }),
        (error: unknown) => show({ kind: 'failed', text, error }),
      );
    },
    [caller],
  );
  const clear = useCallback(() => {
    asking.current?.abort();
    setState({ kind: 'idle' });
  }, []);
  useEffect(() => () => asking.current?.abort(), []);
  return { state, explain: ask, clear };
}
