import { useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { AuditRecord, RecordPage, RecordProof } from '../../api/admin-types.js';
import { download } from '../../parts/CopyText.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { FactList } from '../../parts/FactList.js';
import { formatTime } from '../../parts/load/format.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { Verdict } from '../../parts/proof/ProofFileCheck.js';
import { checkProof, type ProofCheck } from '../../parts/proof/proof.js';
import { useSession } from '../../shell/session.js';
import { particularsOf, resultOf, sentenceOf, whoOf } from './RecordList.js';

export interface ChosenRequest {
  readonly id: string;
  /** Time of any record of the request. The server searches only records near this time, which is faster. */
  readonly near: string;
}

interface RequestRecordsProps {
  readonly request: ChosenRequest;
  readonly onClose: () => void;
}

/** All records of one request as a timeline. */
export function RequestRecords({ request, onClose }: RequestRecordsProps) {
  const { caller } = useSession();
  const state = useLoad(request.id, (signal) =>
    adminGet<RecordPage>(
      caller,
      `/admin/audit/requests/${encodeURIComponent(request.id)}`,
      { near: request.near },
      signal,
    ),
  );
  const first = state.value?.records[0];
  return (
    <aside className="aside" aria-label="One request">
      <header>
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
      <Loaded what="its records" state={state}>
        {({ records }) => (
          <>
            <ol className="stack wide story-line">
              {records.map((record) => (
                <Happened key={`${record.writer} ${record.seq}`} record={record} />
              ))}
            </ol>
            <Proofs requestId={request.id} />
          </>
        )}
      </Loaded>
    </aside>
  );
}

function Happened({ record }: { readonly record: AuditRecord }) {
  const { tone } = resultOf(record);
  return (
    <li className={`happened happened-${tone}`}>
      <p className="quiet">{formatTime(record.ts)}</p>
      <p>{sentenceOf(record)}</p>
      <details>
        <summary>Details</summary>
        <FactList facts={particularsOf(record)} />
      </details>
    </li>
  );
}

interface CheckedProofs {
  readonly proofs: readonly RecordProof[];
  readonly verdicts: readonly ProofCheck[];
}

/** Loads the proofs of a request's records, checks them in the browser, and offers them for download. */
function Proofs({ requestId }: { readonly requestId: string }) {
  const { caller } = useSession();
  const [checked, setChecked] = useState<CheckedProofs | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const prove = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const { proofs } = await adminGet<{ readonly proofs: readonly RecordProof[] }>(
        caller,
        `/admin/audit/requests/${encodeURIComponent(requestId)}/proofs`,
      );
      const verdicts = await Promise.all(proofs.map((one) => checkProof(one.text, one.verifier_key)));
      setChecked({ proofs, verdicts });
    } catch (fault) {
      setError(fault);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className="stack">
      <div className="row">
        <button type="button" className="primary" disabled={isBusy} onClick={() => void prove()}>
          {isBusy ? 'Proving …' : 'Prove and check'}
        </button>
        {checked !== null && checked.proofs.length > 0 && (
          <button
            type="button"
            onClick={() =>
              download(
                `proof-${requestId}.txt`,
                checked.proofs.map(({ text }) => text).join(''),
                'text/plain',
              )
            }
          >
            Save the proof
          </button>
        )}
      </div>
      {error !== null && <ErrorBox error={error} again={() => void prove()} />}
      {checked !== null && checked.proofs.length === 0 && (
        <p role="status">
          No signed checkpoint covers it yet: one is signed every second while records are added. Try again in
          a moment.
        </p>
      )}
      {checked?.verdicts.map((verdict, i) => (
        <Verdict key={checked.proofs[i]?.text} verdict={verdict} />
      ))}
      {checked !== null && checked.proofs.length > 0 && (
        <p className="quiet">
          Checked in this browser, with the key that lies beside the log. A key that was kept elsewhere proves
          more: use it under “Check a proof”.
        </p>
      )}
    </section>
  );
}
