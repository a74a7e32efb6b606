import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import type { ReloadPart, ReloadStep } from '../../src/service/reload/reload.js';
import type { CertificateFiles, ClientAuthorities } from '../../src/service/settings/groups.js';
import { systemFault, usage } from '../exit.js';

export interface CertificateMaterial {
  readonly cert: string;
  readonly key: string;
  /**
   * Certificate authorities for client certificates, and their revocation lists; absent if no client certificate is
   * requested.
   */
  readonly ca?: string;
  readonly crl?: string;
}

export interface SurfaceCertificateFiles extends CertificateFiles {
  readonly clients: ClientAuthorities | null;
}

/** Reads the certificate files. @throws Failure if one of them cannot be read */
function readCertificate({ certFile, keyFile, clients }: SurfaceCertificateFiles): CertificateMaterial {
  return {
    cert: readPem(certFile),
    key: readPem(keyFile),
    ...(clients !== null && { ca: readPem(clients.caFile) }),
    ...(clients?.crlFile != null && { crl: readPem(clients.crlFile) }),
  };
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(systemFault(error) ?? `${file} cannot be read`);
  }
}

/** Reads a certificate and checks that the key belongs to it. @throws Failure if it does not */
export function checkedCertificate(
  files: SurfaceCertificateFiles,
): CertificateMaterial & { readonly until: string } {
  const certificate = readCertificate(files);
  if (certificate.ca !== undefined) checkAuthorities(certificate.ca, files);
  try {
    createSecureContext(certificate);
    return { ...certificate, until: new X509Certificate(certificate.cert).validTo };
  } catch (error) {
    throw usage(`${files.certFile} and its key do not fit: ${messageOf(error)}`);
  }
}

/** Checks that the CA file contains a certificate, because OpenSSL silently ignores a file without one. */
function checkAuthorities(ca: string, { clients }: SurfaceCertificateFiles): void {
  try {
    new X509Certificate(ca);
  } catch (error) {
    throw usage(`${clients?.caFile} holds no certificate of an authority: ${messageOf(error)}`);
  }
}

function describeCertificate(until: string): string {
  return `a certificate until ${until}`;
}

export class SurfaceCertificate implements ReloadPart {
  readonly #files: SurfaceCertificateFiles;
  readonly #secure: (certificate: CertificateMaterial) => void;
  #stamp: string | null;
  #unfit: { readonly stamp: string | null; readonly told: boolean } | null = null;

  /** @param secure switches new connections to another certificate; open ones keep theirs */
  constructor(files: SurfaceCertificateFiles, secure: (certificate: CertificateMaterial) => void) {
    this.#files = files;
    this.#secure = secure;
    this.#stamp = stampOf(files);
  }

  prepare(): ReloadStep {
    const stamp = stampOf(this.#files);
    const { until, ...next } = checkedCertificate(this.#files);
    return { now: describeCertificate(until), kept: null, apply: () => this.#take(next, stamp) };
  }

  /**
   * Loads changed files; returns a description of the new certificate, or null if none was loaded. A renewal writes its
   * files one after another: while they do not match, the old certificate is kept, and an error is logged only if the
   * next check finds the same files.
   */
  look(log: ServiceLog): string | null {
    const stamp = stampOf(this.#files);
    if (stamp === this.#stamp) return null;
    try {
      const { until, ...next } = checkedCertificate(this.#files);
      this.#take(next, stamp);
      return describeCertificate(until);
    } catch (error) {
      const again = this.#unfit?.stamp === stamp;
      if (again && this.#unfit?.told === false)
        log.error('a new certificate cannot be taken: the old one is still shown', { why: messageOf(error) });
      this.#unfit = { stamp, told: again };
      return null;
    }
  }

  #take(certificate: CertificateMaterial, stamp: string | null): void {
    this.#secure(certificate);
    this.#stamp = stamp;
    this.#unfit = null;
  }
}

/**
 * Checks the files periodically and calls `told` with descriptions of the new certificates; returns a function that
 * stops the checks.
 */
export function watchCertificates(
  shown: readonly SurfaceCertificate[],
  everyMs: number,
  log: ServiceLog,
  told: (now: readonly string[]) => void,
): () => void {
  if (everyMs === 0 || shown.length === 0) return () => undefined;
  const timer = setInterval(() => {
    const now = shown.flatMap((one) => one.look(log) ?? []);
    if (now.length > 0) told(now);
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/**
 * Returns a value that changes with the files, even if a path is switched to another file, as for mounted secrets; null
 * if a file cannot be examined.
 */
function stampOf({ certFile, keyFile, clients }: SurfaceCertificateFiles): string | null {
  try {
    const more = clients === null ? [] : [clients.caFile, clients.crlFile ?? clients.caFile];
    const stats = [certFile, keyFile, ...more].map((file) => statSync(file, { bigint: true }));
    return stats.map(({ dev, ino, size, mtimeNs }) => `${dev}:${ino}:${size}:${mtimeNs}`).join(' ');
  } catch {
    return null; // the error is reported when the files are read
  }
}
