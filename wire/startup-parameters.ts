import { fatal } from './errors.js';
import type { StartupMessage } from './messages/startup.js';
import { encodingName } from './text-encoding.js';

export interface StartupIdentity {
  readonly user: string;
  readonly database: string;
  /** Other parameters by canonical name. */
  readonly parameters: ReadonlyMap<string, string>;
}

const FALSE = new Set(['', '0', 'false', 'off', 'no']);

/**
 * Reads the user, database and settings in a startup message. `permitted` lists the accepted parameters, also within
 * `options`; others are refused rather than ignored: a client must not believe that its `search_path` applies, and
 * `options=-c…` must not bypass the list (CVE-2025-12819).
 *
 * Throws FATAL 28000 without user, 0A000 for replication, 42501 for a parameter not on the list, 42601 for malformed
 * options, 22023 for an unknown encoding.
 */
export function identityOf(startup: StartupMessage, permitted: readonly string[]): StartupIdentity {
  const canonical = new Map(permitted.map((name) => [name.toLowerCase(), name]));
  let user = '';
  let database = '';
  const parameters = new Map<string, string>();
  for (const [name, value] of startup.parameters) {
    if (name === 'user') user = value;
    else if (name === 'database') database = value;
    else if (name === 'replication') refuseReplication(value);
    else if (name !== 'options') parameters.set(allowed(name, canonical), value);
  }
  // As in Postgres, a startup parameter overrides the same one in `options`.
  for (const [name, value] of settingsIn(startup.parameters.get('options') ?? '')) {
    const own = allowed(name, canonical);
    if (!parameters.has(own)) parameters.set(own, value);
  }
  if (user === '') throw fatal('28000', 'no user name specified in startup packet');
  requireEncoding(parameters.get('client_encoding'));
  return { user, database: database === '' ? user : database, parameters };
}

function allowed(name: string, canonical: ReadonlyMap<string, string>): string {
  const found = canonical.get(name.toLowerCase());
  if (found !== undefined) return found;
  throw fatal('42501', `startup parameter "${name}" is not permitted`, {
    hint: 'Remove it from the connection settings; what a session may change, it can SET once connected.',
  });
}

/** Parses `-c name=value` and `--name=value`; a backslash escapes the next character. */
function settingsIn(options: string): readonly (readonly [name: string, value: string])[] {
  const words = [...options.matchAll(/(?:\\[\s\S]|\S)+/g)].map(([word]) => word.replace(/\\([\s\S])/g, '$1'));
  const settings: (readonly [string, string])[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const setting = word === '-c' ? words[++i] : /^(?:-c|--)(.+)$/s.exec(word)?.[1];
    const [, name = '', value] = /^([^=]+)=(.*)$/s.exec(setting ?? '') ?? [];
    if (value === undefined)
      throw fatal('42601', 'startup parameter "options" is not understood', {
        hint: 'It takes settings: -c name=value.',
      });
    settings.push([name.replaceAll('-', '_'), value]);
  }
  return settings;
}

function refuseReplication(value: string): void {
  if (FALSE.has(value.toLowerCase())) return;
  throw fatal('0A000', 'replication connections are not supported');
}

/** Rejects unknown encodings. Quoted names are accepted, because asyncpg sends them. */
function requireEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encodingName(encoding) !== null) return;
  throw fatal('22023', `invalid value for parameter "client_encoding": "${encoding}"`);
}
