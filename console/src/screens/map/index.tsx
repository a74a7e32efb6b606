import { useEffect, useMemo, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { type SchemaInThread, useSchemaInThread } from '../../api/schema.js';
import { SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useThread } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';
import { MapView } from './MapView.js';
import './map.css';
import type { LoadedMap, MapQuestions, MapSide, MapThread } from './worker/protocol.js';

export function Screen() {
  const { caller } = useSession();
  const [second, setSecond] = useState<SignedInCaller | null>(null);
  const thread = useThread<MapQuestions>(beginThread);
  const own = useMapOf(thread, caller, 'first');
  const other = useMapOf(thread, second, 'second');
  switch (own.kind) {
    case 'none':
    case 'loading':
      return <Loading what="your map" />;
    case 'failed':
      return <SchemaFault title="Your map could not be loaded" error={own.error} again={own.again} />;
    case 'ready':
      return thread === null ? null : (
        <MapView
          thread={thread}
          loaded={own.value}
          caller={caller}
          second={second}
          other={other}
          onSecond={setSecond}
        />
      );
  }
}

function beginThread(): Worker {
  return new Worker(new URL('./worker/thread.ts', import.meta.url), { type: 'module' });
}

/** Loads the schema of `caller` into the worker thread, and drops the second caller's schema after the comparison. */
function useMapOf(
  thread: MapThread | null,
  caller: SignedInCaller | null,
  side: MapSide,
): SchemaInThread<LoadedMap> {
  const load = useMemo(
    () => (thread === null ? null : (body: ArrayBuffer) => thread.ask('load', { side, body }, [body])),
    [thread, side],
  );
  useEffect(() => {
    if (thread === null || caller === null || side === 'first') return;
    // If the thread has been stopped, it has already forgotten the second caller.
    return () => void thread.ask('forget', null).catch(() => undefined);
  }, [thread, caller, side]);
  return useSchemaInThread(caller, load);
}
