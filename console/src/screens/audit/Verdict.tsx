import { momentOf } from '../../parts/load/words.js';
import type { ProofCheck } from './proof.js';

/** What the check of one proof came to, step by step. */
export function Verdict({ verdict }: { readonly verdict: ProofCheck }) {
  const { ok, steps, record, checkpoint } = verdict;
  return (
    <div className={`proof ${ok ? 'proof-good' : 'proof-bad'}`} role="status">
      <p className="proof-title">{ok ? titleOf(record) : 'Not proved'}</p>
      <ol>
        {steps.map((step) => (
          <li key={step.what}>
            <span aria-hidden="true">{step.ok ? '✓' : '✗'}</span>
            <span className="hidden">{step.ok ? 'good: ' : 'not good: '}</span>
            {step.what}, <span className="quiet">{step.detail}</span>
          </li>
        ))}
      </ol>
      {checkpoint !== null && checkpoint.time !== null && (
        <p className="quiet">
          Signed {momentOf(checkpoint.time)} over {checkpoint.size} records
        </p>
      )}
      {record !== null && (
        <details>
          <summary>The record</summary>
          <pre>{JSON.stringify(record, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

function titleOf(record: ProofCheck['record']): string {
  const kind = String(record?.['kind'] ?? 'record');
  return `Proved: the ${kind} is record ${String(record?.['seq'] ?? '?')} of the log`;
}
