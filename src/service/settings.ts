import { isAbsolute, join, resolve } from 'node:path';
import { DEFAULT_ISSUER } from '../../policy/token-fault.js';
import type { KeptBounds } from '../ask/data/kept-answers.js';
import type { Caps } from '../ask/data/parts.js';
import { networkOf } from '../base/networks.js';
import { StartProblem } from '../base/start-problem.js';
import type { ChatSettings, ContentSettings } from './content.js';
import { type OtlpSettings, otlpSettings } from './otlp/settings.js';
import { type AdminSettings, adminSettings } from './settings/admin.js';
import { type AlarmSettings, alarmSettings } from './settings/alarms.js';
import { type AuditKeeping, type AuditSink, auditKeeping, auditSink } from './settings/audit.js';
import { type ConsoleSettings, consoleSettings } from './settings/console.js';
import { type ControlSettings, controlPlace } from './settings/control.js';
import { type LoadSettings, loadSettings } from './settings/load.js';
import { type OwnerSettings, ownerSettings } from './settings/owner.js';
import { type TlsSettings, tlsSettings } from './settings/tls.js';

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
  readonly console: ConsoleSettings;
  /** 0 lets the system choose. */
  readonly httpPort: number;
  readonly pgPort: number;
  /** Processes that serve side by side; `auto`: as many as there are processors. */
  readonly workers: number | 'auto';
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
  readonly tls: TlsSettings;
  /** Sessions per native Postgres connector, of all processes, where the connector's own variable says nothing else. */
  readonly poolSize: number;
  /** Sessions of the gateway's own role with each. */
  readonly systemPoolSize: number;
  /** Which part of them one subject leaves free for others, from 0 to 1. */
  readonly poolReserve: number;
  /** Sessions of the wire that one subject may have open. */
  readonly subjectSessions: number;
  readonly load: LoadSettings;
  readonly alarms: AlarmSettings;
  readonly planCacheBytes: number;
  /** Of answers that may be given again. */
  readonly resultCache: KeptBounds;
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

/** A PEM file with one key, or a JSON Web Key Set. */
export interface PublicKeyFile {
  /** What tokens call the key of a PEM file; null where it has no name, and for a set, which names its own. */
  readonly kid: string | null;
  readonly file: string;
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

const DEFAULT_HTTP_PORT = 8642;
export const DEFAULT_PG_PORT = 15432;
const MIB = 1_048_576;

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings from environment variables; `over` is what flags say. @throws StartProblem */
export function settingsFrom(env: Environment, cwd: string, over: Partial<Settings> = {}): Settings {
  const path = (value: string): string => (isAbsolute(value) ? value : resolve(cwd, value));
  const issuers = namesIn(env, 'OSL_PUBLIC_KEYS').map((text) => publicKeyFile(text, path));
  return Object.freeze({
    manifestFile: path(env['OSL_MANIFEST'] ?? 'manifest.yaml'),
    policyFile: path(env['OSL_POLICY'] ?? 'policy.yaml'),
    dataDir: path(env['OSL_DATA_DIR'] ?? '.osl'),
    keysDir: (env['OSL_KEYS_DIR'] ?? '') === '' ? null : path(env['OSL_KEYS_DIR'] ?? ''),
    host: env['OSL_HOST'] ?? '127.0.0.1',
    admin: adminSettings({
      port: (name) => ((env[name] ?? '') === '' ? null : integer(env, name, 0, 0, 65_535)),
      host: env['OSL_ADMIN_HOST'],
      hasTls: (env['OSL_TLS_CERT'] ?? '') !== '',
    }),
    console: consoleSettings(env),
    httpPort: integer(env, 'OSL_HTTP_PORT', DEFAULT_HTTP_PORT, 0, 65_535),
    pgPort: integer(env, 'OSL_PG_PORT', DEFAULT_PG_PORT, 0, 65_535),
    workers: workersIn(env),
    publicKeyFiles: issuers,
    exchangeKeyFile: fileIn(env, 'OSL_EXCHANGE_KEY', path),
    issuersFile: fileIn(env, 'OSL_ISSUERS', path),
    localTokens:
      oneOf(env, 'OSL_LOCAL_TOKENS', hasIssuers(env, issuers) ? ['off', 'on'] : ['on', 'off']) === 'on',
    issuers: namesOr(namesIn(env, 'OSL_TOKEN_ISSUERS'), [DEFAULT_ISSUER]),
    audiences: namesIn(env, 'OSL_TOKEN_AUDIENCES'),
    tls: tlsSettings(env, path),
    poolSize: integer(env, 'OSL_POOL_SIZE', 10, 1, 1_000),
    systemPoolSize: integer(env, 'OSL_SYSTEM_POOL_SIZE', 2, 1, 100),
    poolReserve: integer(env, 'OSL_POOL_RESERVE_PERCENT', 25, 0, 50) / 100,
    subjectSessions: integer(env, 'OSL_SUBJECT_SESSIONS', 1_000, 1, 1_000_000),
    load: loadSettings(env, controlPlace(env, path), path),
    alarms: alarmSettings(env),
    catalogEngines: integer(env, 'OSL_CATALOG_ENGINES', 8, 1, 1_000),
    catalogTimeoutMs: integer(env, 'OSL_CATALOG_TIMEOUT_MS', 5_000, 1, 600_000),
    planCacheBytes: integer(env, 'OSL_PLAN_CACHE_MIB', 64, 0, 65_536) * MIB,
    resultCache: {
      bytes: integer(env, 'OSL_RESULT_CACHE_MIB', 64, 0, 65_536) * MIB,
      entries: integer(env, 'OSL_RESULT_CACHE_ENTRIES', 10_000, 1, 10_000_000),
      answerBytes: integer(env, 'OSL_RESULT_CACHE_ANSWER_KIB', 1_024, 1, 1_048_576) * 1_024,
    },
    caps: {
      rows: integer(env, 'OSL_MAX_ROWS', 1_000_000, 1, Number.MAX_SAFE_INTEGER),
      bytes: integer(env, 'OSL_MAX_RESULT_MIB', 1_024, 1, 1_048_576) * MIB,
      evidence: integer(env, 'OSL_MAX_EVIDENCE', 10_000, 1, 1_000_000),
      timeoutMs: integer(env, 'OSL_STATEMENT_TIMEOUT_MS', 30_000, 1, 86_400_000),
    },
    content: contentSettings(env),
    exactUpTo: integer(env, 'OSL_RETRIEVE_EXACT_UP_TO', 30_000, 0, 1_000_000_000),
    otlp: otlpSettings(env),
    driftMs: integer(env, 'OSL_DRIFT_SECONDS', 30, 0, 86_400) * 1_000,
    slowQuestionMs: integer(env, 'OSL_SLOW_QUESTION_MS', 0, 0, 86_400_000),
    mcp: mcpSettings(env),
    corsOrigins: namesIn(env, 'OSL_CORS_ORIGINS').map(checkedOrigin),
    metricsFrom: namesIn(env, 'OSL_METRICS_FROM').map(checkedNetwork),
    audit: {
      whenFailed: oneOf(env, 'OSL_AUDIT_FAILURE', ['reopen', 'exit']),
      segmentBytes: integer(env, 'OSL_AUDIT_SEGMENT_MIB', 32, 1, 1_024) * MIB,
      probeWindowMs: integer(env, 'OSL_AUDIT_PROBE_SECONDS', 60, 1, 3_600) * 1_000,
      sink: auditSink(env, path),
      keeping: auditKeeping(env, path, (name, fallback, least, most) =>
        integer(env, name, fallback, least, most),
      ),
    },
    policyFailure: policyFailure(env),
    owner: ownerSettings(env, path),
    watchesPolicy: oneOf(env, 'OSL_POLICY_WATCH', ['off', 'on']) === 'on',
    control: controlSettings(env, path),
    lineageFile: fileIn(env, 'OSL_LINEAGE', path),
    ...over,
    ...(fromControl(env) &&
      over.policyFile === undefined && {
        policyFile: copyIn(over.dataDir ?? path(env['OSL_DATA_DIR'] ?? '.osl')),
      }),
  });
}

function policyFailure(env: Environment): PolicyFailureSettings {
  const unset = (env['OSL_POLICY_FAILURE'] ?? '') === '';
  const word = unset ? null : oneOf(env, 'OSL_POLICY_FAILURE', ['refuse', 'keep']);
  const seconds = integer(env, 'OSL_POLICY_KEEP_SECONDS', 3_600, 0, 604_800);
  return { keepMs: word === 'refuse' ? 0 : 1_000 * seconds, keepsUnknown: word === 'keep' };
}

/** Where the control database has the policy, what tools read is the gateway's copy of it. */
function copyIn(dataDir: string): string {
  return join(dataDir, 'control-policy.yaml');
}

function fromControl(env: Environment): boolean {
  return env['OSL_POLICY_SOURCE'] === 'control';
}

function controlSettings(env: Environment, path: (value: string) => string): ControlSettings | null {
  const place = controlPlace(env, path);
  const policySource = oneOf(env, 'OSL_POLICY_SOURCE', ['file', 'control']);
  const silenceMs = integer(env, 'OSL_CONTROL_SILENCE_SECONDS', 10, 2, 86_400) * 1_000;
  if (place === null && policySource === 'control')
    throw new StartProblem('OSL_POLICY_SOURCE=control needs OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE');
  return place === null ? null : Object.freeze({ place, policySource, silenceMs });
}

function fileIn(env: Environment, name: string, path: (value: string) => string): string | null {
  const file = env[name] ?? '';
  return file === '' ? null : path(file);
}

function hasIssuers(env: Environment, files: readonly PublicKeyFile[]): boolean {
  return files.length > 0 || (env['OSL_ISSUERS'] ?? '') !== '';
}

/** What the numbers of wire sessions have room for. */
export const MOST_WORKERS = 64;

function workersIn(env: Environment): number | 'auto' {
  const text = env['OSL_WORKERS'] ?? '';
  if (text === '') return 1;
  if (text === 'auto') return text;
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= MOST_WORKERS) return count;
  throw new StartProblem(
    `OSL_WORKERS must be auto or a whole number from 1 to ${MOST_WORKERS}, not \`${text}\``,
  );
}

function namesOr(names: readonly string[], fallback: readonly string[]): readonly string[] {
  return names.length === 0 ? fallback : names;
}

function integer(env: Environment, name: string, fallback: number, least: number, most: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new StartProblem(`${name} must be a whole number from ${least} to ${most}, not \`${text}\``);
  }
  return value;
}

/** What stands between commas. */
function namesIn(env: Environment, name: string): readonly string[] {
  return (env[name] ?? '')
    .split(',')
    .map((n) => n.trim())
    .filter((n) => n !== '');
}

/** `issuer.pem`, or `kid=issuer.pem`. */
function publicKeyFile(text: string, path: (value: string) => string): PublicKeyFile {
  const at = text.indexOf('=');
  const kid = at > 0 && !text.slice(0, at).includes('/') ? text.slice(0, at) : null;
  return Object.freeze({ kid, file: path(kid === null ? text : text.slice(at + 1)) });
}

function checkedNetwork(text: string): string {
  if (networkOf(text) === null)
    throw new StartProblem(
      `OSL_METRICS_FROM must name addresses or networks such as 10.0.0.0/8, not \`${text}\``,
    );
  return text;
}

/** Exactly what a browser sends: no `*`, no path, no default port. */
function checkedOrigin(text: string): string {
  const isWeb = /^https?:/.test(text) && !text.includes('*');
  if (isWeb && URL.canParse(text) && new URL(text).origin === text) return text;
  throw new StartProblem(
    `OSL_CORS_ORIGINS must name origins as browsers send them, such as https://app.example, not \`${text}\``,
  );
}

/** The first one unless the variable says another. */
function oneOf<const T extends string>(env: Environment, name: string, words: readonly [T, ...T[]]): T {
  const text = env[name] ?? '';
  const word = text === '' ? words[0] : words.find((known) => known === text);
  if (word === undefined) throw new StartProblem(`${name} must be ${words.join(' or ')}, not \`${text}\``);
  return word;
}

function mcpSettings(env: Environment): McpSettings {
  const url = env['OSL_PUBLIC_URL'] ?? '';
  const names = (name: string): readonly string[] => namesIn(env, name);
  const hosts = names('OSL_MCP_HOSTS').map((n) => n.toLowerCase());
  const rest = {
    origins: names('OSL_MCP_ORIGINS'),
    authorizationServers: names('OSL_AUTHORIZATION_SERVERS'),
  };
  if (url === '') return { publicUrl: null, hosts, ...rest };
  const { origin, hostname } = originIn(url);
  return { publicUrl: origin, hosts: [...hosts, hostname], ...rest, origins: [...rest.origins, origin] };
}

function originIn(url: string): URL {
  try {
    const parsed = new URL(url);
    if (parsed.protocol === 'https:' || parsed.protocol === 'http:') return parsed;
  } catch {
    // said below
  }
  throw new StartProblem(`OSL_PUBLIC_URL must be an http or https URL, not \`${url}\``);
}

/** OpenAI-compatible endpoints, by environment. A key is named, never given: it is read when it is sent. */
function contentSettings(env: Environment): ContentSettings {
  const embeddings = env['OSL_EMBEDDINGS_URL'];
  return {
    embeddings:
      embeddings === undefined ? null : { url: embeddings, keyEnv: keyIn(env, 'OSL_EMBEDDINGS_KEY') },
    chat: chatSettings(env),
  };
}

function keyIn(env: Environment, name: string): string | null {
  return env[name] === undefined ? null : name;
}

function chatSettings(env: Environment): ChatSettings | null {
  const url = env['OSL_CHAT_URL'];
  const model = env['OSL_CHAT_MODEL'];
  if (url === undefined) return null;
  if (model === undefined) throw new StartProblem('OSL_CHAT_URL needs OSL_CHAT_MODEL beside it');
  const perDay = integer(env, 'OSL_CHAT_PASSAGES_PER_DAY', 0, 0, 1_000_000_000);
  return {
    url,
    model,
    keyEnv: keyIn(env, 'OSL_CHAT_KEY'),
    concurrency: integer(env, 'OSL_CHAT_CONCURRENCY', 4, 1, 256),
    timeoutMs: integer(env, 'OSL_CHAT_TIMEOUT_MS', 30_000, 1, 3_600_000),
    maxTokens: integer(env, 'OSL_CHAT_MAX_TOKENS', 1_024, 1, 1_000_000),
    cacheBytes: integer(env, 'OSL_CHAT_CACHE_MIB', 16, 0, 65_536) * MIB,
    perDay: perDay === 0 ? null : perDay,
  };
}
