import type { SecureContextOptions } from 'node:tls';
import type { CancelDirectory } from './cancel-keys.js';

export interface WireOptions {
  /** Without TLS, SSLRequest is answered `N` and passwords are accepted from loopback only. */
  readonly tls?: WireTls | undefined;
  /**
   * Time limit of a login, from accept to ReadyForQuery, ms. Default 60,000, like Postgres's
   * `authentication_timeout`.
   */
  readonly authenticationTimeoutMs?: number | undefined;
  /** Idle time after which a session ends with 57P05, ms. Default 0: no limit. */
  readonly idleTimeoutMs?: number | undefined;
  /** Time for which a client may not read before it is disconnected, ms. Default 60,000. */
  readonly writeStallTimeoutMs?: number | undefined;
  /** Most unauthenticated connections; beyond that the oldest one gets 53300. Default 1,000. */
  readonly maxUnauthenticated?: number | undefined;
  /** Largest message length. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Most prepared statements of a session; 53400 beyond. Default 5,000. */
  readonly maxStatements?: number | undefined;
  /** Total size of their texts, UTF-8 bytes. Default 32 MiB. */
  readonly maxStatementBytes?: number | undefined;
  /** Most portals of a session. Default 1,000. */
  readonly maxPortals?: number | undefined;
  /** Total size of their bound values, bytes. Default 32 MiB. */
  readonly maxPortalBytes?: number | undefined;
  /** Accepted startup parameters besides user and database. Default: those that drivers send by default. */
  readonly startupParameters?: readonly string[] | undefined;
  /** Routes cancel requests if other servers share the port. */
  readonly cancels?: CancelDirectory | undefined;
  /** Called for every exception that is not a `WireError`. The client only sees XX000. */
  onInternalError(error: unknown): void;
}

export interface WireTls extends SecureContextOptions {
  /** Also accept TLS without SSLRequest (ALPN `postgresql`), as Postgres 17 does. Default true. */
  readonly direct?: boolean | undefined;
  /**
   * `asked`: client certificates of an authority in `ca` are optional; `demanded`: required. Default: not requested.
   */
  readonly clients?: 'asked' | 'demanded' | undefined;
}

/** Options with defaults. Times in milliseconds. */
export type WireSettings = {
  readonly [K in Exclude<keyof WireOptions, 'tls' | 'cancels'>]-?: NonNullable<WireOptions[K]>;
};

const MIB = 1024 * 1024;
const USUAL_PARAMETERS: readonly string[] = [
  'application_name',
  'client_encoding',
  'DateStyle',
  'extra_float_digits',
  'IntervalStyle',
  'TimeZone',
];

export function settingsOf(options: WireOptions): WireSettings {
  return {
    authenticationTimeoutMs: options.authenticationTimeoutMs ?? 60_000,
    idleTimeoutMs: options.idleTimeoutMs ?? 0,
    writeStallTimeoutMs: options.writeStallTimeoutMs ?? 60_000,
    maxUnauthenticated: options.maxUnauthenticated ?? 1_000,
    maxMessageBytes: options.maxMessageBytes ?? 16 * MIB,
    maxStatements: options.maxStatements ?? 5_000,
    maxStatementBytes: options.maxStatementBytes ?? 32 * MIB,
    maxPortals: options.maxPortals ?? 1_000,
    maxPortalBytes: options.maxPortalBytes ?? 32 * MIB,
    startupParameters: options.startupParameters ?? USUAL_PARAMETERS,
    onInternalError: (error) => options.onInternalError(error),
  };
}
