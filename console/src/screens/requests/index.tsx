import { type ReactNode, useState } from 'react';
import type { ApprovalList } from '../../../../clients/typescript/types.js';
import { adminGet } from '../../api/admin.js';
import type { AccessRequestView, AuditRecord, Offer, RecordPage } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatTime, grantText } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { type LoadState, useLoad, usePolling } from '../../parts/load/useLoad.js';
import { VisibilityPill } from '../../parts/Visibility.js';
import { useSession } from '../../shell/session.js';
import { ApprovalRequest } from './ApprovalRequest.js';
import './requests.css';

interface AccessRequestPage {
  readonly requests: readonly AccessRequestView[];
  readonly next: string | null;
}

const REFRESH_MS = 10_000;
const USES = { action: 'break_glass', kind: 'decision', decision: 'allow', most: 20 };

/**
 * Requests for approval, which approvers decide here. Administrators also see access requests and uses of break-glass
 * access. Newest first.
 */
export function Screen() {
  const { caller, settings } = useSession();
  const isAdmin = settings.admin && caller.identity.adminRoles.length > 0;
  const [from, setFrom] = useState<readonly string[]>([]);
  const at = from.at(-1) ?? null;
  const approvals = useLoad('approvals', (signal) =>
    adminGet<ApprovalList>(caller, '/osl/approvals', {}, signal),
  );
  const access = useLoad(isAdmin ? `requests ${at ?? ''}` : null, (signal) =>
    adminGet<AccessRequestPage>(caller, '/admin/access-requests', { from: at }, signal),
  );
  const uses = useLoad(isAdmin ? 'break-glass' : null, (signal) =>
    adminGet<RecordPage>(caller, '/admin/audit/records', USES, signal),
  );
  usePolling(approvals.again, REFRESH_MS);
  const loads = [approvals, ...(isAdmin ? [access, uses] : [])];
  const failed = loads.find(({ error, value }) => error !== null && value === null);
  if (failed !== undefined) return <Failed of={failed} />;
  const isLoading = approvals.value === null || (isAdmin && (access.value === null || uses.value === null));
  if (isLoading) return <Loading what="requests" />;
  const next = access.value?.next ?? null;
  const items: readonly Item[] = [
    ...(at === null ? (approvals.value?.approvals ?? []) : []).map((approval) => ({
      at: approval.requested_at,
      shown: <ApprovalRequest key={approval.id} approval={approval} onDecided={approvals.again} />,
    })),
    ...(access.value?.requests ?? []).map((request) => ({
      at: request.at,
      shown: <AccessRequest key={request.request_id} request={request} />,
    })),
    ...(at === null ? (uses.value?.records ?? []) : []).map((record) => ({
      at: record.ts,
      shown: <BreakGlassUse key={record.request_id} record={record} />,
    })),
  ];
  return (
    <div className="pad requests-pad">
      {items.length === 0 && next === null && (
        <Empty
          title="No requests"
          text="A query that needs an approval is refused with E0535. Sent with a reason, it is listed here for those who may approve it."
        />
      )}
      {items.length === 0 && next !== null && <p className="quiet">None in the newest records.</p>}
      <ul className="stack" aria-label="Requests">
        {[...items].sort((a, b) => (a.at < b.at ? 1 : -1)).map(({ shown }) => shown)}
      </ul>
      <p className="row requests-pager">
        {from.length > 0 && (
          <button type="button" onClick={() => setFrom(from.slice(0, -1))}>
            Newer
          </button>
        )}
        {next !== null && (
          <button type="button" onClick={() => setFrom([...from, next])}>
            Older access requests
          </button>
        )}
      </p>
    </div>
  );
}

interface Item {
  /** RFC 3339 time. */
  readonly at: string;
  readonly shown: ReactNode;
}

function Failed({ of: { error, again } }: { readonly of: Pick<LoadState<unknown>, 'error' | 'again'> }) {
  return (
    <div className="pad requests-pad">
      <ErrorBox error={error} again={again} />
    </div>
  );
}

/** An access request from the audit log, with the grant that would allow it. */
function AccessRequest({ request }: { readonly request: AccessRequestView }) {
  const { chain, object, at, offer } = request;
  return (
    <li className="box stack request">
      <p>
        <span className="pill request-kind">Access</span> <strong>{chain.join(' → ')}</strong> asked for{' '}
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
            <span key={role} className="row offer-role">
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

/** A use of break-glass access, from the audit log. */
function BreakGlassUse({ record }: { readonly record: AuditRecord }) {
  const { reason, ends } = detailOf(record);
  return (
    <li className="box stack request">
      <p>
        <span className="pill request-kind request-alarm">Break-glass</span>{' '}
        <strong>{record.chain.join(' → ')}</strong> used emergency access{' '}
        <span className="quiet">{formatTime(record.ts).slice(0, 19)}</span>
      </p>
      {reason !== null && <blockquote>{reason}</blockquote>}
      {ends !== null && (
        <p className="quiet">
          Until {formatTime(ends).slice(0, 19)}. Request {record.request_id}
        </p>
      )}
    </li>
  );
}

/** Reads the reason and the end of the access from a record; each is null if it is missing or invalid. */
function detailOf({ detail }: AuditRecord): { readonly reason: string | null; readonly ends: string | null } {
  let value: unknown;
  try {
    value = JSON.parse(detail ?? '{}');
  } catch {
    return { reason: null, ends: null };
  }
  const { reason, ends } = Object(value) as Record<string, unknown>; // each member is checked
  return {
    reason: typeof reason === 'string' ? reason : null,
    ends: typeof ends === 'string' && !Number.isNaN(Date.parse(ends)) ? ends : null,
  };
}
