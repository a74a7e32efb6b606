import type { SecureContextOptions } from 'node:tls';
import type { CancelDirectory } from './cancel-keys.js';

export interface WireOptions {
  /** Without it SSLRequest is answered `N`, and passwords are taken from loopback only. */
  readonly tls?: WireTls | undefined;
  /** Time limit of a login in ms, from accept to ReadyForQuery. Default 60,000, as Postgres's `authentication_timeout`. */
  readonly authenticationTimeoutMs?: number | undefined;
  /** Time in ms that a session may wait for its client; 57P05 ends it. Default 0: for ever. */
  readonly idleTimeoutMs?: number | undefined;
  /** Time in ms for which a client may refuse to read before it is disconnected. Default 60,000. */
  readonly writeStallTimeoutMs?: number | undefined;
  /** Connections that have not authenticated yet; beyond, the one that has waited longest gets 53300. Default 1,000. */
  readonly maxUnauthenticated?: number | undefined;
  /** Length field of one message. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Prepared statements of one session; 53400 beyond. Default 5,000. */
  readonly maxStatements?: number | undefined;
  /** Their texts together, in bytes of UTF-8. Default 32 MiB. */
  readonly maxStatementBytes?: number | undefined;
  /** Portals of one session. Default 1,000. */
  readonly maxPortals?: number | undefined;
  /** Their bound values together. Default 32 MiB. */
  readonly maxPortalBytes?: number | undefined;
  /** Startup parameters, beside user and database, that a client may send. Default: those that drivers send unasked. */
  readonly startupParameters?: readonly string[] | undefined;
  /** Routes cancel requests if other servers share the port. */
  readonly cancels?: CancelDirectory | undefined;
  /** Told about every exception that is not a `WireError`. The client sees only XX000. */
  onInternalError(error: unknown): void;
}

export interface WireTls extends SecureContextOptions {
  /** Also accept TLS without SSLRequest (ALPN `postgresql`), as Postgres 17 does. Default true. */
  readonly direct?: boolean | undefined;
  /** True if clients are asked for a certificate of an authority in `ca`, and refused without. Default: not asked. */
  readonly clients?: 'asked' | 'demanded' | undefined;
}

/** Options with every default filled in. Times are milliseconds. */
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
