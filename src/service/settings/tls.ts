import { StartProblem } from '../../base/start-problem.js';
import type { ReadSetting } from './table.js';

/** Certificates of the server and authorities of its clients. Paths are absolute. */
export interface ServerTls {
  /** Certificate of the Postgres protocol; null: it serves loopback only. */
  readonly wire: CertificateFiles | null;
  /** Certificate of REST and MCP; null: plain HTTP. */
  readonly http: CertificateFiles | null;
  /** Null: clients are asked for no certificate. */
  readonly clients: ClientAuthorities | null;
  /** Interval at which to look for changed files; 0: only at SIGHUP. */
  readonly watchMs: number;
}

/** PEM files of one certificate, with its chain, and of its key. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Authorities that sign certificates of clients. */
export interface ClientAuthorities {
  /** PEM with their certificates. */
  readonly caFile: string;
  /** PEM with their revocation lists; null: none is checked. */
  readonly crlFile: string | null;
  /** True: refuse clients without a certificate. */
  readonly demanded: boolean;
}

/** @throws StartProblem */
export function tlsSettings(read: ReadSetting): ServerTls {
  const wire = certificateFiles(read, 'OSL_TLS_CERT', 'OSL_TLS_KEY');
  const own = certificateFiles(read, 'OSL_HTTP_TLS_CERT', 'OSL_HTTP_TLS_KEY');
  const http = read('OSL_HTTP_TLS') ? (own ?? wire) : null;
  if (http === null && own !== null)
    throw new StartProblem(
      'OSL_HTTP_TLS is off, and OSL_HTTP_TLS_CERT names a certificate: remove one of them',
    );
  const clients = clientAuthorities(read);
  if (clients !== null && wire === null && http === null)
    throw new StartProblem('OSL_TLS_CLIENT_CA needs TLS: set OSL_TLS_CERT and OSL_TLS_KEY');
  return Object.freeze({ wire, http, clients, watchMs: read('OSL_TLS_WATCH_SECONDS') });
}

function clientAuthorities(read: ReadSetting): ClientAuthorities | null {
  const caFile = read('OSL_TLS_CLIENT_CA');
  const crlFile = read('OSL_TLS_CLIENT_CRL');
  const demanded = read('OSL_TLS_CLIENTS') === 'require';
  if (caFile !== null) return Object.freeze({ caFile, crlFile, demanded });
  if (crlFile !== null || demanded)
    throw new StartProblem('OSL_TLS_CLIENTS and OSL_TLS_CLIENT_CRL need OSL_TLS_CLIENT_CA');
  return null;
}

function certificateFiles(
  read: ReadSetting,
  certName: 'OSL_TLS_CERT' | 'OSL_HTTP_TLS_CERT',
  keyName: 'OSL_TLS_KEY' | 'OSL_HTTP_TLS_KEY',
): CertificateFiles | null {
  const certFile = read(certName);
  const keyFile = read(keyName);
  if (certFile !== null && keyFile !== null) return Object.freeze({ certFile, keyFile });
  if (certFile === keyFile) return null;
  throw new StartProblem(`${certName} and ${keyName} go together: one of them is not set`);
}
