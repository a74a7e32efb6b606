import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SecureContextOptions } from 'node:tls';
import { readSetting } from '../src/service/settings/table.js';
import { restUrl, type ServerRecord } from './server-file.js';

const shown = new Map<string, string>();

/** REST address of a server on this machine; remembers its certificate file, by which it will be verified. */
export function knownServer(record: ServerRecord): string {
  const url = restUrl(record);
  if (record.httpCertFile !== '') shown.set(new URL(url).origin, record.httpCertFile);
  return url;
}

export interface Trust extends SecureContextOptions {
  readonly checkServerIdentity?: (host: string, peer: { readonly raw: Buffer }) => Error | undefined;
}

/**
 * TLS options for a URL: the certificate file of a server on this machine, otherwise OSL_SERVER_CA or Node's
 * authorities. @throws system errors of files
 */
export function trustOf(target: URL): Trust {
  if (target.protocol !== 'https:') return {};
  const file = shown.get(target.origin);
  if (file !== undefined) return pinned(readFileSync(file));
  const authorities = readSetting('OSL_SERVER_CA');
  return authorities === null ? {} : { ca: readFileSync(authorities) };
}

/** Accepts exactly this certificate, which need not name the address. */
function pinned(pem: Buffer): Trust {
  const { raw } = new X509Certificate(pem);
  return {
    ca: pem,
    // Trusted for itself, even if issued by another authority.
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, peer) =>
      peer.raw.equals(raw) ? undefined : new Error('the server shows another certificate than its file has'),
  };
}

/** Explanation for an untrusted certificate; null for other errors. */
export function distrust(cause: unknown): string | null {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return DISTRUST.test(code)
    ? 'its certificate is not of an authority that is trusted here: name the authority in OSL_SERVER_CA'
    : null;
}

const DISTRUST = /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_(UNTRUSTED|HAS_EXPIRED)/;
