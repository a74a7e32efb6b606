import type { SecureContextOptions } from 'node:tls';
import type { CancelDirectory } from './cancel-keys.js';

export interface WireOptions {
  /** TLS options. Without them, SSLRequest is answered `N` and passwords are accepted from loopback only. */
  readonly tls?: WireTls | undefined;
  /**
   * Time limit for a login, from accept until the client is authenticated, in ms. Default 60,000, like Postgres's
   * `authentication_timeout`.
   */
  readonly authenticationTimeoutMs?: number | undefined;
  /** Idle time in ms after which a session ends with 57P05. Default 0: no limit. */
  readonly idleTimeoutMs?: number | undefined;
  /** Time in ms after which a client that reads nothing is disconnected. Default 60,000. */
  readonly writeStallTimeoutMs?: number | undefined;
  /** Maximum number of unauthenticated connections; beyond it, the oldest one gets 53300. Default 1,000. */
  readonly maxUnauthenticated?: number | undefined;
  /** Maximum message length in bytes. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Maximum number of prepared statements in a session, beyond which 53400 is sent. Default 5,000. */
  readonly maxStatements?: number | undefined;
  /**
   * Maximum total size of a session's prepared statements in bytes: Parse messages, or texts of PREPARE. Default 32
   * MiB.
   */
  readonly maxStatementBytes?: number | undefined;
  /** Maximum number of portals in a session. Default 1,000. */
  readonly maxPortals?: number | undefined;
  /** Maximum total size of the Bind messages of a session's portals, in bytes. Default 32 MiB. */
  readonly maxPortalBytes?: number | undefined;
  /** Startup parameters accepted besides user and database. Default: those that drivers send by default. */
  readonly startupParameters?: readonly string[] | undefined;
  /** Routes cancel requests if other servers share the port. */
  readonly cancels?: CancelDirectory | undefined;
  /** Called for every exception that is not a `WireError`. The client only sees XX000. */
  onInternalError(error: unknown): void;
}

export interface WireTls extends SecureContextOptions {
  /** True to accept TLS without SSLRequest (ALPN `postgresql`) too, as Postgres 17 does. Default true. */
  readonly direct?: boolean | undefined;
  /**
   * `asked`: client certificates from an authority in `ca` are optional; `demanded`: required. Default: not requested.
   */
  readonly clients?: 'asked' | 'demanded' | undefined;
}

/** The options with defaults applied. Times are in milliseconds. */
export type WireSettings = {
  readonly [K in Exclude<keyof WireOptions, 'tls' | 'cancels'>]-?: NonNullable<WireOptions[K]>;
};

const MIB = 1024 * 1024;
const DEFAULT_STARTUP_PARAMETERS: readonly string[] = [
  'application_name',
  'client_encoding',
  'DateStyle',
  'extra_float_digits',
  'IntervalStyle',
  'TimeZone',
];

export function withDefaults(options: WireOptions): WireSettings {
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
    startupParameters: options.startupParameters ?? DEFAULT_STARTUP_PARAMETERS,
    onInternalError: (error) => options.onInternalError(error),
  };
}
