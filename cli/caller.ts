import { isSet, readSetting } from '../src/service/settings/table.js';
import type { Settings } from '../src/service/settings.js';
import { usage } from './exit.js';
import type { IssuedToken } from './issuer.js';
import { note } from './output.js';
import { readServerFile, runningServer } from './server-file.js';
import { knownServer } from './trust.js';

/** Flags that say who asks. */
export interface CallerFlags {
  readonly token?: string;
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly policy?: string;
  /** The REST address of another server than that of the data directory. */
  readonly server?: string;
}

/** Asked as, in the demo, where nobody is named. */
const DEMO_SUBJECT = 'user:analyst';

/**
 * Where a token comes from: given, or made for who is logged in (`renews`: whoever asks again gets a new one), or minted
 * with the data directory's key.
 */
export type CallerToken =
  | { readonly kind: 'given'; readonly token: string; readonly renews: boolean }
  | { readonly kind: 'minted'; readonly issued: IssuedToken };

/**
 * The token to ask with: `--token`; a new one for `--subject` or `--chain`; `OSL_TOKEN`; a new one for
 * `OSL_SUBJECT`; one of who is logged in at the server (`osl login`); a new one for the only subject of the policy, or in
 * the demo for `user:analyst`. Whoever was not named is told on standard error.
 *
 * @throws Failure where nobody is named and nobody can be assumed
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
    const token = await loggedIn(flags.server, settings, as === 'admin');
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

/** A token of who is logged in at the server; null where nobody is. @throws Failure where the login is over */
async function loggedIn(
  server: string | undefined,
  settings: Settings,
  admin: boolean,
): Promise<string | null> {
  const record = server === undefined ? runningServer(settings.dataDir) : null;
  if (server === undefined && record === null) return null;
  const url = record === null ? (server ?? '') : knownServer(record);
  const { readLogin } = await import('./login/store.js');
  if (readLogin(url) === null) return null;
  const { loginToken } = await import('./login/actor-token.js');
  return (await loginToken(url, admin))?.token ?? null;
}

function assumed(subjects: readonly string[], settings: Settings): string {
  const subject = assumedSubject(subjects, settings);
  note(`asking as ${subject} (choose with --subject)`);
  return subject;
}

function assumedSubject(subjects: readonly string[], settings: Settings): string {
  const [only] = subjects;
  if (only !== undefined && subjects.length === 1) return only;
  const demo = readServerFile(settings.dataDir)?.demo === true;
  if (demo && subjects.includes(DEMO_SUBJECT)) return DEMO_SUBJECT;
  const known = subjects.slice(0, 10).join(', ');
  throw usage(
    `say who asks, with --subject or --token (or OSL_SUBJECT, OSL_TOKEN): the policy knows ${known}`,
  );
}
