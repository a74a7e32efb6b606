import { totalmem } from 'node:os';
import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { readText, StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import type { AnswerBounds } from '../../engine/index.js';
import type { LineageEndpoint } from '../lineage/config/load.js';
import { readSecret, signingKey } from '../lineage/config/secrets.js';
import { parseNetwork } from '../lineage/delivery/address.js';
import { type ReadSetting, SETTINGS, type SettingValue } from './table.js';

export type LimitsPlace =
  | { readonly kind: 'postgres'; readonly at: ControlPlace }
  | { readonly kind: 'redis'; readonly url: string };

const MIB = 1_048_576;

/** Reads resource limits. @throws StartProblem */
export function loadSettings(read: ReadSetting) {
  const control = databasePlace(read, 'OSL_CONTROL_URL');
  return Object.freeze({
    addressSessions: read('OSL_ADDRESS_SESSIONS'),
    spoolBytes: read('OSL_SPOOL_MIB'),
    /** Memory for the large rows of answers that are being sent. */
    answers: answerBounds(
      read('OSL_ANSWER_MEMORY_MIB') ??
        Math.max(1, Math.floor(Math.min(usableMemory() / 4 / MIB, MAX_DEFAULT_ANSWERS_MIB))) * MIB,
      read('OSL_MAX_ROW_MIB'),
    ),
    /** Memory limit of each embedded database. */
    embeddedBytes: Math.min(Math.max(usableMemory() / 2, MIN_EMBEDDED_BYTES), MAX_EMBEDDED_BYTES),
    limits: limitsPlace(read) ?? (control === null ? null : Object.freeze({ kind: 'postgres', at: control })),
  });
}

/** Bounds of the memory limit of an embedded database in bytes. It needs about 100 MiB and supports at most 2 GiB. */
const MIN_EMBEDDED_BYTES = 256 * MIB;
const MAX_EMBEDDED_BYTES = 2_048 * MIB;

/** Maximum default of OSL_ANSWER_MEMORY_MIB, reached by processes with at least four times as much memory. */
const MAX_DEFAULT_ANSWERS_MIB = 1_024;
/** Minimum answer memory, in rows of maximum size: a subject may use only half of it, and some readers copy a row. */
const MIN_ROWS = 8;

/** Raises `bytes` if necessary, so that `MIN_ROWS` rows of maximum size fit. */
export function answerBounds(bytes: number, rowBytes: number): AnswerBounds {
  return Object.freeze({ rowBytes, bytes: Math.max(bytes, MIN_ROWS * rowBytes) });
}

/** The store for rate-limit counts from `OSL_LIMITS_URL` or its file; null if neither is set. */
function limitsPlace(read: ReadSetting): LimitsPlace | null {
  const urlInEnvironment = read('OSL_LIMITS_URL');
  const file = read('OSL_LIMITS_URL_FILE');
  const url = urlInEnvironment ?? (file === null ? null : readText(file, 'OSL_LIMITS_URL_FILE:').trim());
  if (url === null) return null;
  if (/^postgres/.test(url)) {
    const at: ControlPlace = urlInEnvironment === null && file !== null ? { file } : { url };
    controlUrl(at, 'OSL_LIMITS_URL');
    return Object.freeze({ kind: 'postgres', at });
  }
  if (/^rediss?:/.test(url) && URL.canParse(url)) return Object.freeze({ kind: 'redis', url });
  throw new StartProblem(`OSL_LIMITS_URL must be ${SETTINGS.OSL_LIMITS_URL.type.takes}`);
}

/** Settings of the database shared by several gateways. */
export interface ControlSettings {
  readonly place: ControlPlace;
  readonly policySource: SettingValue<'OSL_POLICY_SOURCE'>;
  /** Time in ms without an answer after which nothing is served, unless `OSL_POLICY_FAILURE` is `keep`. */
  readonly silenceMs: number;
}

/** Reads the settings; null for a stand-alone gateway. @throws StartProblem */
export function controlSettings(read: ReadSetting): ControlSettings | null {
  const place = databasePlace(read, 'OSL_CONTROL_URL');
  const policySource = read('OSL_POLICY_SOURCE');
  const silenceMs = read('OSL_CONTROL_SILENCE_SECONDS');
  if (place === null && policySource === 'control')
    throw new StartProblem('OSL_POLICY_SOURCE=control needs OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE');
  return place === null ? null : Object.freeze({ place, policySource, silenceMs });
}

/**
 * Returns the place of a database: the URL in `variable`, or the file named by `…_FILE`; null if neither is set. A URL
 * in the environment is checked here, a URL in a file when it is used.
 *
 * @throws StartProblem
 */
export function databasePlace(
  read: ReadSetting,
  variable: 'OSL_CONTROL_URL' | 'OSL_AUDIT_URL',
): ControlPlace | null {
  const url = read(variable);
  if (url !== null) {
    controlUrl({ url }, variable);
    return Object.freeze({ url });
  }
  const file = read(`${variable}_FILE`);
  return file === null ? null : { file };
}

/** Settings for the retention of audit records and for witnesses of checkpoints. */
export type AuditRetentionSettings = ReturnType<typeof auditRetention>;

/** Storage of the audit log, as plain data that is sent to workers. */
export interface AuditSink {
  /** The database with the schema `osl_audit`; null for segment files. */
  readonly table: { readonly place: ControlPlace; readonly variable: string | undefined } | null;
}

/** Returns a function that reads the database URL, whose file may change; null if the log is kept in segment files. */
export function auditSinkUrl({ table }: AuditSink): (() => string) | null {
  return table === null ? null : () => controlUrl(table.place, table.variable);
}

/** @throws StartProblem */
export function auditRetention(read: ReadSetting) {
  const ms = read('OSL_AUDIT_RETENTION_DAYS');
  const archive = read('OSL_AUDIT_ARCHIVE');
  return Object.freeze({
    /** Retention of records; null keeps them forever. */
    retention: ms === 0 ? null : { ms, archive },
    /** Archive of the log; may be set even if records are kept forever. */
    archive,
    witnesses: read('OSL_AUDIT_WITNESS'),
    witnessMs: read('OSL_AUDIT_WITNESS_SECONDS'),
  });
}

/** @throws StartProblem */
export function auditSync(read: ReadSetting): SettingValue<'OSL_AUDIT_SYNC'> {
  const sync = read('OSL_AUDIT_SYNC');
  if (sync === 'kernel' && read('OSL_LINEAGE') !== null)
    throw new StartProblem(
      'OSL_LINEAGE would report runs whose records a power failure may remove: it cannot be used with OSL_AUDIT_SYNC=kernel',
    );
  if (sync === 'kernel' && read('OSL_AUDIT_SINK') === 'postgres')
    throw new StartProblem(
      'OSL_AUDIT_SYNC=kernel is for segment files: with OSL_AUDIT_SINK=postgres every group is committed',
    );
  return sync;
}

/** @throws StartProblem */
export function auditSink(read: ReadSetting): AuditSink {
  if (read('OSL_AUDIT_SINK') === 'files') return Object.freeze({ table: null });
  if (read('OSL_LINEAGE') !== null)
    throw new StartProblem(
      'OSL_LINEAGE is read from segment files: it cannot be used with OSL_AUDIT_SINK=postgres',
    );
  const auditPlace = databasePlace(read, 'OSL_AUDIT_URL');
  const place = auditPlace ?? databasePlace(read, 'OSL_CONTROL_URL');
  if (place === null)
    throw new StartProblem(
      'OSL_AUDIT_SINK=postgres needs OSL_AUDIT_URL, OSL_AUDIT_URL_FILE or OSL_CONTROL_URL',
    );
  return Object.freeze({ table: { place, variable: auditPlace === null ? undefined : 'OSL_AUDIT_URL' } });
}

/** Webhook of the policy's owner; null if not configured. */
export type OwnerSettings = LineageEndpoint | null;

/** Timeout in ms, short because a caller is waiting. */
const TIMEOUT_MS = 5_000;

/** @throws StartProblem */
export function ownerSettings(read: ReadSetting): OwnerSettings {
  const url = read('OSL_OWNER_WEBHOOK');
  if (url === null) return null;
  const fault = (message: string): StartProblem => new StartProblem(`OSL_OWNER_WEBHOOK: ${message}`);
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') throw fault('it must be an http or https URL without a user');
  const file = read('OSL_OWNER_WEBHOOK_SECRET_FILE');
  const secret = file === null ? 'env:OSL_OWNER_WEBHOOK_SECRET' : `file:${file}`;
  const allowAddresses = read('OSL_OWNER_WEBHOOK_NETWORKS');
  try {
    signingKey(readSecret(secret));
    allowAddresses.map(parseNetwork);
  } catch (error) {
    throw fault(messageOf(error));
  }
  return Object.freeze({
    name: 'owner',
    url,
    secrets: [secret],
    events: [],
    authorization: null,
    ca: null,
    allowAddresses,
    timeoutMs: TIMEOUT_MS,
  });
}

/** Certificates of the server and authorities of its clients. */
export type ServerTls = ReturnType<typeof tlsSettings>;

/** The PEM files of a certificate with its chain, and of its key. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Authorities that sign certificates of clients. */
export interface ClientAuthorities {
  /** The PEM file with the authorities' certificates. */
  readonly caFile: string;
  /** The PEM file with the authorities' revocation lists; null if revocation is not checked. */
  readonly crlFile: string | null;
  /** True if clients without a certificate are refused. */
  readonly demanded: boolean;
}

/** @throws StartProblem */
export function tlsSettings(read: ReadSetting) {
  const wire = certificateFiles(read, 'OSL_TLS_CERT', 'OSL_TLS_KEY');
  const auditPlace = certificateFiles(read, 'OSL_HTTP_TLS_CERT', 'OSL_HTTP_TLS_KEY');
  const http = read('OSL_HTTP_TLS') ? (auditPlace ?? wire) : null;
  if (http === null && auditPlace !== null)
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

/** Memory in bytes that this process may use: its cgroup's limit, or else the machine's memory. */
function usableMemory(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
