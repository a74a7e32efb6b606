import { join } from 'node:path';
import { DEFAULT_ISSUER } from '../../policy/tokens/token-fault.js';
import type { AnswerCacheBounds } from '../ask/data/answer-cache.js';
import type { Caps } from '../ask/data/parts.js';
import { StartProblem } from '../base/start-problem.js';
import type { ChatSettings, ContentSettings } from './indexing/content.js';
import type { OtlpSettings } from './otlp/index.js';
import { type AuditKeeping, type AuditSink, auditKeeping, auditSink } from './settings/audit.js';
import { type ControlSettings, controlSettings } from './settings/control.js';
import { type LoadSettings, loadSettings } from './settings/load.js';
import { type OwnerSettings, ownerSettings } from './settings/owner.js';
import {
  type Environment,
  isSet,
  type ReadSetting,
  type SettingName,
  type SettingValue,
  settingsReader,
} from './settings/table.js';
import { type ServerTls, tlsSettings } from './settings/tls.js';
import { type PublicKeyFile, splitList } from './settings/types.js';

/** Settings of a process, from environment and flags. Paths are absolute. */
export interface Settings {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Directory of keys, embedded databases and audit log. */
  readonly dataDir: string;
  /** Keys shared by several gateways; null: own keys in the data directory. */
  readonly keysDir: string | null;
  readonly host: string;
  readonly admin: AdminSettings;
  readonly console: SettingValue<'OSL_CONSOLE'>;
  /** 0: any free port. */
  readonly httpPort: number;
  readonly pgPort: number;
  /** Number of processes; `auto`: one per processor. */
  readonly workers: SettingValue<'OSL_WORKERS'>;
  /** Public keys of issuers of actor tokens (`issuers`, `audiences`). */
  readonly publicKeyFiles: readonly PublicKeyFile[];
  /** File of further issuers; null: none. */
  readonly issuersFile: string | null;
  /** Private key of the exchange, PEM; null: a key in memory. */
  readonly exchangeKeyFile: string | null;
  /** True if tokens signed with the gateway's own key (`osl token`) are accepted. */
  readonly localTokens: boolean;
  /** Accepted `iss`. */
  readonly issuers: readonly string[];
  /** Accepted `aud`; empty: any. */
  readonly audiences: readonly string[];
  readonly tls: ServerTls;
  /** Default sessions per native connector, of all processes. */
  readonly poolSize: number;
  /** Sessions of the system role per connector. */
  readonly systemPoolSize: number;
  /** Share of the pool that one subject leaves free, from 0 to 1. */
  readonly poolReserve: number;
  /** Postgres sessions per subject. */
  readonly subjectSessions: number;
  readonly load: LoadSettings;
  /** Receives a JSON POST at each break-glass use; null: log only. */
  readonly alarms: { readonly url: string | null };
  readonly planCacheBytes: number;
  readonly resultCache: AnswerCacheBounds;
  /** Catalog engines at a time, one per set of rights. */
  readonly catalogEngines: number;
  readonly catalogTimeoutMs: number;
  readonly caps: Caps;
  readonly content: ContentSettings;
  /** Permitted passages compared one by one; above, candidates are searched first. */
  readonly exactUpTo: number;
  /** Null: no traces and metrics are exported. */
  readonly otlp: OtlpSettings | null;
  /** Interval of schema drift checks; 0: only at start and reload. */
  readonly driftMs: number;
  /** Threshold of the slow query log; 0: off. */
  readonly slowQuestionMs: number;
  readonly mcp: McpSettings;
  /** Origins whose pages may call REST. */
  readonly corsOrigins: readonly string[];
  readonly audit: AuditSettings;
  readonly policyFailure: PolicyFailureSettings;
  /** True if the policy file is watched. */
  readonly watchesPolicy: boolean;
  /** Null for a stand-alone gateway. */
  readonly control: ControlSettings | null;
  /** Networks, beside this machine, that may read `/metrics`. */
  readonly metricsFrom: readonly string[];
  /** Receiver of access requests; null: audit log only. */
  readonly owner: OwnerSettings;
  /** File of lineage receivers; null: none. */
  readonly lineageFile: string | null;
}

interface AuditSettings {
  /** After a disk failure: reopen the log, or exit. */
  readonly whenFailed: 'reopen' | 'exit';
  /** Segment size; space for two is reserved. */
  readonly segmentBytes: number;
  /** Window in which health checks are counted for one record. */
  readonly probeWindowMs: number;
  readonly sink: AuditSink;
  readonly keeping: AuditKeeping;
}

/** Handling of a missing or invalid policy. */
export interface PolicyFailureSettings {
  /** How long the last valid policy stays in force; 0: not at all. */
  readonly keepMs: number;
  /** True: also while the control database does not answer. */
  readonly keepsUnknown: boolean;
}

/** Settings of `/mcp`. */
interface McpSettings {
  /** Public origin; null: as in the request. */
  readonly publicUrl: string | null;
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly authorizationServers: readonly string[];
}

/** Admin listener; null: port is not opened. */
interface AdminSettings {
  readonly host: string;
  readonly httpPort: number | null;
  readonly pgPort: number | null;
}

export type { PublicKeyFile };

/**
 * Reads the settings of a process.
 *
 * @param cwd base of relative paths
 * @param over values that take precedence, e.g. of flags
 * @throws StartProblem for invalid or contradictory settings
 */
export function settingsFrom(env: Environment, cwd: string, over: Partial<Settings> = {}): Settings {
  const read = settingsReader(env, cwd);
  const dataDir = over.dataDir ?? read('OSL_DATA_DIR');
  const control = controlSettings(read);
  const keys = read('OSL_PUBLIC_KEYS');
  const issuersFile = read('OSL_ISSUERS');
  const issuers = read('OSL_TOKEN_ISSUERS');
  return Object.freeze({
    manifestFile: read('OSL_MANIFEST'),
    // Copy of the policy in the control database, for tools.
    policyFile:
      control?.policySource === 'control' ? join(dataDir, 'control-policy.yaml') : read('OSL_POLICY'),
    dataDir,
    keysDir: read('OSL_KEYS_DIR'),
    host: read('OSL_HOST'),
    admin: adminSettings(read),
    console: read('OSL_CONSOLE'),
    httpPort: read('OSL_HTTP_PORT'),
    pgPort: read('OSL_PG_PORT'),
    workers: read('OSL_WORKERS'),
    publicKeyFiles: keys,
    exchangeKeyFile: read('OSL_EXCHANGE_KEY'),
    issuersFile,
    localTokens: read('OSL_LOCAL_TOKENS') ?? (keys.length === 0 && issuersFile === null),
    issuers: issuers.length === 0 ? [DEFAULT_ISSUER] : issuers,
    audiences: read('OSL_TOKEN_AUDIENCES'),
    tls: tlsSettings(read),
    poolSize: read('OSL_POOL_SIZE'),
    systemPoolSize: read('OSL_SYSTEM_POOL_SIZE'),
    poolReserve: read('OSL_POOL_RESERVE_PERCENT'),
    subjectSessions: read('OSL_SUBJECT_SESSIONS'),
    load: loadSettings(read),
    alarms: { url: read('OSL_ALARM_URL') },
    catalogEngines: read('OSL_CATALOG_ENGINES'),
    catalogTimeoutMs: read('OSL_CATALOG_TIMEOUT_MS'),
    planCacheBytes: read('OSL_PLAN_CACHE_MIB'),
    resultCache: {
      bytes: read('OSL_RESULT_CACHE_MIB'),
      entries: read('OSL_RESULT_CACHE_ENTRIES'),
      answerBytes: read('OSL_RESULT_CACHE_ANSWER_KIB'),
    },
    caps: {
      rows: read('OSL_MAX_ROWS'),
      bytes: read('OSL_MAX_RESULT_MIB'),
      evidence: read('OSL_MAX_EVIDENCE'),
      timeoutMs: read('OSL_STATEMENT_TIMEOUT_MS'),
    },
    content: contentSettings(read, env),
    exactUpTo: read('OSL_RETRIEVE_EXACT_UP_TO'),
    otlp: otlpSettings(read),
    driftMs: read('OSL_DRIFT_SECONDS'),
    slowQuestionMs: read('OSL_SLOW_QUESTION_MS'),
    mcp: mcpSettings(read),
    corsOrigins: read('OSL_CORS_ORIGINS'),
    metricsFrom: read('OSL_METRICS_FROM'),
    audit: {
      whenFailed: read('OSL_AUDIT_FAILURE'),
      segmentBytes: read('OSL_AUDIT_SEGMENT_MIB'),
      probeWindowMs: read('OSL_AUDIT_PROBE_SECONDS'),
      sink: auditSink(read),
      keeping: auditKeeping(read),
    },
    policyFailure: policyFailure(read),
    owner: ownerSettings(read),
    watchesPolicy: read('OSL_POLICY_WATCH') === 'on',
    control,
    lineageFile: read('OSL_LINEAGE'),
    ...over,
  });
}

/** @throws StartProblem if tokens would be sent unencrypted */
function adminSettings(read: ReadSetting): AdminSettings {
  const host = read('OSL_ADMIN_HOST');
  const httpPort = read('OSL_ADMIN_PORT');
  const pgPort = read('OSL_ADMIN_PG_PORT');
  if ((httpPort !== null || pgPort !== null) && read('OSL_TLS_CERT') === null && !isThisMachine(host))
    throw new StartProblem(
      `OSL_ADMIN_HOST is ${host}, which other machines reach: set OSL_TLS_CERT and OSL_TLS_KEY, or leave it at 127.0.0.1`,
    );
  return Object.freeze({ host, httpPort, pgPort });
}

/** True for loopback addresses. */
export function isThisMachine(host: string): boolean {
  return /^(127(\.\d+){3}|::1|localhost)$/.test(host);
}

function policyFailure(read: ReadSetting): PolicyFailureSettings {
  const word = read('OSL_POLICY_FAILURE');
  return { keepMs: word === 'refuse' ? 0 : read('OSL_POLICY_KEEP_SECONDS'), keepsUnknown: word === 'keep' };
}

function mcpSettings(read: ReadSetting): McpSettings {
  const publicUrl = read('OSL_PUBLIC_URL');
  const hosts = read('OSL_MCP_HOSTS').map((name) => name.toLowerCase());
  const origins = read('OSL_MCP_ORIGINS');
  const authorizationServers = read('OSL_AUTHORIZATION_SERVERS');
  if (publicUrl === null) return { publicUrl, hosts, origins, authorizationServers };
  const { hostname } = new URL(publicUrl);
  return {
    publicUrl,
    hosts: [...hosts, hostname],
    origins: [...origins, publicUrl],
    authorizationServers,
  };
}

/** OpenAI-compatible servers. Keys are read from their variable at each use. */
function contentSettings(read: ReadSetting, env: Environment): ContentSettings {
  const url = read('OSL_EMBEDDINGS_URL');
  return {
    embeddings: url === null ? null : { url, keyEnv: keyIn(env, 'OSL_EMBEDDINGS_KEY') },
    chat: chatSettings(read, env),
  };
}

function keyIn(env: Environment, name: SettingName): string | null {
  return isSet(name, env) ? name : null;
}

function chatSettings(read: ReadSetting, env: Environment): ChatSettings | null {
  const url = read('OSL_CHAT_URL');
  const model = read('OSL_CHAT_MODEL');
  if (url === null) return null;
  if (model === null) throw new StartProblem('OSL_CHAT_URL needs OSL_CHAT_MODEL beside it');
  const perDay = read('OSL_CHAT_PASSAGES_PER_DAY');
  return {
    url,
    model,
    keyEnv: keyIn(env, 'OSL_CHAT_KEY'),
    concurrency: read('OSL_CHAT_CONCURRENCY'),
    timeoutMs: read('OSL_CHAT_TIMEOUT_MS'),
    maxTokens: read('OSL_CHAT_MAX_TOKENS'),
    cacheBytes: read('OSL_CHAT_CACHE_MIB'),
    perDay: perDay === 0 ? null : perDay,
  };
}

function otlpSettings(read: ReadSetting): OtlpSettings | null {
  const endpoint = read('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (endpoint === null || read('OTEL_SDK_DISABLED')) return null;
  read('OTEL_EXPORTER_OTLP_PROTOCOL'); // refuses other protocols
  return Object.freeze({
    endpoint: endpoint.replace(/\/+$/, ''),
    headers: headersIn(read('OTEL_EXPORTER_OTLP_HEADERS')),
    serviceName: read('OTEL_SERVICE_NAME'),
    ratio: read('OTEL_TRACES_SAMPLER_ARG'),
    metricsMs: read('OTEL_METRIC_EXPORT_INTERVAL'),
    spansMs: read('OTEL_BSP_SCHEDULE_DELAY'),
  });
}

function headersIn(text: string): Readonly<Record<string, string>> {
  const pairs = splitList(text).flatMap((pair) => {
    const at = pair.indexOf('=');
    return at <= 0
      ? []
      : [[pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())]];
  });
  return Object.freeze(Object.fromEntries(pairs));
}
