import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { StartProblem } from '../start-problem.js';
import { codeOf } from '../thrown.js';

/** Location of the URL of the control database: in the settings, or in a file, as secrets are mounted. */
export type ControlPlace = { readonly url: string } | { readonly file: string };

/**
 * The URL as it stands now. To another machine it must say how the connection is protected: who changes what is read
 * there changes who may see what.
 *
 * @param variable of the environment, for messages
 * @throws StartProblem
 */
export function controlUrl(place: ControlPlace, variable = 'OSL_CONTROL_URL'): string {
  const url = 'url' in place ? place.url : urlIn(place.file, variable);
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

function urlIn(file: string, variable: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartProblem(`${variable}_FILE: ${file} cannot be read (${codeOf(error) ?? 'unreadable'})`);
  }
}
