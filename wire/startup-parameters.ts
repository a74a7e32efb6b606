import { fatal } from './errors.js';
import type { StartupMessage } from './messages/startup.js';

export interface StartupIdentity {
  readonly user: string;
  readonly database: string;
  /** Canonical names; neither user nor database. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * The parameters that real drivers send and that cannot change what a statement means. Everything else is
 * refused, not ignored: a client that asked for `search_path` must not believe that it got one, and
 * `options=-c…` is the way around every list (CVE-2025-12819).
 */
const ALLOWED = new Map(
  [
    'application_name',
    'client_encoding',
    'DateStyle',
    'extra_float_digits',
    'idle_in_transaction_session_timeout',
    'IntervalStyle',
    'lock_timeout',
    'statement_timeout',
    'TimeZone',
  ].map((name) => [name.toLowerCase(), name]),
);

const FALSE = new Set(['', '0', 'false', 'off', 'no']);

/** FATAL 28000 without user, 0A000 for replication, 42501 for a parameter off the list, 22023 for the encoding. */
export function identityOf(startup: StartupMessage): StartupIdentity {
  let user = '';
  let database = '';
  const parameters = new Map<string, string>();
  for (const [name, value] of startup.parameters) {
    if (name === 'user') user = value;
    else if (name === 'database') database = value;
    else if (name === 'replication') refuseReplication(value);
    else parameters.set(allowed(name), value);
  }
  if (user === '') throw fatal('28000', 'no user name specified in startup packet');
  requireUtf8(parameters.get('client_encoding'));
  return { user, database: database === '' ? user : database, parameters };
}

function allowed(name: string): string {
  const canonical = ALLOWED.get(name.toLowerCase());
  if (canonical !== undefined) return canonical;
  throw fatal('42501', `startup parameter "${name}" is not permitted`, {
    hint: 'Remove it from the connection settings; what a session may change, it can SET once connected.',
  });
}

function refuseReplication(value: string): void {
  if (FALSE.has(value.toLowerCase())) return;
  throw fatal('0A000', 'replication connections are not supported');
}

/** SQL_ASCII asks for no conversion, which is what UTF-8 gets. asyncpg sends the name in quotes. */
function requireUtf8(encoding: string | undefined): void {
  if (encoding === undefined) return;
  const name = encoding.toLowerCase().replace(/[^a-z0-9]/g, '');
  if (name === 'utf8' || name === 'unicode' || name === 'sqlascii') return;
  throw fatal('22023', 'client_encoding must be UTF8');
}
