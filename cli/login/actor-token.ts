import { messageOf } from '../../src/base/thrown.js';
import { postForm } from '../client.js';
import { EXIT, Failure } from '../exit.js';
import { subjectOf } from '../proxy/connection.js';
import { exclusively, readLogin, type StoredLogin, writeLogin } from './store.js';

export interface LoginToken {
  readonly token: string;
  readonly subject: string;
}

const SOON_SECONDS = 60;
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

/**
 * A new actor token from the login at `server`, which is renewed if necessary; null without a login.
 *
 * @throws Failure if the login has ended, or the server rejects it
 */
export async function loginToken(server: string, admin: boolean): Promise<LoginToken | null> {
  if (readLogin(server) === null) return null;
  const login = await exclusively(server, () => current(server));
  if (login === null) return null;
  const reply = await postForm(server, '/oauth/token', {
    grant_type: GRANT,
    subject_token: login.idToken,
    subject_token_type: ID_TOKEN,
    ...(admin && { scope: 'admin' }),
  });
  const token = reply.body['access_token'];
  if (reply.ok && typeof token === 'string') return { token, subject: subjectOf(token) };
  const why = String(reply.body['error_description'] ?? `status ${reply.status}`);
  throw new Failure(
    EXIT.failed,
    `error: ${server} does not take the login: ${why}; \`osl login\` begins a new one`,
  );
}

async function current(server: string): Promise<StoredLogin | null> {
  const login = readLogin(server);
  if (login === null || endOf(login.idToken) > Date.now() / 1_000 + SOON_SECONDS) return login;
  if (login.refreshToken === null) throw over(server, 'its provider gave no refresh token');
  const { refreshed } = await import('./provider.js');
  try {
    const next: StoredLogin = { ...login, ...(await refreshed(login, login.refreshToken)) };
    writeLogin(next);
    return next;
  } catch (error) {
    throw over(server, messageOf(error));
  }
}

function over(server: string, why: string): Failure {
  return new Failure(
    EXIT.failed,
    `error: the login at ${server} is over (${why}): log in anew with \`osl login\``,
  );
}

/** `exp` of the provider's own token, in seconds; 0 if it has none. */
function endOf(token: string): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const exp = typeof claims === 'object' && claims !== null ? Reflect.get(claims, 'exp') : 0;
    return typeof exp === 'number' ? exp : 0;
  } catch {
    return 0;
  }
}
