import { useState } from 'react';
import { adminPost } from '../../api/admin.js';
import type { SessionView } from '../../api/admin-types.js';
import { Dialog } from '../../parts/Dialog.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatAge, shortName } from '../../parts/load/format.js';
import { useSession } from '../../shell/session.js';
import { PlainTable } from './Processes.js';

interface SessionsProps {
  readonly sessions: readonly SessionView[];
  /** Called after an action on a session. */
  readonly onDone: () => void;
}

const COLUMNS = [
  ...['who', 'by', 'since', 'state'],
  { name: 'what runs', look: 'wide-column' },
  { name: 'actions', look: 'hidden' },
] as const;

type SessionAction = 'cancel' | 'end';

/** Sessions on the Postgres port and running requests, with actions to cancel or end them. */
export function Sessions({ sessions, onDone }: SessionsProps) {
  const [asked, setAsked] = useState<{ readonly session: SessionView; readonly what: SessionAction } | null>(
    null,
  );
  if (sessions.length === 0)
    return (
      <Empty title="No active sessions" text="Active Postgres sessions and running requests appear here." />
    );
  const now = Date.now();
  return (
    <>
      <PlainTable label="Sessions" columns={COLUMNS}>
        {sessions.map((session) => (
          <tr key={session.id}>
            <th scope="row" title={session.chain.join(' → ')}>
              {whoOf(session)}
            </th>
            <td>
              {session.surface} <span className="quiet">{session.application ?? ''}</span>
            </td>
            <td title={session.since}>{formatAge(session.since, now)}</td>
            <td>
              {session.state} <span className="quiet">{formatAge(session.state_since, now)}</span>
            </td>
            <td className="shape" title={session.shape ?? undefined}>
              {session.shape ?? session.objects.map(shortName).join(', ')}
            </td>
            <td className="actions">
              <button type="button" onClick={() => setAsked({ session, what: 'cancel' })}>
                Cancel
              </button>
              <button type="button" className="danger" onClick={() => setAsked({ session, what: 'end' })}>
                End
              </button>
            </td>
          </tr>
        ))}
      </PlainTable>
      <Dialog
        title={asked?.what === 'cancel' ? 'Cancel what it runs?' : 'End the session?'}
        open={asked !== null}
        onClose={() => setAsked(null)}
      >
        {asked !== null && (
          <Confirm
            session={asked.session}
            what={asked.what}
            onClose={() => setAsked(null)}
            onDone={() => {
              setAsked(null);
              onDone();
            }}
          />
        )}
      </Dialog>
    </>
  );
}

function whoOf({ chain, user, subject }: SessionView): string {
  return chain.length > 0 ? chain.join(' → ') : (subject ?? user ?? 'not known yet');
}

interface ConfirmProps {
  readonly session: SessionView;
  readonly what: SessionAction;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Confirm({ session, what, onClose, onDone }: ConfirmProps) {
  const { caller } = useSession();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = (): void => {
    setBusy(true);
    setError(null);
    const path = `/admin/sessions/${encodeURIComponent(session.id)}/${what}`;
    adminPost(caller, path, null, true).then(onDone, (fault: unknown) => {
      setError(fault);
      setBusy(false);
    });
  };
  return (
    <div className="stack">
      <p>
        <strong>{whoOf(session)}</strong>, {session.surface} session {session.id}.
      </p>
      <p className="quiet">
        {what === 'cancel'
          ? 'The statement stops with an error; the session stays.'
          : 'The client loses its connection, and what it runs stops.'}{' '}
        It is on record under your name.
      </p>
      {error !== null && <ErrorBox error={error} />}
      <p className="row confirm-buttons">
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="primary" disabled={isBusy} onClick={send}>
          {what === 'cancel' ? 'Cancel the statement' : 'End the session'}
        </button>
      </p>
    </div>
  );
}
