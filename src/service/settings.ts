import { join } from 'node:path';
import { DEFAULT_ISSUER } from '../../policy/tokens/token-fault.js';
import { StartProblem } from '../base/start-problem.js';
import type { ChatSettings, ContentSettings } from './indexing/content.js';
import type { OtlpSettings } from './otlp/collector.js';
import {
  auditRetention,
  auditSink,
  auditSync,
  controlSettings,
  loadSettings,
  ownerSettings,
  tlsSettings,
} from './settings/groups.js';
import {
  type Environment,
  isSet,
  type ReadSetting,
  type SettingName,
  settingsReader,
} from './settings/table.js';
import { type PublicKeyFile, splitList } from './settings/types.js';

/** Settings of a process, from environment and flags. Paths are absolute. */
export type Settings = Readonly<ReturnType<typeof readSettings>>;

/** Handling of a missing or invalid policy. */
export interface PolicyFailureSettings {
  /** Time for which the last valid policy stays in force, in ms; 0 means not at all. */
  readonly keepMs: number;
  /** True to keep the policy even while the control database does not answer. */
  readonly keepsUnknown: boolean;
}

export type { PublicKeyFile };

/**
 * Reads the settings of a process.
 *
 * @param cwd base for relative paths
 * @param overrides values that take precedence, e.g. of flags
 * @throws StartProblem for invalid or contradictory settings
 */
export function settingsFrom(env: Environment, cwd: string, overrides: Partial<Settings> = {}): Settings {
  const read = settingsReader(env, cwd);
  return Object.freeze({
    ...readSettings(read, env, overrides.dataDir ?? read('OSL_DATA_DIR')),
    ...overrides,
  });
}

function readSettings(read: ReadSetting, env: Environment, dataDir: string) {
  const control = controlSettings(read);
  const keys = read('OSL_PUBLIC_KEYS');
  const issuersFile = read('OSL_ISSUERS');
  const issuers = read('OSL_TOKEN_ISSUERS');
  return {
    manifestFile: read('OSL_MANIFEST'),
    // If the policy is kept in the control database, this file is a local copy of it, for tools.
    policyFile:
      control?.policySource === 'control' ? join(dataDir, 'control-policy.yaml') : read('OSL_POLICY'),
    dataDir,
    /** Keys shared by several gateways; null: own keys in the data directory. */
    keysDir: read('OSL_KEYS_DIR'),
    host: read('OSL_HOST'),
    admin: adminSettings(read),
    console: read('OSL_CONSOLE'),
    /** Folder with shared dashboards; null if there is none. */
    dashboardsDir: read('OSL_DASHBOARDS'),
    httpPort: read('OSL_HTTP_PORT'),
    pgPort: read('OSL_PG_PORT'),
    workers: read('OSL_WORKERS'),
    publicKeyFiles: keys,
    /** File with the key that signs exchanged tokens; null: a generated key in memory. */
    exchangeKeyFile: read('OSL_EXCHANGE_KEY'),
    issuersFile,
    /** True if tokens signed with the gateway's own key (`osl token`) are accepted. */
    localTokens: read('OSL_LOCAL_TOKENS') ?? (keys.length === 0 && issuersFile === null),
    issuers: issuers.length === 0 ? [DEFAULT_ISSUER] : issuers,
    audiences: read('OSL_TOKEN_AUDIENCES'),
    tls: tlsSettings(read),
    /** Default pool size per native connector, for all processes together. */
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
    subscriptions: {
      total: read('OSL_SUBSCRIPTIONS'),
      perSubject: read('OSL_SUBJECT_SUBSCRIPTIONS'),
      minIntervalMs: read('OSL_SUBSCRIPTION_INTERVAL_SECONDS'),
    },
    caps: {
      rows: read('OSL_MAX_ROWS'),
      bytes: read('OSL_MAX_RESULT_MIB'),
      evidence: read('OSL_MAX_EVIDENCE'),
      timeoutMs: read('OSL_STATEMENT_TIMEOUT_MS'),
    },
    content: contentSettings(read, env),
    /** Maximum number of permitted passages to compare one by one. If there are more, candidates are selected first. */
    exactUpTo: read('OSL_RETRIEVE_EXACT_UP_TO'),
    otlp: otlpSettings(read),
    driftMs: read('OSL_DRIFT_SECONDS'),
    slowQuestionMs: read('OSL_SLOW_QUESTION_MS'),
    mcp: mcpSettings(read),
    corsOrigins: read('OSL_CORS_ORIGINS'),
    metricsFrom: read('OSL_METRICS_FROM'),
    audit: {
      whenFailed: read('OSL_AUDIT_FAILURE'),
      sync: auditSync(read),
      segmentBytes: read('OSL_AUDIT_SEGMENT_MIB'),
      probeWindowMs: read('OSL_AUDIT_PROBE_SECONDS'),
      sink: auditSink(read),
      keeping: auditRetention(read),
    },
    policyFailure: policyFailure(read),
    owner: ownerSettings(read),
    watchesPolicy: read('OSL_POLICY_WATCH') === 'on',
    /** Control database; null for a stand-alone gateway. */
    control,
    lineageFile: read('OSL_LINEAGE'),
  };
}

/** @throws StartProblem if tokens would be sent unencrypted */
function adminSettings(read: ReadSetting) {
  const host = read('OSL_ADMIN_HOST');
  const httpPort = read('OSL_ADMIN_PORT');
  const pgPort = read('OSL_ADMIN_PG_PORT');
  if ((httpPort !== null || pgPort !== null) && read('OSL_TLS_CERT') === null && !isLoopbackHost(host))
    throw new StartProblem(
      `OSL_ADMIN_HOST is ${host}, which other machines reach: set OSL_TLS_CERT and OSL_TLS_KEY, or leave it at 127.0.0.1`,
    );
  return Object.freeze({ host, httpPort, pgPort });
}

/** True for loopback addresses. */
export function isLoopbackHost(host: string): boolean {
  return /^(127(\.\d+){3}|::1|localhost)$/.test(host);
}

function policyFailure(read: ReadSetting): PolicyFailureSettings {
  const mode = read('OSL_POLICY_FAILURE');
  return { keepMs: mode === 'refuse' ? 0 : read('OSL_POLICY_KEEP_SECONDS'), keepsUnknown: mode === 'keep' };
}

function mcpSettings(read: ReadSetting) {
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

/** Settings of OpenAI-compatible servers, whose keys are read from their variables at each use. */
function contentSettings(read: ReadSetting, env: Environment): ContentSettings {
  const url = read('OSL_EMBEDDINGS_URL');
  return {
    embeddings: url === null ? null : { url, keyEnv: keyVariable(env, 'OSL_EMBEDDINGS_KEY') },
    chat: chatSettings(read, env),
  };
}

function keyVariable(env: Environment, name: SettingName): string | null {
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
    keyEnv: keyVariable(env, 'OSL_CHAT_KEY'),
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
    headers: parseHeaders(read('OTEL_EXPORTER_OTLP_HEADERS')),
    serviceName: read('OTEL_SERVICE_NAME'),
    ratio: read('OTEL_TRACES_SAMPLER_ARG'),
    metricsMs: read('OTEL_METRIC_EXPORT_INTERVAL'),
    spansMs: read('OTEL_BSP_SCHEDULE_DELAY'),
  });
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw new StartProblem('OTEL_EXPORTER_OTLP_HEADERS: a `%` in a value must begin a code such as %20');
  }
}

function parseHeaders(text: string): Readonly<Record<string, string>> {
  const pairs = splitList(text).flatMap((pair) => {
    const at = pair.indexOf('=');
    return at <= 0 ? [] : [[pair.slice(0, at).trim().toLowerCase(), decoded(pair.slice(at + 1).trim())]];
  });
  return Object.freeze(Object.fromEntries(pairs));
}
