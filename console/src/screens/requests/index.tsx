import { type ReactNode, useState } from 'react';
import type { ApprovalList } from '../../../../clients/typescript/types.js';
import { adminGet } from '../../api/admin.js';
import type { AccessRequestView, RecordPage } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { Loading } from '../../parts/load/Loaded.js';
import { type LoadState, useLoad, usePolling } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';
import { AccessRequest, BreakGlassUse } from './AccessRequest.js';
import { ApprovalRequest } from './ApprovalRequest.js';
import './requests.css';

interface AccessRequestPage {
  readonly requests: readonly AccessRequestView[];
  readonly next: string | null;
}

const REFRESH_MS = 10_000;
const USES = { action: 'break_glass', kind: 'decision', decision: 'allow', most: 20 };

/**
 * Requests for approval, which approvers decide here; for administrators also access requests and uses of break-glass
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
  const failed = [approvals, ...(isAdmin ? [access, uses] : [])].find(({ error }) => error !== null);
  if (failed !== undefined && failed.value === null) return <Failed of={failed} />;
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
    <div className="requests-pad">
      {items.length === 0 && next === null && (
        <Empty
          title="No requests"
          text="A query that needs an approval is refused with E0535. Sent with a reason, it is listed here for those who may approve it."
        />
      )}
      {items.length === 0 && next !== null && <p className="quiet">None in the newest records.</p>}
      <ul className="requests" aria-label="Requests">
        {[...items].sort((a, b) => (a.at < b.at ? 1 : -1)).map(({ shown }) => shown)}
      </ul>
      <p className="pager">
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
    <div className="requests-pad">
      <ErrorBox error={error} again={again} />
    </div>
  );
}
