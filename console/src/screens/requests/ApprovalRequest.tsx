import { useState } from 'react';
import type { Approval, ApprovalVerdict } from '../../../../clients/typescript/types.js';
import { adminPost } from '../../api/admin.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatTime, grantText } from '../../parts/load/format.js';
import { useSession } from '../../shell/session.js';

const STATES = { open: 'Open', approved: 'Approved', declined: 'Declined', revoked: 'Ended early' } as const;

interface ApprovalRequestProps {
  readonly approval: Approval;
  /** Called after a decision. */
  readonly onDecided: () => void;
}

/** A request for approval: requester, reason, statement, the access it would grant, and the decision. */
export function ApprovalRequest({ approval, onDecided }: ApprovalRequestProps) {
  const { state, chain, grants, requested_at: at, reason, statement, statement_shape: shape } = approval;
  const names = [...new Set(grants.map(({ on }) => on))];
  return (
    <li className="box stack request">
      <p>
        <span className="pill request-kind">Approval</span> <strong>{chain.join(' → ')}</strong> wants to use{' '}
        {names.map((name) => (
          <code key={name}>{name} </code>
        ))}
        <span className={`pill request-state request-${state}`}>{STATES[state]}</span>{' '}
        <span className="quiet">{formatTime(at).slice(0, 19)}</span>
      </p>
      {reason !== null && <blockquote>{reason}</blockquote>}
      <Limits approval={approval} />
      {shape !== null && (
        <div className="offer">
          <p className="quiet">{statement === null ? 'The statement, without values' : 'The statement'}</p>
          <pre>{statement ?? shape}</pre>
        </div>
      )}
      {grants.some(({ grant }) => grant !== null) && (
        <div className="offer">
          <p className="quiet">What the approval would show, for every query</p>
          <pre>{grants.flatMap(({ grant }) => (grant === null ? [] : [grantText(grant)])).join('\n')}</pre>
        </div>
      )}
      {grants.some(({ changed }) => changed) && (
        <p>The policy has changed since: this can only be declined, and requested again.</p>
      )}
      <Decided approval={approval} />
      {approval.may_decide && <Actions approval={approval} onDecided={onDecided} />}
    </li>
  );
}

function Limits({
  approval: { purpose, task, state, expires_at: expires },
}: {
  readonly approval: Approval;
}) {
  const limits = [
    ...(purpose === null ? [] : [`purpose ${purpose}`]),
    ...(task === null ? [] : [`task ${task}`]),
    ...(state === 'open' ? [`open until ${formatTime(expires).slice(0, 19)}`] : []),
  ];
  return limits.length === 0 ? null : <p className="quiet">{limits.join(' · ')}</p>;
}

function Decided({ approval }: { readonly approval: Approval }) {
  const { state, decided_by: by, ends_at: ends, for_task: forTask, task, revoked_by: revokedBy } = approval;
  if (by === null) return null;
  const until = ends === null ? '' : ` until ${formatTime(ends).slice(0, 19)}`;
  return (
    <p>
      {state === 'declined' ? 'Declined' : 'Approved'} by <strong>{by}</strong>
      {until}
      {forTask && ` for task ${task}`}
      {revokedBy !== null && (
        <>
          , when <strong>{revokedBy}</strong> ended it
        </>
      )}
    </p>
  );
}

function Actions({ approval, onDecided }: ApprovalRequestProps) {
  const { id, state, minutes, task, grants } = approval;
  const { caller } = useSession();
  const [time, setTime] = useState(minutes);
  const [forTask, setForTask] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const send = (verdict: ApprovalVerdict): void => {
    setBusy(true);
    setError(null);
    adminPost(caller, `/osl/approvals/${id}`, verdict)
      .then(onDecided, (fault: unknown) => {
        setError(fault);
        onDecided();
      })
      .finally(() => setBusy(false));
  };
  const isValid = Number.isInteger(time) && time >= 1 && time <= minutes;
  const isChanged = grants.some(({ changed }) => changed);
  return (
    <>
      {error !== null && <ErrorBox error={error} />}
      {state === 'open' && (
        <form
          className="row request-actions"
          onSubmit={(event) => {
            event.preventDefault();
            send({ decision: 'approve', minutes: time, for_task: forTask });
          }}
        >
          {!isChanged && (
            <>
              <label>
                for{' '}
                <input
                  type="number"
                  min={1}
                  max={minutes}
                  value={Number.isNaN(time) ? '' : time}
                  onChange={(event) => setTime(event.target.valueAsNumber)}
                />{' '}
                of {minutes} minutes
              </label>
              {task !== null && (
                <label>
                  <input
                    type="checkbox"
                    checked={forTask}
                    onChange={(event) => setForTask(event.target.checked)}
                  />{' '}
                  only for task {task}
                </label>
              )}
              <button type="submit" className="primary" disabled={busy || !isValid}>
                Approve
              </button>
            </>
          )}
          <button type="button" disabled={busy} onClick={() => send({ decision: 'decline' })}>
            Decline
          </button>
        </form>
      )}
      {state === 'approved' && (
        <p className="row request-actions">
          <button type="button" disabled={busy} onClick={() => send({ decision: 'revoke' })}>
            End it now
          </button>
        </p>
      )}
    </>
  );
}
