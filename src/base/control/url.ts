import { isIP } from 'node:net';
import { ofPrimary, type ServerList, upstreamOf } from '../postgres/hosts.js';
import { readText, StartProblem } from '../start-problem.js';
import { messageOf } from '../thrown.js';

/** Source of a database URL: the settings or a mounted file. */
export type ControlPlace = { readonly url: string } | { readonly file: string };

/**
 * Reads the URL of the control database. If it names several hosts, their primary is used. If it refers to another
 * machine, it must specify `sslmode`, since an attacker who can alter data on that connection controls access.
 *
 * @param variable name of the environment variable, for messages
 * @throws StartProblem
 */
export function controlUrl(place: ControlPlace, variable = 'OSL_CONTROL_URL'): string {
  const url = ofPrimary('url' in place ? place.url : readText(place.file, `${variable}_FILE:`).trim());
  for (const host of hostsOf(url, variable)) checkHost(host, variable);
  return url;
}

function hostsOf(url: string, variable: string): readonly string[] {
  let list: ServerList;
  try {
    list = upstreamOf(url);
  } catch (error) {
    throw new StartProblem(`${variable}: ${messageOf(error)}`);
  }
  if (list.wanted === 'standby' || list.wanted === 'prefer-standby')
    throw new StartProblem(`${variable} is written to, so its server must be a primary, not a standby`);
  return list.urls;
}

function checkHost(url: string, variable: string): void {
  if (!URL.canParse(url) || !/^postgres(ql)?:$/.test(new URL(url).protocol))
    throw new StartProblem(`${variable} must be a postgres:// URL`);
  const { hostname, searchParams } = new URL(url);
  const host = searchParams.get('host') ?? hostname.replace(/%2f/gi, '/');
  if (!isThisMachine(host) && !searchParams.has('sslmode'))
    throw new StartProblem(
      `${variable}: ${host} is another machine, so the URL must say sslmode=verify-full (with sslrootcert=FILE for an issuer of your own), or sslmode=disable where the network itself is protected`,
    );
}

function isThisMachine(host: string): boolean {
  if (host === '' || host.startsWith('/') || host === 'localhost') return true;
  const address = host.replace(/^\[|\]$/g, '');
  return isIP(address) === 4 ? address.startsWith('127.') : address === '::1';
}
