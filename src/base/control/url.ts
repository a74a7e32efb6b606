import { isIP } from 'node:net';
import { readText, StartProblem } from '../start-problem.js';

/** Source of a database URL: the settings or a mounted file. */
export type ControlPlace = { readonly url: string } | { readonly file: string };

/**
 * Reads the URL. If it refers to another machine, it must specify `sslmode`, since an attacker who can alter data on
 * that connection controls access.
 *
 * @param variable name of the environment variable, for messages
 * @throws StartProblem
 */
export function controlUrl(place: ControlPlace, variable = 'OSL_CONTROL_URL'): string {
  const url = 'url' in place ? place.url : readText(place.file, `${variable}_FILE:`).trim();
  if (!URL.canParse(url) || !/^postgres(ql)?:$/.test(new URL(url).protocol))
    throw new StartProblem(`${variable} must be a postgres:// URL`);
  const { hostname, searchParams } = new URL(url);
  const host = searchParams.get('host') ?? decodeURIComponent(hostname);
  if (!isThisMachine(host) && !searchParams.has('sslmode'))
    throw new StartProblem(
      `${variable}: ${host} is another machine, so the URL must say sslmode=verify-full (with sslrootcert=FILE for an issuer of your own), or sslmode=disable where the network itself is protected`,
    );
  return url;
}

function isThisMachine(host: string): boolean {
  if (host === '' || host.startsWith('/') || host === 'localhost') return true;
  const address = host.replace(/^\[|\]$/g, '');
  return isIP(address) === 4 ? address.startsWith('127.') : address === '::1';
}
