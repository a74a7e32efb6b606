import { StartProblem } from '../../base/start-problem.js';

/** What clients and server prove to each other before a byte of the protocol is spoken. Paths are absolute. */
export interface TlsSettings {
  /** Of the Postgres wire; null: it serves loopback only. */
  readonly wire: CertificateFiles | null;
  /** Of REST and MCP; null: plain HTTP. */
  readonly http: CertificateFiles | null;
  /** Null: clients are asked for no certificate. */
  readonly clients: ClientAuthorities | null;
  /** How often the files are looked at; 0: at SIGHUP alone. */
  readonly watchMs: number;
}

/** PEM files of one certificate, with its chain, and of its key. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Who vouches for clients. */
export interface ClientAuthorities {
  /** PEM: certificates of authorities. */
  readonly caFile: string;
  /** PEM: what they have revoked; null: nothing is looked up. */
  readonly crlFile: string | null;
  /** Whether a client without a certificate is refused. */
  readonly demanded: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** How often files of certificates are looked at, in seconds, unless told. */
const WATCH_SECONDS = 10;

/** @throws StartProblem */
export function tlsSettings(env: Environment, path: (value: string) => string): TlsSettings {
  const both = filesIn(env, 'OSL_TLS_CERT', 'OSL_TLS_KEY', path);
  const own = filesIn(env, 'OSL_HTTP_TLS_CERT', 'OSL_HTTP_TLS_KEY', path);
  const http = wordIn(env, 'OSL_HTTP_TLS', ['on', 'off']) === 'off' ? null : (own ?? both);
  if (http === null && own !== null)
    throw new StartProblem(
      'OSL_HTTP_TLS is off, and OSL_HTTP_TLS_CERT names a certificate: one of them goes',
    );
  const clients = clientsIn(env, path);
  if (clients !== null && both === null && http === null)
    throw new StartProblem('OSL_TLS_CLIENT_CA needs TLS: set OSL_TLS_CERT and OSL_TLS_KEY');
  const watchMs = secondsIn(env, 'OSL_TLS_WATCH_SECONDS') * 1_000;
  return Object.freeze({ wire: both, http, clients, watchMs });
}

function clientsIn(env: Environment, path: (value: string) => string): ClientAuthorities | null {
  const ca = env['OSL_TLS_CLIENT_CA'] ?? '';
  const crl = env['OSL_TLS_CLIENT_CRL'] ?? '';
  const demanded = wordIn(env, 'OSL_TLS_CLIENTS', ['ask', 'require']) === 'require';
  if (ca === '' && (crl !== '' || demanded))
    throw new StartProblem('OSL_TLS_CLIENTS and OSL_TLS_CLIENT_CRL need OSL_TLS_CLIENT_CA');
  if (ca === '') return null;
  return Object.freeze({ caFile: path(ca), crlFile: crl === '' ? null : path(crl), demanded });
}

function filesIn(
  env: Environment,
  certName: string,
  keyName: string,
  path: (value: string) => string,
): CertificateFiles | null {
  const cert = env[certName] ?? '';
  const key = env[keyName] ?? '';
  if ((cert === '') !== (key === ''))
    throw new StartProblem(`${certName} and ${keyName} go together: one of them is not set`);
  return cert === '' ? null : Object.freeze({ certFile: path(cert), keyFile: path(key) });
}

function wordIn<const T extends string>(env: Environment, name: string, words: readonly [T, ...T[]]): T {
  const text = env[name] ?? '';
  const word = text === '' ? words[0] : words.find((known) => known === text);
  if (word === undefined) throw new StartProblem(`${name} must be ${words.join(' or ')}, not \`${text}\``);
  return word;
}

function secondsIn(env: Environment, name: string): number {
  const text = env[name] ?? '';
  const value = text === '' ? WATCH_SECONDS : Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= 86_400) return value;
  throw new StartProblem(`${name} must be a whole number from 0 to 86400, not \`${text}\``);
}
