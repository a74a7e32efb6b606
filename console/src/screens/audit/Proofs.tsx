import { useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { RecordProof } from '../../api/admin-types.js';
import { download } from '../../parts/download.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useSession } from '../../shell/session.js';
import { checkProof, type ProofVerdict } from './proof.js';
import { Verdict } from './Verdict.js';

interface Checked {
  readonly proofs: readonly RecordProof[];
  readonly verdicts: readonly ProofVerdict[];
}

/** Proofs of the records of a request: had, checked here, and saved. */
export function Proofs({ requestId }: { readonly requestId: string }) {
  const { caller } = useSession();
  const [checked, setChecked] = useState<Checked | null>(null);
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
    <section className="proofs">
      <div className="proofs-head">
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
      {error !== null && <ErrorBox error={error} />}
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
