import { adminGet } from '../../api/admin.js';
import type { AuditRecord, RecordPage } from '../../api/admin-types.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { momentOf } from '../../parts/load/words.js';
import { useSession } from '../../shell/session.js';
import { Proofs } from './Proofs.js';
import { particularsOf, resultOf, sentenceOf, whoOf } from './record-words.js';

export interface ChosenRequest {
  readonly id: string;
  /** A time at which there was a record of it. */
  readonly near: string;
}

interface StoryProps {
  readonly request: ChosenRequest;
  readonly onClose: () => void;
}

/** All records of one request, as what happened. */
export function Story({ request, onClose }: StoryProps) {
  const { caller } = useSession();
  const { value, error, again } = useLoad(request.id, (signal) =>
    adminGet<RecordPage>(
      caller,
      `/admin/audit/requests/${encodeURIComponent(request.id)}`,
      { near: request.near },
      signal,
    ),
  );
  const first = value?.records[0];
  return (
    <aside className="story" aria-label="One request">
      <header className="story-head">
        <div>
          <h2>{first === undefined ? 'One request' : whoOf(first)}</h2>
          <p className="quiet">
            request <code>{request.id}</code>
          </p>
        </div>
        <button type="button" className="plain" onClick={onClose} aria-label="Close the request">
          ✕
        </button>
      </header>
      {error !== null && <ErrorBox error={error} fix={{ label: 'Try again', take: again }} />}
      {value === null && error === null && <p className="quiet">Loading …</p>}
      {value !== null && (
        <ol className="story-line">
          {value.records.map((record) => (
            <Happened key={`${record.writer} ${record.seq}`} record={record} />
          ))}
        </ol>
      )}
      {value !== null && <Proofs requestId={request.id} />}
    </aside>
  );
}

function Happened({ record }: { readonly record: AuditRecord }) {
  const { tone } = resultOf(record);
  return (
    <li className={`happened happened-${tone}`}>
      <p className="quiet">{momentOf(record.ts)}</p>
      <p>{sentenceOf(record)}</p>
      <details>
        <summary>Details</summary>
        <dl>
          {particularsOf(record).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </li>
  );
}
