import { isSet, readSetting } from '../src/service/settings/table.js';
import type { Settings } from '../src/service/settings.js';
import { localServerUrl } from './client.js';
import { usage } from './exit.js';
import { settingsOf } from './flags.js';
import type { IssuedToken } from './issuer.js';
import { note, wantsJson } from './output.js';
import { readServerFile, runningServer } from './server-file.js';

export interface CallerFlags {
  readonly token?: string;
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly policy?: string;
  /** REST address of the server; default: the server running in the data directory. */
  readonly server?: string;
}

const DEMO_SUBJECT = 'user:analyst';

/**
 * A token: `given` by the user or taken from a login (`renews`: asking again returns a new one), or `minted` with the
 * key in the data directory.
 */
export type CallerToken =
  | { readonly kind: 'given'; readonly token: string; readonly renews: boolean }
  | { readonly kind: 'minted'; readonly issued: IssuedToken };

/**
 * Returns the token to use, in order of precedence: `--token`; minted for `--subject` or `--chain`; `OSL_TOKEN`; minted
 * for `OSL_SUBJECT`; from the login at the server (`osl login`); minted for the policy's only subject, or in the demo
 * for `user:analyst`. An assumed caller is reported on standard error.
 *
 * @throws Failure if no caller is named and none can be assumed
 */
export async function callerToken(
  flags: CallerFlags,
  settings: Settings,
  as: 'reader' | 'admin' = 'reader',
): Promise<CallerToken> {
  if (flags.token !== undefined) return { kind: 'given', token: flags.token, renews: false };
  const named = flags.subject !== undefined || flags.chain !== undefined;
  const given = readSetting('OSL_TOKEN');
  if (!named && given !== null) return { kind: 'given', token: given, renews: false };
  if (!named && !isSet('OSL_SUBJECT')) {
    const token = await tokenOfLogin(flags.server, settings, as === 'admin');
    if (token !== null) return { kind: 'given', token, renews: true };
  }
  const { openIssuer } = await import('./issuer.js');
  const issuer = await openIssuer(settings, flags.policy ?? null);
  const subject = named ? flags.subject : (readSetting('OSL_SUBJECT') ?? assumed(issuer.subjects, settings));
  const chain = flags.chain;
  const request = {
    ...(subject !== undefined && { subject }),
    ...(chain !== undefined && { chain }),
    ...(as === 'admin' && { admin: true }),
  };
  return { kind: 'minted', issued: await issuer.mint(request) };
}

/** Returns a token from the login at the server; null without a login. @throws Failure if the login has ended */
async function tokenOfLogin(
  server: string | undefined,
  settings: Settings,
  admin: boolean,
): Promise<string | null> {
  const record = server === undefined ? runningServer(settings.dataDir) : null;
  if (server === undefined && record === null) return null;
  const url = record === null ? (server ?? '') : localServerUrl(record);
  const { readLogin } = await import('./login/store.js');
  if (readLogin(url) === null) return null;
  const { loginToken } = await import('./login/provider.js');
  return (await loginToken(url, admin))?.token ?? null;
}

function assumed(subjects: readonly string[], settings: Settings): string {
  const subject = assumedSubject(subjects, settings);
  if (!wantsJson()) note(`asking as ${subject} (choose with --subject)`);
  return subject;
}

function assumedSubject(subjects: readonly string[], settings: Settings): string {
  const [only] = subjects;
  if (only !== undefined && subjects.length === 1) return only;
  const demo = readServerFile(settings.dataDir)?.demo === true;
  if (demo && subjects.includes(DEMO_SUBJECT)) return DEMO_SUBJECT;
  const known = subjects.slice(0, 10).join(', ');
  throw usage(
    `name the caller with --subject or --token (or OSL_SUBJECT, OSL_TOKEN); the policy has ${known}`,
  );
}

const FRESH_MS = 240_000;

/** Token source for repeated requests: a given token, or one that is minted or fetched again before it expires. */
export interface FreshToken {
  current(): Promise<string>;
  /** Returns a new token after the server rejected the last one; null if it was given by the user. */
  another(): Promise<string | null>;
}

/**
 * Returns a token source for the caller given by the flags. An assumed caller is chosen only once.
 *
 * @throws Failure as `callerToken` does
 */
export async function freshToken(flags: CallerFlags & { readonly dataDir?: string }): Promise<FreshToken> {
  const settings = settingsOf(flags);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  const first = await callerToken({ ...flags, ...policy }, settings);
  if (first.kind === 'given' && !first.renews)
    return { current: async () => first.token, another: async () => null };
  const caller = first.kind === 'given' ? flags : { chain: first.issued.chain, ...policy };
  let { token } = first.kind === 'given' ? first : first.issued;
  let since = performance.now();
  const another = async (): Promise<string> => {
    const next = await callerToken(caller, settings);
    token = next.kind === 'given' ? next.token : next.issued.token;
    since = performance.now();
    return token;
  };
  return {
    current: async () => (performance.now() - since > FRESH_MS ? another() : token),
    another,
  };
}
