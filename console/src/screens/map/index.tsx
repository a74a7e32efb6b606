import { useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useSession } from '../../shell/session.js';
import { MapView } from './MapView.js';
import { useMapOf } from './useMapOf.js';
import { beginMapThread } from './worker/begin.js';
import type { MapQuestions } from './worker/protocol.js';
import { useThread } from '../../parts/load/useLoad.js';
import './map.css';

export function Screen() {
  const { caller } = useSession();
  const [second, setSecond] = useState<SignedInCaller | null>(null);
  const thread = useThread<MapQuestions>(beginMapThread);
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
          loaded={own.loaded}
          caller={caller}
          second={second}
          other={other}
          onSecond={setSecond}
        />
      );
    default: {
      const unknown: never = own;
      return unknown;
    }
  }
}
