import { type FormEvent, useId, useState } from 'react';
import type { Why } from '../../../../clients/typescript/types.js';
import type { SignedInCaller } from '../../api/caller.js';
import { getJson, postJson } from '../../api/http.js';
import { ErrorBox, Words } from '../../parts/ErrorBox.js';
import { Loaded } from '../../parts/load/Loaded.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { useKept } from '../../parts/useKept.js';
import { useSession } from '../../shell/session.js';

interface WhyPanelProps {
  /** Full names of the masked columns that a cell depends on. */
  readonly objects: readonly string[];
  readonly onClose: () => void;
}

const SIGHTS: Readonly<Record<string, string>> = {
  clear: 'shown in the clear',
  partly_masked: 'masked in some rows',
  masked: 'masked',
  aggregates: 'in figures only',
};

/** The gateway's explanation of why a cell is masked for this caller, and a way to request access. */
export function WhyPanel({ objects, onClose }: WhyPanelProps) {
  const { caller } = useSession();
  return (
    <aside className="aside" aria-label="Why is this masked?">
      <header>
        <h2>Why is this masked?</h2>
        <button type="button" className="plain" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {objects.length === 0 && (
        <p className="quiet">
          This value was worked out of masked ones. Ask for the columns themselves to see which.
        </p>
      )}
      {objects.map((object) => (
        <WhyObject key={object} caller={caller} object={object} />
      ))}
    </aside>
  );
}

function WhyObject({ caller, object }: { readonly caller: SignedInCaller; readonly object: string }) {
  const state = useLoad(object, (signal) =>
    getJson<Why>(caller, `/osl/why?object=${encodeURIComponent(object)}`, { signal }),
  );
  return (
    <section className="stack why-object">
      <h3>
        <code>{object}</code>
      </h3>
      <Loaded what="the reason" state={state}>
        {(why) => <Reasons caller={caller} why={why} />}
      </Loaded>
    </section>
  );
}

function Reasons({ caller, why }: { readonly caller: SignedInCaller; readonly why: Why }) {
  return (
    <>
      <p>
        <strong className="pill masked">{SIGHTS[why.sees] ?? why.sees}</strong>
      </p>
      {why.masked_as !== null && (
        <p>
          Shown as <Words text={why.masked_as} />.
        </p>
      )}
      <ul>
        {why.because.map((reason) => (
          <li key={reason}>
            <Words text={reason} />
          </li>
        ))}
      </ul>
      {why.grants.length > 0 && (
        <p className="quiet">
          {why.grants.length === 1 ? 'Your grant' : 'Your grants'}{' '}
          {why.grants.map((grant) => (
            <code key={grant}>{grant} </code>
          ))}
        </p>
      )}
      <RequestAccess caller={caller} object={why.object} />
    </>
  );
}

function RequestAccess({ caller, object }: { readonly caller: SignedInCaller; readonly object: string }) {
  const id = useId();
  const [reason, setReason] = useKept(`reason ${object}`, '');
  const [said, setSaid] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setError(null);
    postJson<{ readonly delivered: boolean }>(caller, '/osl/access-requests', { object, reason }).then(
      ({ delivered }) => {
        setReason('');
        setSaid(
          delivered
            ? 'Asked: the owner of the policy has it.'
            : 'On record: the owner finds it in the audit log.',
        );
      },
      setError,
    );
  };
  if (said !== null) return <p role="status">{said}</p>;
  return (
    <form className="why-request" onSubmit={submit}>
      <label htmlFor={id}>What do you need it for?</label>
      <textarea
        id={id}
        rows={2}
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      <button type="submit" disabled={reason.trim() === ''}>
        Request access
      </button>
      {error !== null && <ErrorBox error={error} />}
    </form>
  );
}
