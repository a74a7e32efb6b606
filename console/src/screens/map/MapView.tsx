import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import type { SchemaInThread } from '../../api/schema.js';
import { Dialog } from '../../parts/Dialog.js';
import { NoAccess } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useThreadAnswer } from '../../parts/load/useLoad.js';
import { hashOf, usePlace } from '../../shell/routes.js';
import { SignIn } from '../../shell/SignIn.js';
import { useSession } from '../../shell/session.js';
import { KINDS, type MapObjectKind } from './graph/model.js';
import { Differences, ObjectList } from './ObjectList.js';
import { Panel } from './panel/Panel.js';
import { Legend, MarkLegend } from './picture/Legend.js';
import { Pictures } from './picture/Picture.js';
import { type MapPlace, mapPlaceOf, parametersOf, scopeOf, withinOf } from './place.js';
import { SearchBox } from './SearchBox.js';
import type { DrawnPicture, LoadedMap, MapThread } from './worker/protocol.js';

interface MapViewProps {
  readonly thread: MapThread;
  readonly loaded: LoadedMap;
  readonly caller: SignedInCaller;
  readonly second: SignedInCaller | null;
  readonly other: SchemaInThread<LoadedMap>;
  readonly onSecond: (caller: SignedInCaller | null) => void;
}

const FIRST = 100;
const MOST_FOUND = 40;

export function MapView({ thread, loaded, caller, second, other, onSecond }: MapViewProps) {
  const place = mapPlaceOf(usePlace().parameters);
  const [kinds, setKinds] = useState<ReadonlySet<MapObjectKind>>(() => new Set(KINDS));
  const [here, setHere] = useState<string | null>(null);
  const [isAsked, setAsked] = useState(false);
  const [most, setMost] = useState(FIRST);
  const [narrow, setNarrow] = useState<'picture' | 'list'>('picture');
  const input = useRef<HTMLInputElement>(null);
  useSlash(input);
  const both = other.kind === 'ready' ? other.value : null;
  // Changes when the thread loads another map, so that requests to the thread are repeated.
  const version = `${loaded.version} ${both?.version ?? ''}`;
  const total = KINDS.reduce((sum, kind) => sum + loaded.counts[kind], 0);
  const scope = scopeOf(
    place,
    Math.max(total, both === null ? 0 : KINDS.reduce((sum, k) => sum + both.counts[k], 0)),
  );
  const within = withinOf(scope);
  const { at } = place;

  const drawing = {
    scope: scopeOf({ at: within, column: null, within }, 0),
    kinds: [...kinds],
    ratio: both === null ? 1.4 : 0.8,
  };
  const { answer: drawn, fault } = useThreadAnswer(thread, 'draw', drawing, version);
  const shown = useThreadAnswer(thread, 'details', at === null ? null : { id: at }, version).answer;
  const differences = useThreadAnswer(thread, 'changes', both === null ? null : { most }, version).answer;
  const search = useCallback(
    (term: string) => {
      void version;
      return thread.ask('search', { term, most: MOST_FOUND });
    },
    [thread, version],
  );
  const go = (next: MapPlace): void => {
    location.hash = hashOf('map', parametersOf(next));
  };
  const open = (id: string, column: string | null = null): void => {
    if (id.startsWith('cluster:')) go({ at: null, column: null, within: id });
    else if (drawn?.nodes.some((node) => node.id === id) === true) go({ at: id, column, within });
    else go({ at: id, column, within: id });
    setHere(id);
    setNarrow('picture');
  };
  const close = (): void => go({ at: null, column: null, within });
  const back = (): void => (at === null ? go({ at: null, column: null, within: null }) : close());
  const callers = second === null || both === null ? null : ([nameOf(caller), nameOf(second)] as const);

  if (total === 0 && both === null) return <NoAccess />;
  return (
    <div className={`map is-${narrow}`}>
      <div className="map-bar">
        <SearchBox search={search} input={input} onPick={(found) => open(found.id, found.column)} />
        <Legend counts={loaded.counts} kinds={kinds} onKinds={setKinds} />
        <button
          type="button"
          className="map-narrow"
          onClick={() => setNarrow(narrow === 'list' ? 'picture' : 'list')}
        >
          {narrow === 'list' ? 'Picture' : 'List'}
        </button>
        {second === null ? (
          <button type="button" onClick={() => setAsked(true)}>
            Compare …
          </button>
        ) : (
          <button type="button" onClick={() => onSecond(null)}>
            Stop comparing
          </button>
        )}
      </div>
      <SecondCaller open={isAsked} onClose={() => setAsked(false)} onCaller={onSecond} />
      {other.kind === 'failed' && <ErrorBox error={other.error} again={other.again} />}
      {other.kind === 'loading' && <Loading what="the other map" />}
      <div className={`map-body${at === null ? '' : ' has-panel'}`}>
        <div className="map-side">
          {differences !== null && callers !== null && (
            <Differences
              changes={differences}
              callers={callers}
              open={at}
              onOpen={open}
              onMore={() => setMost(most + 1_000)}
            />
          )}
          {drawn !== null && <ObjectList nodes={drawn.nodes} open={at} onOpen={open} callers={callers} />}
        </div>
        <div className="map-middle">
          {fault !== null && <ErrorBox error={fault} />}
          {drawn !== null && (
            <>
              <Crumbs
                drawn={drawn}
                within={within}
                onAll={() => go({ at: null, column: null, within: null })}
              />
              {callers !== null && <MarkLegend first={callers[0]} second={callers[1]} />}
              <Pictures
                drawn={drawn}
                first={nameOf(caller)}
                second={callers?.[1] ?? null}
                here={here}
                open={at}
                onHere={setHere}
                onOpen={open}
                onBack={back}
                onSearch={() => input.current?.focus()}
              />
              <p className="hidden" role="status">
                {here === null ? '' : hereWords(here, drawn)}
              </p>
            </>
          )}
        </div>
        {at !== null && shown !== null && shown.object.id === at && (
          <Panel
            details={shown}
            wanted={place.column}
            callers={callers}
            onOpen={open}
            onAround={within === at ? null : () => go({ at, column: place.column, within: at })}
            onClose={close}
          />
        )}
      </div>
    </div>
  );
}

function nameOf(caller: SignedInCaller): string {
  return caller.identity.chain.join(' → ');
}

/** Describes the node at the keyboard position, for screen readers; empty if the node is not drawn. */
function hereWords(
  here: string,
  {
    nodes,
    edges,
  }: {
    readonly nodes: readonly { id: string; label: string; kind: string }[];
    readonly edges: readonly { source: string; target: string }[];
  },
): string {
  const node = nodes.find((n) => n.id === here);
  if (node === undefined) return '';
  const edgeCount = edges.filter((e) => e.source === here || e.target === here).length;
  return `${node.kind} ${node.label}, ${edgeCount} ${edgeCount === 1 ? 'edge' : 'edges'}`;
}

/** Lets `/` move the focus to the search, unless a field or an open dialog has it. */
function useSlash(input: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target, key, ctrlKey, metaKey, altKey, defaultPrevented } = event;
      if (key !== '/' || ctrlKey || metaKey || altKey || defaultPrevented) return;
      if (target instanceof Element && target.closest(TYPED) !== null) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [input]);
}

const TYPED = 'input, textarea, select, [contenteditable], dialog[open]';

interface CrumbsProps {
  readonly drawn: DrawnPicture;
  /** Id of the cluster, or of the object (such as an entity) whose neighbourhood is shown; null for the whole map. */
  readonly within: string | null;
  readonly onAll: () => void;
}

function Crumbs({ drawn, within, onAll }: CrumbsProps) {
  const { nodes, inScope, total } = drawn;
  const isOverview = nodes.some((node) => node.kind === 'cluster');
  return (
    <p className="map-crumbs" role="status">
      {within !== null && (
        <button type="button" className="plain" onClick={onAll}>
          ← All
        </button>
      )}
      <span>{wordsOf(within, isOverview, nodes.length, inScope, total)}</span>
    </p>
  );
}

function wordsOf(
  within: string | null,
  isOverview: boolean,
  drawn: number,
  inScope: number,
  total: number,
): string {
  const count = (n: number): string => n.toLocaleString('en');
  if (isOverview) return `${count(total)} things in ${count(drawn)} clusters: open one, or search`;
  const left = inScope > drawn ? `; ${count(inScope - drawn)} more are not drawn: search finds them` : '';
  if (within === null)
    return drawn === total ? `all ${count(total)} things` : `${count(drawn)} of ${count(total)} things`;
  return `${count(drawn)} of ${count(total)} things${left}`;
}

interface SecondCallerProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onCaller: (caller: SignedInCaller) => void;
}

/**
 * Dialog to choose a second caller, whose token is required. The comparison shows only what the gateway returns for
 * each of the two tokens. The second token is kept only in this screen, until the user leaves it.
 */
function SecondCaller({ open, onClose, onCaller }: SecondCallerProps) {
  const { settings } = useSession();
  return (
    <Dialog title="Compare with another caller" open={open} onClose={onClose}>
      <p className="quiet">
        Both maps are drawn side by side. Each shows what its own token is given; the second token is kept
        nowhere.
      </p>
      <SignIn
        settings={settings}
        stored={false}
        onCaller={(caller) => {
          onCaller(caller);
          onClose();
        }}
      />
    </Dialog>
  );
}
