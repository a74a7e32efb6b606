import { adminGet } from '../../api/admin.js';
import type { ShadowRow, ShadowView } from '../../api/admin-types.js';
import { Empty } from '../../parts/Empty.js';
import { FigureCard } from '../../parts/FigureCard.js';
import { formatCount, formatTime } from '../../parts/load/format.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad, usePolling } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';

const POLL_MS = 5_000;

/** Changes that a shadow policy would make: totals, and differences by caller and object. Read only. */
export function ShadowPolicyPanel() {
  const { caller } = useSession();
  const state = useLoad('shadow policy', (signal) =>
    adminGet<ShadowView>(caller, '/admin/policy/shadow', {}, signal),
  );
  usePolling(state.again, state.value?.shadow?.state === 'running' ? POLL_MS : null);
  return (
    <div className="pad">
      <Loaded what="the comparison" state={state}>
        {(view) => <Comparison {...view} />}
      </Loaded>
    </div>
  );
}

function Comparison({ shadow, processes }: ShadowView) {
  if (shadow === null)
    return (
      <Empty title="No shadow policy" text="Compare a policy with the served one on real questions:">
        <code>osl policy shadow start policy.new.yaml</code>
      </Empty>
    );
  return (
    <div className="stack wide shadow">
      <Standing shadow={shadow} processes={processes} />
      <Totals shadow={shadow} />
      {shadow.rows.length === 0 ? (
        <p>{shadow.questions === 0 ? 'No questions yet.' : 'No question would be answered otherwise.'}</p>
      ) : (
        <Differences rows={shadow.rows} />
      )}
      {shadow.rows_left_out > 0 && (
        <p className="quiet">{formatCount(shadow.rows_left_out)} more callers and objects</p>
      )}
    </div>
  );
}

type Shadow = NonNullable<ShadowView['shadow']>;

function Standing({ shadow, processes }: Pick<ShadowView, 'processes'> & { readonly shadow: Shadow }) {
  const { policy, state, by, started_at, until, ended_at } = shadow;
  const end = state === 'running' ? `until ${time(until)}` : ended_at === null ? '' : time(ended_at);
  return (
    <p>
      Policy <code>{policy.slice(0, 8)}</code>, started {time(started_at)} by {by}: <strong>{state}</strong>{' '}
      {end}
      {state === 'running' && processes.comparing < processes.all && (
        <span className="quiet">
          {' '}
          ({processes.comparing} of {processes.all} processes)
        </span>
      )}
    </p>
  );
}

function Totals({ shadow }: { readonly shadow: Shadow }) {
  const { questions, same, different, waiting, not_compared } = shadow;
  const left = Object.values<number>({ ...not_compared }).reduce((sum, n) => sum + n, 0);
  const cards = [
    ['Questions', questions],
    ['Same', same],
    ['Different', different],
    ['Waiting', waiting],
    ['Not compared', left],
  ] as const;
  return (
    <div className="figures">
      {cards.map(([title, figure]) => (
        <FigureCard key={title} title={title} figure={formatCount(figure)} />
      ))}
    </div>
  );
}

function Differences({ rows }: { readonly rows: readonly ShadowRow[] }) {
  return (
    <ul className="stack" aria-label="Differences">
      {rows.map((row) => (
        <li key={`${row.chain.join(' ')} ${row.object}`} className="box stack request">
          <p>
            <strong>{row.chain.join(' → ')}</strong> on <code>{row.object}</code>{' '}
            <span className="quiet">
              {formatCount(row.questions)} {row.questions === 1 ? 'question' : 'questions'}, last{' '}
              {time(row.last_at)}
            </span>
          </p>
          <ul className="shadow-effects">
            {effectsOf(row).map(({ name, count, detail, gains }) => (
              <li key={name} className={gains ? 'shadow-gains' : 'shadow-loses'}>
                {formatCount(count)} {name}
                {detail !== '' && `: ${detail}`}
              </li>
            ))}
          </ul>
          {row.examples.map(({ fingerprint, shape, questions }) => (
            <pre key={fingerprint}>
              {formatCount(questions)} × {shape}
            </pre>
          ))}
        </li>
      ))}
    </ul>
  );
}

interface ShownEffect {
  readonly name: string;
  readonly count: number;
  readonly detail: string;
  /** True if callers see more than now, or may see more. */
  readonly gains: boolean;
}

function effectsOf(row: ShadowRow): readonly ShownEffect[] {
  const codes = row.codes.join(', ');
  const masks = row.masked_columns.map(({ column, mask }) => `${column} (${mask})`).join(', ');
  const all: readonly ShownEffect[] = [
    { name: 'refused', count: row.refused, detail: codes, gains: false },
    { name: 'newly answered', count: row.allowed, detail: `now ${codes}`, gains: true },
    { name: 'masked', count: row.masked, detail: masks, gains: false },
    { name: 'newly shown', count: row.shown, detail: row.shown_columns.join(', '), gains: true },
    { name: 'with fewer rows', count: row.narrower, detail: '', gains: false },
    { name: 'with more rows', count: row.wider, detail: '', gains: true },
    { name: 'with other rows', count: row.other_rows, detail: '', gains: true },
    { name: 'with other masks', count: row.other_masks, detail: '', gains: true },
    { name: 'with other group rules', count: row.groups, detail: '', gains: true },
  ];
  return all.filter(({ count }) => count > 0);
}

function time(at: string): string {
  return formatTime(at).slice(0, 19);
}
