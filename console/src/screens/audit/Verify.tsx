import type { ChainVerdict, VerificationJob } from '../../api/admin-types.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { FactList } from '../../parts/FactList.js';
import { formatCount, formatTime } from '../../parts/load/format.js';
import { JobHead, Loading } from '../../parts/load/Loaded.js';
import { useJob } from '../../parts/load/useLoad.js';

const WORDS = {
  begin: 'Verify the log',
  running: 'Verifying …',
  never: 'Not verified since the server started.',
};

export function Verify() {
  const { job, error, begin, again } = useJob<VerificationJob>('/admin/audit/verification');
  return (
    <div className="stack wide pad verify">
      <JobHead
        job={job}
        begin={begin}
        words={WORDS}
        progress={job !== null && <Progress progress={job.progress} />}
      />
      {error !== null && <ErrorBox error={error} again={again} />}
      {job === null && error === null && <Loading what="the last verification" />}
      {job?.state === 'failed' && <p className="verdict bad">It could not be verified: {job.why}</p>}
      {job?.result != null && (
        <>
          <p className={job.result.ok ? 'verdict good' : 'verdict bad'} role="status">
            {job.result.ok ? 'Every chain holds.' : 'Not every chain holds.'}
          </p>
          <div className="chains">
            {job.result.chains.map((chain) => (
              <Chain key={chain.chain} chain={chain} />
            ))}
          </div>
        </>
      )}
      <p className="quiet">
        The server reads every record and holds it against the keys that lie beside the log. With keys and
        witnesses that are kept elsewhere <code>osl audit verify --key … --witness …</code> proves more.
      </p>
    </div>
  );
}

function Progress({ progress }: { readonly progress: VerificationJob['progress'] }) {
  const at = (name: string): number => progress?.[name] ?? 0;
  const all = Math.max(1, at('all_segments'));
  return (
    <span className="row">
      <progress aria-label="Verified" value={progress === null ? 0 : at('segments')} max={all} />
      <span role="status" className="quiet">
        chain {at('chain')} of {at('chains')}, {formatCount(at('records'))} records
      </span>
    </span>
  );
}

function Chain({ chain }: { readonly chain: ChainVerdict }) {
  const { integrity, completeness, records, unanchored, anchor, problem, kept, openDecisions } = chain;
  const isGood = integrity === 'intact' && completeness === 'complete';
  return (
    <article className={`box chain ${isGood ? 'chain-good' : 'chain-bad'}`}>
      <h3>{chain.chain}</h3>
      <p className="chain-figure">{formatCount(records)} records</p>
      <FactList
        facts={[
          ['integrity', integrity],
          ['completeness', completeness],
          ['signed', signedWords(anchor, unanchored)],
          ['under way', openDecisions === 0 ? null : `${formatCount(openDecisions)} requests`],
          ['kept', kept === null ? null : `from record ${formatCount(kept.from)} on`],
        ]}
      />
      {problem !== null && (
        <p className="chain-problem bad">
          <strong>{problem.kind}</strong>: {problem.message}, {problem.segment} at byte{' '}
          {formatCount(problem.offset)}, record {formatCount(problem.seq)}
        </p>
      )}
      {chain.verifier_key !== null && (
        <details>
          <summary>Its key</summary>
          <code className="chain-key">{chain.verifier_key}</code>
        </details>
      )}
    </article>
  );
}

function signedWords(anchor: ChainVerdict['anchor'], unanchored: number): string {
  const newer = unanchored === 0 ? '' : `; ${formatCount(unanchored)} newer ones not yet`;
  if (anchor === null) return `by no checkpoint${newer}`;
  const time = anchor.time === null ? '' : `, ${formatTime(anchor.time).slice(0, 19)}`;
  return `${formatCount(anchor.size)} records${time}${newer}`;
}
