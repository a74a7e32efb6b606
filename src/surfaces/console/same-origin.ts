import type { FastifyRequest } from 'fastify';

const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const LOOPBACK = /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/;
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/**
 * Whether a page of this very server asks, in a browser on this machine. By its `Host` a page that was rebound to this
 * machine by DNS is told apart (it has a name of its own), by `Origin` and `Sec-Fetch-Site` one of another origin; a
 * proxy's own address says nothing of who asks.
 */
export function isOwnPage(request: FastifyRequest): boolean {
  const { host, origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const page = hostOf(`http://${host ?? ''}`);
  return (
    page !== null &&
    LOCAL.has(page.hostname) &&
    (origin === `http://${host}` || origin === `https://${host}`) &&
    (site === undefined || site === 'same-origin') &&
    LOOPBACK.test(request.socket.remoteAddress ?? '') &&
    !FORWARDED.some((name) => request.headers[name] !== undefined)
  );
}

function hostOf(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}
