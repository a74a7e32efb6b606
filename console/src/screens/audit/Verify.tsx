import type { ChainVerdict, VerificationJob } from '../../api/admin-types.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { formatCount, formatTime } from '../../parts/load/format.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useJob } from '../../parts/load/useLoad.js';

export function Verify() {
  const { job, error, begin, again } = useJob<VerificationJob>('/admin/audit/verification');
  return (
    <div className="stack wide pad verify">
      <div className="row">
        <button
          type="button"
          className="primary"
          disabled={job === null || job.state === 'running'}
          onClick={begin}
        >
          {job?.state === 'running' ? 'Verifying …' : 'Verify the log'}
        </button>
        {job !== null && <Standing job={job} />}
      </div>
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

function Standing({ job: { state, progress, ended_at, by } }: { readonly job: VerificationJob }) {
  if (state === 'running') return <Progress progress={progress} />;
  if (ended_at === null) return <span className="quiet">Not verified since the server started.</span>;
  return (
    <span className="quiet">
      {formatTime(ended_at).slice(0, 19)}
      {by === null ? '' : ` by ${by}`}
    </span>
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
      <dl>
        <dt>integrity</dt>
        <dd>{integrity}</dd>
        <dt>completeness</dt>
        <dd>{completeness}</dd>
        <dt>signed</dt>
        <dd>
          {anchor === null
            ? 'by no checkpoint'
            : `${formatCount(anchor.size)} records${anchor.time === null ? '' : `, ${formatTime(anchor.time).slice(0, 19)}`}`}
          {unanchored > 0 && `; ${formatCount(unanchored)} newer ones not yet`}
        </dd>
        {openDecisions > 0 && (
          <>
            <dt>under way</dt>
            <dd>{formatCount(openDecisions)} requests</dd>
          </>
        )}
        {kept !== null && (
          <>
            <dt>kept</dt>
            <dd>from record {formatCount(kept.from)} on</dd>
          </>
        )}
      </dl>
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
