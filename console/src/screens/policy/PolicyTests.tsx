import { useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { Freshness, PolicyTestsJob } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { FigureCard } from '../../parts/FigureCard.js';
import { formatCount } from '../../parts/load/format.js';
import { JobHead, Loading } from '../../parts/load/Loaded.js';
import { useJob, useLoad } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';

const WORDS = {
  begin: 'Run the tests',
  running: 'Running …',
  never: 'Not run since the server started.',
};

/** Results of the policy tests, and the rules that no test covers. */
export function PolicyTestsPanel() {
  const { caller } = useSession();
  const { job, error, begin, again } = useJob<PolicyTestsJob>('/admin/policy/tests');
  const serving = useLoad(`serving ${job?.ended_at ?? ''}`, (signal) =>
    adminGet<Freshness>(caller, '/admin/freshness', {}, signal),
  );
  if (job === null)
    return (
      <div className="pad">
        {error === null ? <Loading what="the tests" /> : <ErrorBox error={error} again={again} />}
      </div>
    );
  if (job.state === 'none')
    return (
      <Empty
        title="This policy has no tests"
        text={`${job.why ?? ''}. A file of tests says what its author meant.`}
      />
    );
  return (
    <div className="stack wide pad tests">
      <JobHead
        job={job}
        begin={begin}
        words={WORDS}
        progress={
          <span role="status" className="quiet">
            {formatCount(job.progress?.['tests'] ?? 0)} tests, {formatCount(job.progress?.['changes'] ?? 0)}{' '}
            changed rules so far
          </span>
        }
      />
      {error !== null && <ErrorBox error={error} again={again} />}
      {job.state === 'failed' && <p className="verdict bad">They could not be run: {job.why}</p>}
      {job.result !== null && (
        <Results result={job.result} serving={serving.value?.versions.policy ?? null} />
      )}
    </div>
  );
}

type TestRun = NonNullable<PolicyTestsJob['result']>;

function Results({ result, serving }: { readonly result: TestRun; readonly serving: string | null }) {
  const { results, coverage, claims, tested } = result;
  const [all, setAll] = useState(false);
  const failed = results.filter(({ ok }) => !ok);
  const shown = all || failed.length === 0 ? results : failed;
  return (
    <>
      <div className="figures">
        <FigureCard
          title="Tests"
          figure={`${results.length - failed.length} / ${results.length}`}
          bad={failed.length > 0}
        >
          {failed.length === 0 ? 'all pass' : `${failed.length} failed`}
        </FigureCard>
        {coverage !== null && (
          <FigureCard
            title="Rule coverage"
            figure={`${coverage.changes === 0 ? 100 : Math.floor((100 * coverage.held) / coverage.changes)} %`}
            bad={coverage.unheld.length > 0}
          >
            {formatCount(coverage.held)} of {formatCount(coverage.changes)} changed rules were caught
          </FigureCard>
        )}
        {claims.length > 0 && (
          <FigureCard
            title="Claims"
            figure={`${claims.filter((c) => c.verdict === 'proved').length} / ${claims.length}`}
            bad={claims.some((c) => c.verdict !== 'proved')}
          >
            proved for all rows and callers
          </FigureCard>
        )}
        <FigureCard
          title="Tested policy"
          figure={tested.policy === null ? 'none' : tested.policy.slice(0, 8)}
          bad={serving !== null && tested.policy !== serving}
        >
          {serving === null
            ? ''
            : tested.policy === serving
              ? 'is in force'
              : `another one is in force: ${serving.slice(0, 8)}`}
        </FigureCard>
      </div>
      <ul className="test-list" aria-label="Tests">
        {shown.map(({ name, ok, faults }) => (
          <li key={name} className={ok ? 'test-ok' : 'test-failed'}>
            <span aria-hidden="true">{ok ? '✓' : '✗'}</span>
            <span className="hidden">{ok ? 'passes: ' : 'failed: '}</span>
            {name}
            {faults.map((fault) => (
              <pre key={fault}>{fault}</pre>
            ))}
          </li>
        ))}
      </ul>
      {failed.length > 0 && (
        <button type="button" onClick={() => setAll(!all)}>
          {all ? 'Failed ones alone' : 'All of them'}
        </button>
      )}
      {claims.length > 0 && <Claims claims={claims} />}
      {coverage !== null && coverage.unheld.length > 0 && (
        <section>
          <h3>Changes to these rules would not fail any test</h3>
          <ul className="unheld">
            {coverage.unheld.map(({ rule, change }) => (
              <li key={`${rule} ${change}`}>
                <code>{rule}</code> {change}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Claims about the policy. Claims not proved are shown with a counterexample (row and callers) or the reason. */
function Claims({ claims }: { readonly claims: TestRun['claims'] }) {
  return (
    <section>
      <h3>Claims</h3>
      <ul className="test-list" aria-label="Claims">
        {claims.map(({ name, verdict, shows }) => (
          <li key={name} className={verdict === 'proved' ? 'test-ok' : 'test-failed'}>
            <span aria-hidden="true">{verdict === 'proved' ? '✓' : verdict === 'refuted' ? '✗' : '?'}</span>
            <span className="hidden">{verdict}: </span>
            {name}
            {shows.length > 0 && <pre>{shows.join('\n')}</pre>}
          </li>
        ))}
      </ul>
    </section>
  );
}
