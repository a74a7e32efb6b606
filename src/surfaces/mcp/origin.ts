import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** Whom the endpoint serves beside this machine. Hosts are names without a port. */
export interface AllowedOrigins {
  /** Of the `Host` header. */
  readonly hosts: readonly string[];
  /** Of the `Origin` header: `https://app.example`. */
  readonly origins: readonly string[];
}

const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether a request names this server and comes from a page that may call it. A page that was rebound to this
 * machine by DNS calls it by a name of its own, so a host is an address or a name that is known; browsers send
 * `Origin`, other clients do not.
 */
export function isServed(headers: IncomingHttpHeaders, allowed: AllowedOrigins): boolean {
  const host = hostname(`http://${headers.host ?? ''}`);
  if (host === null || !(LOCAL.has(host) || isAddress(host) || allowed.hosts.includes(host))) return false;
  const { origin } = headers;
  if (origin === undefined || allowed.origins.includes(origin)) return true;
  const page = hostname(origin);
  return page !== null && LOCAL.has(page);
}

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, '')) !== 0;
}

/** Lower case; IPv6 in brackets. Null where `url` is none, as the origin `null`. */
function hostname(url: string): string | null {
  try {
    const { protocol, hostname: name } = new URL(url);
    return (protocol === 'http:' || protocol === 'https:') && name !== '' ? name : null;
  } catch {
    return null;
  }
}
