import type { SignedInCaller } from '../../../api/caller.js';
import { Dialog } from '../../../parts/Dialog.js';
import { SignIn } from '../../../shell/SignIn.js';
import { useSession } from '../../../shell/session.js';
import { Shape } from '../picture/Legend.js';
import { MarkSign } from '../ThingList.js';
import { markWords, sightWord } from '../words.js';
import type { MapChanges } from '../worker/protocol.js';

export interface DifferencesProps {
  readonly changes: MapChanges;
  readonly callers: readonly [first: string, second: string];
  readonly open: string | null;
  readonly onOpen: (id: string) => void;
  readonly onMore: () => void;
}

export function Differences({ changes: { total, first }, callers, open, onOpen, onMore }: DifferencesProps) {
  return (
    <nav className="map-list map-differences" aria-label="Differences">
      <h3>
        Differences <span className="map-count">{total.toLocaleString('en')}</span>
      </h3>
      {total === 0 && <p className="quiet">Both see the same map.</p>}
      <ul>
        {first.map(({ id, kind, name, mark, columns }) => (
          <li key={id}>
            <button
              type="button"
              aria-current={id === open}
              className="map-list-row"
              onClick={() => onOpen(id)}
            >
              <Shape kind={kind} />
              <span className="map-list-name">{name}</span>
              <MarkSign mark={mark} callers={callers} />
            </button>
            {mark === 'differs' ? (
              <ul className="map-change">
                {columns.slice(0, 6).map((column) => (
                  <li key={column.name}>
                    <b>{column.name}</b> {sightWord(column.first)} <span aria-hidden="true">│</span>
                    <span className="hidden">, the other</span> {sightWord(column.second)}
                  </li>
                ))}
                {columns.length > 6 && <li>{columns.length - 6} more columns</li>}
              </ul>
            ) : (
              <p className="map-change">{markWords(mark, ...callers)}</p>
            )}
          </li>
        ))}
      </ul>
      {total > first.length && (
        <button type="button" onClick={onMore}>
          {`${(total - first.length).toLocaleString('en')} more`}
        </button>
      )}
    </nav>
  );
}

interface SecondCallerProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onCaller: (caller: SignedInCaller) => void;
}

/**
 * Dialog to choose a second caller, whose token is required. The comparison shows only what the gateway returns for
 * either token. This screen alone keeps the second token, until the user leaves it.
 */
export function SecondCaller({ open, onClose, onCaller }: SecondCallerProps) {
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
