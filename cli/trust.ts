import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SecureContextOptions } from 'node:tls';
import { readSetting } from '../src/service/settings/table.js';
import { restUrl, type ServerRecord } from './server-file.js';

/** Files of the certificates that servers of this machine show, by where they answer. */
const shown = new Map<string, string>();

/** Where REST of a server of this machine answers; its certificate is then known by its file, whatever name it has. */
export function knownServer(record: ServerRecord): string {
  const url = restUrl(record);
  if (record.httpCertFile !== '') shown.set(new URL(url).origin, record.httpCertFile);
  return url;
}

export interface Trust extends SecureContextOptions {
  readonly checkServerIdentity?: (host: string, peer: { readonly raw: Buffer }) => Error | undefined;
}

/**
 * How the server of a URL is known: one of this machine by the certificate in its file, any other by OSL_SERVER_CA, or as
 * Node knows servers. @throws the system's error where a file cannot be read
 */
export function trustOf(target: URL): Trust {
  if (target.protocol !== 'https:') return {};
  const file = shown.get(target.origin);
  if (file !== undefined) return pinned(readFileSync(file));
  const authorities = readSetting('OSL_SERVER_CA');
  return authorities === null ? {} : { ca: readFileSync(authorities) };
}

/** Exactly this certificate: whoever calls it by an address of this machine need not find that in it. */
function pinned(pem: Buffer): Trust {
  const { raw } = new X509Certificate(pem);
  return {
    ca: pem,
    // A certificate of another's authority is trusted for being this one.
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, peer) =>
      peer.raw.equals(raw) ? undefined : new Error('the server shows another certificate than its file has'),
  };
}

/** Why a certificate was not trusted, in words; null where that was not it. */
export function distrust(cause: unknown): string | null {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return DISTRUST.test(code)
    ? 'its certificate is not of an authority that is trusted here: name the authority in OSL_SERVER_CA'
    : null;
}

const DISTRUST = /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_(UNTRUSTED|HAS_EXPIRED)/;
