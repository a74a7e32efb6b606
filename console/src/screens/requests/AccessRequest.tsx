import type { AccessRequestView, AuditRecord, Offer } from '../../api/admin-types.js';
import { grantText } from '../../parts/grant-text.js';
import { formatTime } from '../../parts/load/format.js';
import { VisibilityPill } from '../../parts/sight/Visibility.js';

/** An access request from the audit log, with the grant that would allow it. */
export function AccessRequest({ request }: { readonly request: AccessRequestView }) {
  const { chain, object, at, offer } = request;
  return (
    <li className="request">
      <p>
        <span className="request-kind">Access</span> <strong>{chain.join(' → ')}</strong> asked for{' '}
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

/** A use of break-glass access, from the audit log. */
export function BreakGlassUse({ record }: { readonly record: AuditRecord }) {
  const { reason, ends } = detailOf(record);
  return (
    <li className="request">
      <p>
        <span className="request-kind request-alarm">Break-glass</span>{' '}
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

/** Reason and end, as the gateway has recorded them; null if they cannot be read. */
function detailOf({ detail }: AuditRecord): { readonly reason: string | null; readonly ends: string | null } {
  let value: unknown;
  try {
    value = JSON.parse(detail ?? '{}');
  } catch {
    return { reason: null, ends: null };
  }
  const { reason, ends } = Object(value) as Record<string, unknown>; // each member is looked at
  return {
    reason: typeof reason === 'string' ? reason : null,
    ends: typeof ends === 'string' && !Number.isNaN(Date.parse(ends)) ? ends : null,
  };
}
