/** The required kind of server, in libpq's terms. */
type TargetSessionAttrs = 'any' | 'primary' | 'standby' | 'prefer-standby';

/** The servers of a multi-host URL in order, each with its own URL. */
export interface ServerList {
  readonly urls: readonly string[];
  readonly wanted: TargetSessionAttrs;
}

/**
 * Values of `target_session_attrs`. Only recovery is checked, so `read-write` means a primary and `read-only` a
 * standby.
 */
const WANTED: ReadonlyMap<string, TargetSessionAttrs> = new Map([
  ['any', 'any'],
  ['read-write', 'primary'],
  ['primary', 'primary'],
  ['read-only', 'standby'],
  ['standby', 'standby'],
  ['prefer-standby', 'prefer-standby'],
]);

/** Timeout per host in ms, so that an unresponsive host does not use up the time of the other hosts. */
export const CONNECT_ONE_MS = 2_000;

const URL_PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/;

/**
 * Parses `postgres://role@h1:5432,h2/db?target_session_attrs=primary`.
 *
 * @throws Error, with a message for the operator, if the value of `target_session_attrs` is unknown
 */
export function upstreamOf(url: string): ServerList {
  const [, scheme, authority = '', path = '', query = ''] = URL_PARTS.exec(url) ?? [];
  if (scheme === undefined) return { urls: [url], wanted: 'any' };
  const parameters = new URLSearchParams(query);
  const word = parameters.get('target_session_attrs');
  const wanted = WANTED.get(word ?? 'any');
  if (wanted === undefined)
    throw new Error(`target_session_attrs must be ${[...WANTED.keys()].join(', ')}, not \`${word}\``);
  const at = authority.lastIndexOf('@') + 1;
  const hosts = authority.slice(at).split(',');
  if (hosts.length === 1 && word === null) return { urls: [url], wanted };
  parameters.delete('target_session_attrs');
  const rest = `${path}${parameters.size > 0 ? `?${parameters}` : ''}`;
  return { urls: hosts.map((host) => `${scheme}${authority.slice(0, at)}${host}${rest}`), wanted };
}

/**
 * Returns the URL with `target_session_attrs=primary` added if it names several hosts and does not set this parameter.
 */
export function ofPrimary(url: string): string {
  const [, , authority = '', , query] = URL_PARTS.exec(url) ?? [];
  if (!authority.includes(',') || new URLSearchParams(query).has('target_session_attrs')) return url;
  return `${url}${query === undefined ? '?' : '&'}target_session_attrs=primary`;
}

/** Returns the URL without role and password, to identify a database independently of the login. */
export function withoutLogin(url: string): string {
  const [, scheme, authority = '', path = '', query = ''] = URL_PARTS.exec(url) ?? [];
  if (scheme === undefined) return url;
  return `${scheme}${authority.slice(authority.lastIndexOf('@') + 1)}${path}?${query}`;
}

/** Returns the URL without password and parameters, safe to show: `postgres://reader@h1,h2:5432/shop`. */
export function withoutPassword(url: string): string {
  const [, scheme, authority = '', path = ''] = URL_PARTS.exec(url) ?? [];
  if (scheme === undefined) return 'a URL that cannot be read';
  const at = authority.lastIndexOf('@') + 1;
  const role = authority.slice(0, at).replace(/@$/, '').split(':')[0] ?? '';
  return `${scheme}${role === '' ? '' : `${role}@`}${authority.slice(at)}${path}`;
}

/**
 * Index of the host that provided the last session, per host list, so that a host that is down is not tried first every
 * time.
 */
const served = new Map<string, number>();

/**
 * Connects to the first suitable server, starting with the one that worked last. `connect` receives the required role
 * of the server and rejects if the server has another role.
 *
 * @throws the error of the last server tried
 */
export async function onFirstHost<T>(
  url: string,
  connect: (url: string, role: 'primary' | 'standby' | null, several: boolean) => Promise<T>,
): Promise<T> {
  const { urls, wanted } = upstreamOf(url);
  const key = withoutLogin(url);
  const first = served.get(key) ?? 0;
  const order = urls.map((_, i) => (first + i) % urls.length);
  let failure: unknown = new Error('the URL names no host');
  for (const role of rolesOf(wanted)) {
    for (const i of order) {
      const host = urls[i];
      if (host === undefined) continue;
      try {
        const made = await connect(host, role, urls.length > 1);
        if (urls.length > 1) served.set(key, i);
        return made;
      } catch (error) {
        // A connection error is more informative than the wrong role of another server.
        if (!(error instanceof OtherRole) || failure instanceof OtherRole || i === order[0]) failure = error;
      }
    }
  }
  throw failure;
}

/** The server is a standby although a primary is required, or vice versa. */
export class OtherRole extends Error {
  constructor(wanted: 'primary' | 'standby') {
    super(`no server of the URL is a ${wanted} now`);
    this.name = 'OtherRole';
  }
}

/** Checks that the server is a primary or a standby, as required. @throws OtherRole, and the errors of `query` */
export async function requireRole(
  role: 'primary' | 'standby',
  query: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>,
): Promise<void> {
  const [found] = await query('select pg_catalog.pg_is_in_recovery() as standby');
  if (found?.['standby'] !== (role === 'standby')) throw new OtherRole(role);
}

function rolesOf(wanted: TargetSessionAttrs): readonly ('primary' | 'standby' | null)[] {
  switch (wanted) {
    case 'any':
      return [null];
    case 'prefer-standby':
      return ['standby', null];
    case 'primary':
    case 'standby':
      return [wanted];
  }
}
