import { type FormEvent, useId, useState } from 'react';
import type { SignedInCaller } from '../api/caller.js';
import { ErrorBox } from '../parts/ErrorBox.js';
import type { IdentityProvider, ServerSettings } from './session.js';
import { demoToken, type SignedIn, signedInCaller } from './sign-in.js';

interface SignInProps {
  readonly settings: ServerSettings;
  readonly onCaller: (caller: SignedInCaller) => void;
  /** True if the tab stores the sign-in, so that it survives a reload; false when an additional caller signs in. */
  readonly stored?: boolean;
  readonly ended?: () => void;
}

/** Form to sign in as a demo caller, through an identity provider, or with a token. */
export function SignIn({ settings, onCaller, stored = true, ended }: SignInProps) {
  const [fault, setFault] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const take = (signedIn: SignedIn): void => {
    const options = { admin: settings.admin, stored, ...(ended !== undefined && { ended }) };
    const caller = signedInCaller(signedIn, options);
    if (caller === null) setFault('This is no actor token: one begins with `ey` and has two dots.');
    else onCaller(caller);
  };
  const attempt = (work: () => Promise<void>): void => {
    setBusy(true);
    setFault(null);
    work()
      .catch(setFault)
      .finally(() => setBusy(false));
  };
  const { demo, issuers } = settings;
  return (
    <div className="sign-in" aria-busy={busy}>
      {demo !== null && (
        <DemoCallers
          callers={demo.callers}
          busy={busy}
          onChoose={(chain) =>
            attempt(async () => take({ kind: 'demo', chain, token: await demoToken(chain) }))
          }
        />
      )}
      {stored && issuers.length > 0 && (
        <Providers
          issuers={issuers}
          busy={busy}
          onChoose={(issuer) => attempt(async () => (await import('./oidc.js')).redirectToProvider(issuer))}
        />
      )}
      <TokenForm
        localTokens={settings.local_tokens}
        isOnly={demo === null && issuers.length === 0}
        onToken={(token) => take({ kind: 'pasted', token })}
      />
      {fault !== null && <ErrorBox error={fault} />}
    </div>
  );
}

interface DemoCallersProps {
  readonly callers: readonly { readonly chain: readonly string[]; readonly about: string }[];
  readonly busy: boolean;
  readonly onChoose: (chain: readonly string[]) => void;
}

function DemoCallers({ callers, busy, onChoose }: DemoCallersProps) {
  return (
    <section>
      <h2>Sign in to the demo as</h2>
      <ul className="sign-in-callers">
        {callers.map(({ chain, about }) => (
          <li key={chain.join(' ')}>
            <button type="button" disabled={busy} onClick={() => onChoose(chain)}>
              <strong>{chain.join(' → ')}</strong>
              <span>{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ProvidersProps {
  readonly issuers: readonly IdentityProvider[];
  readonly busy: boolean;
  readonly onChoose: (issuer: IdentityProvider) => void;
}

function Providers({ issuers, busy, onChoose }: ProvidersProps) {
  return (
    <section>
      <h2>Your organisation’s account</h2>
      {issuers.map((issuer) => (
        <button
          key={`${issuer.issuer} ${issuer.client_id}`}
          type="button"
          className="primary wide"
          disabled={busy}
          onClick={() => onChoose(issuer)}
        >
          Sign in with {hostOf(issuer.issuer)}
        </button>
      ))}
    </section>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

interface TokenFormProps {
  readonly localTokens: boolean;
  readonly isOnly: boolean;
  readonly onToken: (token: string) => void;
}

function TokenForm({ localTokens, isOnly, onToken }: TokenFormProps) {
  const id = useId();
  const [token, setToken] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onToken(token.trim());
  };
  return (
    <section>
      <h2>{isOnly ? 'Sign in with a token' : 'Or with a token'}</h2>
      <form onSubmit={submit}>
        <label htmlFor={id}>Actor token</label>
        <div className="sign-in-row">
          <input
            id={id}
            value={token}
            onChange={(event) => setToken(event.target.value)}
            autoComplete="off"
            spellCheck={false}
            placeholder="eyJ…"
          />
          <button type="submit" className={isOnly ? 'primary' : ''} disabled={token.trim() === ''}>
            Sign in
          </button>
        </div>
      </form>
      {localTokens && (
        <p className="quiet">
          <code>npx osl token --subject user:…</code> prints one. It lives five minutes.
        </p>
      )}
    </section>
  );
}
