import { useState } from 'react';
import type { Difference, Draft, Judgement, Publications } from '../../../../clients/typescript/types.js';
import { adminGet, adminPost } from '../../api/admin.js';
import { Empty } from '../../parts/Empty.js';
import { Words } from '../../parts/ErrorBox.js';
import { formatCount, formatTime } from '../../parts/load/format.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';

/** Result of validating a draft: its diagnostics, its source, and the subjects that gain or lose access. */
export function DraftValidation({ draft, name }: { readonly draft: Draft; readonly name: string }) {
  const { caller } = useSession();
  const text = useLoad(`text ${draft.id}`, (signal) =>
    adminGet<{ readonly draft?: { readonly text: string } }>(caller, `/osl/objects/${draft.id}`, {}, signal),
  );
  const judged = useLoad(`judged ${draft.id}`, () =>
    adminPost<Judgement>(caller, '/osl/validate', { draft: draft.id }),
  );
  return (
    <article className="stack wide draft">
      <h2>{name}</h2>
      <Loaded what="the check of the draft" state={judged}>
        {(judgement) => <Verdict judged={judgement} />}
      </Loaded>
      {text.value?.draft !== undefined && (
        <details open={judged.value?.ok === false}>
          <summary>Draft source</summary>
          <pre className="box draft-text">{text.value.draft.text}</pre>
        </details>
      )}
    </article>
  );
}

function Verdict({ judged: { ok, diagnostics, diff } }: { readonly judged: Judgement }) {
  return (
    <>
      <p className={ok ? 'verdict good' : 'verdict bad'} role="status">
        {ok ? 'It could serve.' : 'It could not serve.'}
      </p>
      {diagnostics.length > 0 && (
        <ul className="diagnostics">
          {diagnostics.map(({ code, path, message, hint }) => (
            <li key={`${code} ${path} ${message}`}>
              <span className="error-code">{code}</span> <code>{path}</code> <Words text={message} />
              {hint !== null && <span className="quiet"> {hint}</span>}
            </li>
          ))}
        </ul>
      )}
      {diff !== null && <Gains diff={diff} />}
    </>
  );
}

function Gains({ diff: { access, changes } }: { readonly diff: Difference }) {
  return (
    <>
      <section>
        <h3>Access gained and lost</h3>
        {access.length === 0 && <p className="quiet">No role gains or loses access.</p>}
        {access.map(({ role, subjects, changes: of }) => (
          <div key={role} className="box gain">
            <p>
              <strong>{role}</strong>{' '}
              <span className="quiet">
                {subjects.first.join(', ')}
                {subjects.count > subjects.first.length &&
                  ` and ${formatCount(subjects.count - subjects.first.length)} more`}
              </span>
            </p>
            <ul>
              {of.map((change) => (
                <Change key={change.object} change={change} />
              ))}
            </ul>
          </div>
        ))}
      </section>
      <section>
        <h3>Changes to the graph</h3>
        <ul className="graph-changes">
          {changes.map(({ change, kind, name }) => (
            <li key={`${change} ${kind} ${name}`}>
              {change} {kind} <code>{name}</code>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

const SIGNS = { gains: '+', loses: '−', differs: '≠' } as const;

function Change({
  change: { object, effect, before, after },
}: {
  readonly change: Difference['access'][number]['changes'][number];
}) {
  return (
    <li className={`row change-${effect}`}>
      <span className="change-sign" aria-hidden="true">
        {SIGNS[effect]}
      </span>
      <span className="hidden">{effect}</span>
      <code>{object}</code>
      <span className="quiet">
        {before?.access ?? 'nothing'} → {after?.access ?? 'nothing'}
      </span>
    </li>
  );
}

/** Drafts of the manifest, and the subjects that would gain or lose access through each. */
export function Drafts() {
  const { caller } = useSession();
  const state = useLoad('drafts', (signal) => adminGet<Publications>(caller, '/osl/objects', {}, signal));
  return (
    <Loaded what="drafts" state={state}>
      {({ drafts }) => <DraftList drafts={drafts} />}
    </Loaded>
  );
}

function DraftList({ drafts }: Pick<Publications, 'drafts'>) {
  const [chosen, setChosen] = useState<string | null>(null);
  if (drafts.length === 0)
    return (
      <Empty
        title="No drafts"
        text="A draft is a saved change that is checked before it is published: osl publish --draft, or POST /osl/objects."
      />
    );
  const draft = drafts.find(({ id }) => id === chosen) ?? null;
  return (
    <div className="split">
      <ul className="split-list" aria-label="Drafts">
        {drafts.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              className="plain wide item"
              aria-pressed={one.id === chosen}
              onClick={() => setChosen(one.id)}
            >
              <span className="item-title">{nameOf(one)}</span>
              <span className="item-state">{one.state}</span>
              <span className="quiet">
                {one.author.subject}, {formatTime(one.at).slice(0, 16)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <div className="split-main">
        {draft === null ? (
          <Empty
            title="Choose a draft"
            text="The draft is validated as if it were published, and marked as valid if it could be. Nothing is published."
          />
        ) : (
          <DraftValidation key={draft.id} draft={draft} name={nameOf(draft)} />
        )}
      </div>
    </div>
  );
}

function nameOf({ id }: Draft): string {
  return `Draft ${id.slice(0, 8)}`;
}
