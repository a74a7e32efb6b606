import { useCallback, useEffect, useState } from 'react';
import type { Schema } from '../../../clients/typescript/types.js';
import type { SignedInCaller } from './caller.js';
import { BROKEN, getJson, isAbort, send, UnreachedError, UnreadableError } from './http.js';

const PATH = '/osl/schema?governed=true';

const known = new WeakMap<SignedInCaller, Promise<Schema>>();

/** Returns the schema visible to `caller`. It is requested once and then cached. Throws like `getJson`. */
function schemaOf(caller: SignedInCaller): Promise<Schema> {
  const asked = known.get(caller) ?? getJson<Schema>(caller, PATH);
  known.set(caller, asked);
  asked.catch(() => known.delete(caller));
  return asked;
}

/** State of loading a caller's schema into a worker thread. */
export type SchemaInThread<T> =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | { readonly kind: 'ready'; readonly value: T; readonly of: string };

/**
 * Requests the caller's schema and passes its bytes to `take`, which reads them in a worker thread, so that the page is
 * never blocked. Nothing is loaded without a caller or `take`, which must be the same function on each render.
 */
export function useSchemaInThread<T>(
  caller: SignedInCaller | null,
  take: ((body: ArrayBuffer) => Promise<T>) | null,
): SchemaInThread<T> {
  const [state, setState] = useState<SchemaInThread<T>>({ kind: 'none' });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    void tries;
    if (caller === null || take === null) {
      setState({ kind: 'none' });
      return;
    }
    const { key } = caller;
    const leaving = new AbortController();
    const { signal } = leaving;
    // After a new sign-in of the same caller, the screen stays visible while the schema is loaded again.
    setState((now) => (now.kind === 'ready' && now.of === key ? now : { kind: 'loading' }));
    takeSchema(caller, signal, take).then(
      (value) => {
        if (!signal.aborted) setState({ kind: 'ready', value, of: key });
      },
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', error, again: () => setTries((n) => n + 1) });
      },
    );
    return () => leaving.abort();
  }, [caller, take, tries]);
  return state;
}

/** Passes the bytes of the schema to `take`. Throws like `getJson`; UnreadableError also if `take` fails. */
async function takeSchema<T>(
  caller: SignedInCaller,
  signal: AbortSignal,
  take: (body: ArrayBuffer) => Promise<T>,
): Promise<T> {
  const response = await send(caller, 'GET', PATH, null, { signal });
  const body = await response.arrayBuffer().catch((error: unknown) => {
    throw isAbort(error) ? error : new UnreachedError(BROKEN);
  });
  return take(body).catch(() => {
    throw new UnreadableError(response.status);
  });
}

/** Schema visible to the caller; null while it is loading or if loading failed. */
export interface LoadedSchema {
  readonly schema: Schema | null;
  readonly error: unknown;
  readonly again: () => void;
}

export function useSchema(caller: SignedInCaller): LoadedSchema {
  const [state, setState] = useState<Omit<LoadedSchema, 'again'>>({ schema: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    void turn;
    let isCurrent = true;
    setState({ schema: null, error: null });
    schemaOf(caller).then(
      (schema) => isCurrent && setState({ schema, error: null }),
      (error: unknown) => isCurrent && setState({ schema: null, error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [caller, turn]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  return { ...state, again };
}
