import { useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { AccessRequestView, Offer } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatTime } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { VisibilityPill } from '../../parts/sight/Visibility.js';
import { useSession } from '../../shell/session.js';
import { grantText } from './grant-text.js';

interface AccessRequestPage {
  readonly requests: readonly AccessRequestView[];
  readonly next: string | null;
}

/** Access requests, each with the grant that would allow it. Read only: the policy is changed in its files. */
export function AccessRequests() {
  const { caller } = useSession();
  const [from, setFrom] = useState<readonly string[]>([]);
  const at = from.at(-1) ?? null;
  const { value, error, again } = useLoad(`requests ${at ?? ''}`, (signal) =>
    adminGet<AccessRequestPage>(caller, '/admin/access-requests', { from: at }, signal),
  );
  if (error !== null)
    return (
      <div className="policy-pad">
        <ErrorBox error={error} fix={{ label: 'Try again', take: again }} />
      </div>
    );
  if (value === null) return <Loading what="access requests" />;
  const { requests, next } = value;
  return (
    <div className="policy-pad">
      {requests.length === 0 && next === null && (
        <Empty
          title="No access requests"
          text="Callers can request access to masked columns with osl why --request or POST /osl/access-requests."
        />
      )}
      {requests.length === 0 && next !== null && <p className="quiet">None in the newest records.</p>}
      <ul className="requests" aria-label="Access requests">
        {requests.map((request) => (
          <Request key={request.request_id} request={request} />
        ))}
      </ul>
      <p className="pager">
        {from.length > 0 && (
          <button type="button" onClick={() => setFrom(from.slice(0, -1))}>
            Newer
          </button>
        )}
        {next !== null && (
          <button type="button" onClick={() => setFrom([...from, next])}>
            Older
          </button>
        )}
      </p>
    </div>
  );
}

function Request({ request }: { readonly request: AccessRequestView }) {
  const { chain, object, at, offer } = request;
  return (
    <li className="request">
      <p>
        <strong>{chain.join(' → ')}</strong> asked for{' '}
        {object === null ? <em>an object that does not exist</em> : <code>{object}</code>}{' '}
        <span className="quiet">{formatTime(at).slice(0, 19)}</span>
      </p>
      {offer !== null && <Offered offer={offer} />}
      <p className="quiet">What for, the owner’s receiver was told. Request {request.request_id}</p>
    </li>
  );
}

function Offered({ offer: { declared, sees, roles, grant } }: { readonly offer: Offer }) {
  if (!declared) return <p className="quiet">It no longer exists.</p>;
  return (
    <>
      <p>
        Sees it now: <VisibilityPill sight={sees} />
      </p>
      {sees !== 'clear' && grant !== null && (
        <div className="offer">
          <p className="quiet">The smallest grant that would show it unmasked</p>
          <pre>{grantText(grant)}</pre>
        </div>
      )}
      {roles.length > 0 && (
        <p>
          Or a role:{' '}
          {roles.map(({ role, sees: would, also }) => (
            <span key={role} className="offer-role">
              <code>{role}</code> <VisibilityPill sight={would} />
              {also.count > 0 && (
                <span className="quiet" title={also.first.join(', ')}>
                  and {also.count} other {also.count === 1 ? 'object' : 'objects'}
                </span>
              )}
            </span>
          ))}
        </p>
      )}
    </>
  );
}
