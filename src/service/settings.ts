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

/** What one process is told at start, from its environment and flags. Paths are absolute. */
export interface Settings {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Keys, the embedded database and the audit log. */
  readonly dataDir: string;
  /** Keys that several gateways have; null: each has its own, in its data directory. */
  readonly keysDir: string | null;
  readonly host: string;
  readonly admin: AdminSettings;
  readonly console: SettingValue<'OSL_CONSOLE'>;
  /** 0 lets the system choose. */
  readonly httpPort: number;
  readonly pgPort: number;
  /** Processes that serve side by side; `auto`: as many as there are processors. */
  readonly workers: SettingValue<'OSL_WORKERS'>;
  /** Public keys of issuers of actor tokens, whose `iss` and `aud` are `issuers` and `audiences`. */
  readonly publicKeyFiles: readonly PublicKeyFile[];
  /** Says of further issuers who they are and where their keys are; null for none. */
  readonly issuersFile: string | null;
  /** The private key of the exchange, in PEM; null for one of this server's own, in memory. */
  readonly exchangeKeyFile: string | null;
  /** Whether tokens that are signed with this gateway's own key (`osl token`) are accepted. */
  readonly localTokens: boolean;
  /** Issuers (`iss`) whose tokens are taken; each token names one of them. */
  readonly issuers: readonly string[];
  /** Audiences (`aud`) of which each token must name one; with none, any token may name what it likes. */
  readonly audiences: readonly string[];
  readonly tls: ServerTls;
  /** Sessions per native Postgres connector, of all processes, where the connector's own variable says nothing else. */
  readonly poolSize: number;
  /** Sessions of the gateway's own role with each. */
  readonly systemPoolSize: number;
  /** Which part of them one subject leaves free for others, from 0 to 1. */
  readonly poolReserve: number;
  /** Sessions of the wire that one subject may have open. */
  readonly subjectSessions: number;
  readonly load: LoadSettings;
  /** Receives a JSON POST each time break-glass access is used; null: the log alone has it. */
  readonly alarms: { readonly url: string | null };
  readonly planCacheBytes: number;
  /** Of answers that may be given again. */
  readonly resultCache: AnswerCacheBounds;
  /** Engines of the catalog at a time, one for each set of rights that asks. */
  readonly catalogEngines: number;
  /** Time that a statement about the catalog may run. */
  readonly catalogTimeoutMs: number;
  readonly caps: Caps;
  readonly content: ContentSettings;
  /** Permitted passages that are compared one by one; above, candidates are found first. */
  readonly exactUpTo: number;
  /** Where traces and metrics go; null: nowhere. */
  readonly otlp: OtlpSettings | null;
  /** How often it is looked whether databases have what the manifest declares; 0: at a start and a reload alone. */
  readonly driftMs: number;
  /** Questions that take so long have a line in the operator's log; 0: none has. */
  readonly slowQuestionMs: number;
  readonly mcp: McpSettings;
  /** Origins whose pages may call REST, each as a browser sends it. */
  readonly corsOrigins: readonly string[];
  readonly audit: AuditSettings;
  readonly policyFailure: PolicyFailureSettings;
  /** Whether a policy file that changes is taken up without a signal. */
  readonly watchesPolicy: boolean;
  /** Null for a gateway that shares nothing with others. */
  readonly control: ControlSettings | null;
  /** Addresses and networks, beside this machine, that may read `/metrics`. */
  readonly metricsFrom: readonly string[];
  /** Where requests for access go; null where they stay in the audit log. */
  readonly owner: OwnerSettings;
  /** Says who is told of lineage; null for nobody. */
  readonly lineageFile: string | null;
}

interface AuditSettings {
  /** When the disk of the log fails: whether the log goes on by itself once it can, or the process ends. */
  readonly whenFailed: 'reopen' | 'exit';
  /** Size of a segment; two are kept free. */
  readonly segmentBytes: number;
  /** For how long requests for `/health` and its kind are counted before one record has their number. */
  readonly probeWindowMs: number;
  readonly sink: AuditSink;
  readonly keeping: AuditKeeping;
}

/** The policy that serves while the newest one is missing or invalid. */
export interface PolicyFailureSettings {
  /** For so long the last valid policy that this process loaded; 0: nothing, at once. */
  readonly keepMs: number;
  /** Also while the control database, which says what the newest is, does not answer. */
  readonly keepsUnknown: boolean;
}

/** Whom `/mcp` serves beside this machine, and what it says of itself to clients without a token. */
interface McpSettings {
  /** The origin under which clients reach this server; null: what they called it. */
  readonly publicUrl: string | null;
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly authorizationServers: readonly string[];
}

/** The listener for administrators; a port that is null is not opened. */
interface AdminSettings {
  readonly host: string;
  readonly httpPort: number | null;
  readonly pgPort: number | null;
}

export type { PublicKeyFile };

/**
 * The settings of one process.
 *
 * @param cwd where relative paths begin
 * @param over values that take precedence, such as those of flags
 * @throws StartProblem for a value that its type refuses, and for settings that contradict each other
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
    // What tools read of a policy in the control database is the gateway's copy of it.
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

/** @throws StartProblem if tokens would leave the machine in the clear */
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

/** True if no other machine reaches `host`. */
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

/** OpenAI-compatible servers. A key is named by its variable, which is read when the key is sent. */
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
  read('OTEL_EXPORTER_OTLP_PROTOCOL'); // one protocol is spoken: any other is refused
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
