import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import type { ReloadPart, ReloadStep } from '../../src/service/reload/reload.js';
import type { CertificateFiles, ClientAuthorities } from '../../src/service/settings/tls.js';
import { systemFault, usage } from '../exit.js';

/** A certificate with its chain, and its key, as they stand in their files. */
export interface CertificateMaterial {
  readonly cert: string;
  readonly key: string;
  /** Who vouches for clients, and whom they have revoked; absent where clients are asked for no certificate. */
  readonly ca?: string;
  readonly crl?: string;
}

/** Where one surface's certificate is, and who vouches for its clients. */
export interface SurfaceCertificateFiles extends CertificateFiles {
  readonly clients: ClientAuthorities | null;
}

/** @throws Failure where a file cannot be read */
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

/** As `readCertificate`, of a certificate and a key that belong together. @throws Failure where they do not */
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

/** OpenSSL takes a file without authorities for none, and says nothing. */
function checkAuthorities(ca: string, { clients }: SurfaceCertificateFiles): void {
  try {
    new X509Certificate(ca);
  } catch (error) {
    throw usage(`${clients?.caFile} holds no certificate of an authority: ${messageOf(error)}`);
  }
}

/** What a certificate that was taken up is told as. */
function toldOf(until: string): string {
  return `a certificate until ${until}`;
}

/** The certificate that one surface shows its clients. */
export class SurfaceCertificate implements ReloadPart {
  readonly #files: SurfaceCertificateFiles;
  readonly #secure: (certificate: CertificateMaterial) => void;
  #stamp: string | null;
  #unfit: { readonly stamp: string | null; readonly told: boolean } | null = null;

  /** @param secure shows another one from the next connection on; those that are open keep theirs */
  constructor(files: SurfaceCertificateFiles, secure: (certificate: CertificateMaterial) => void) {
    this.#files = files;
    this.#secure = secure;
    this.#stamp = stampOf(files);
  }

  prepare(): ReloadStep {
    const stamp = stampOf(this.#files);
    const { until, ...next } = checkedCertificate(this.#files);
    return { now: toldOf(until), kept: null, take: () => this.#take(next, stamp) };
  }

  /**
   * Takes up what the files hold where they have changed, and gives how it is told; null where nothing is new. Whoever
   * renews them writes one after the other: until they fit the old ones stay, which the log hears at the second look.
   */
  look(log: ServiceLog): string | null {
    const stamp = stampOf(this.#files);
    if (stamp === this.#stamp) return null;
    try {
      const { until, ...next } = checkedCertificate(this.#files);
      this.#take(next, stamp);
      return toldOf(until);
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

/** Looks at the files of each so often; gives what ends it. `told` hears what was taken up. */
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

/** Differs once the files do, also where a name is given to others, as mounted secrets are; null: they cannot be seen. */
function stampOf({ certFile, keyFile, clients }: SurfaceCertificateFiles): string | null {
  try {
    const more = clients === null ? [] : [clients.caFile, clients.crlFile ?? clients.caFile];
    const stats = [certFile, keyFile, ...more].map((file) => statSync(file, { bigint: true }));
    return stats.map(({ dev, ino, size, mtimeNs }) => `${dev}:${ino}:${size}:${mtimeNs}`).join(' ');
  } catch {
    return null; // what reads them says why
  }
}
