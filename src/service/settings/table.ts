import { DEFAULT_ISSUER } from '../../../policy/tokens/token-fault.js';
import { StartProblem } from '../../base/start-problem.js';
import {
  days,
  decimal,
  flag,
  integer,
  kib,
  mib,
  milliseconds,
  names,
  networks,
  oneOf,
  onOff,
  optional,
  origins,
  path,
  percent,
  places,
  port,
  publicKeyFiles,
  type SettingDefinition,
  seconds,
  secret,
  setting,
  text,
  webOrigin,
  webUrl,
  wordOr,
} from './types.js';

/**
 * All settings, in the order of docs/configuration.md, which is generated from this table, as are the flags of `osl
 * serve`, `osl config` and `osl doctor`. Settings are declared nowhere else.
 */

const file = path('a file');
const pem = path('a PEM file');
const directory = path('a directory');
const postgresUrl = secret('a `postgres://` URL');

/** Maximum number of workers, limited by the bits for the worker number in the process id of a Postgres session. */
export const MAX_WORKERS = 64;

// biome-ignore format: one setting a line
const serving = {
  OSL_MANIFEST: setting(file, 'manifest.yaml', '[Manifest](manifest.md): entities, joins, metrics.', '--manifest <file>'),
  OSL_POLICY: setting(file, 'policy.yaml', '[Policy](policy.md): who may see which rows and columns.', '--policy <file>'),
  OSL_POSTGRES_URL: optional(postgresUrl, 'URL of the database of a connector with `url_env: OSL_POSTGRES_URL`: see [Databases](#databases).'),
  OSL_DATA_DIR: setting(directory, '.osl', 'Keys, audit log, published versions and embedded database. One server at a time.', '--data-dir <dir>'),
  OSL_HOST: setting(text('an address'), '127.0.0.1', 'Address to listen on. Other machines need [TLS](#tls).', '--host <address>'),
  OSL_HTTP_PORT: setting(port, '8642', 'Port of REST, MCP and the console. 0: any free port.', '--http-port <port>'),
  OSL_PG_PORT: setting(port, '15432', 'Port of the Postgres protocol. 0: any free port.', '--pg-port <port>'),
  OSL_CONSOLE: setting(oneOf('off', 'on', 'admin'), 'off', 'Serve the [console](console.md) at `/console`; `admin`: with the pages for administrators. Default of `osl demo`: `admin`.', '--console <off|on|admin>'),
  OSL_DASHBOARDS: optional(directory, 'Folder with [dashboards](console.md#shared-dashboards) that the console lists by role. Read again on reload.'),
  OSL_WORKERS: setting(wordOr('auto', integer(1, MAX_WORKERS)), '1', 'Number of processes that share the ports; `auto`: one for each processor. [More](operations.md#several-workers).', '--workers <n|auto>'),
};

// biome-ignore format: one setting a line
const databases = {
  OSL_POOL_SIZE: setting(integer(1, 1_000), '10', 'Largest number of connections for queries to each Postgres, of all workers together; `NAME_POOL_SIZE` sets it for one connector. [More](operations.md#several-hosts-failover-pools).'),
  OSL_SYSTEM_POOL_SIZE: setting(integer(1, 100), '2', "Connections of the gateway's own role to each Postgres, for each worker."),
  OSL_POOL_RESERVE_PERCENT: setting(percent(0, 50), '25', 'Share of the pool that one subject leaves free for others.'),
  OSL_STATEMENT_TIMEOUT_MS: setting(milliseconds(1, 86_400_000), '30000', 'Longest time for one query, until its last row has been sent.'),
  OSL_DRIFT_SECONDS: setting(seconds(0, 86_400), '30', 'Interval at which to check that the databases [still match the manifest](operations.md#database-down-or-schema-changed). 0: only at start and reload.'),
};

// biome-ignore format: one setting a line
const tls = {
  OSL_TLS_CERT: optional(pem, 'Certificate, with its chain, of the Postgres protocol, REST and MCP. [More](operations.md#tls).'),
  OSL_TLS_KEY: optional(pem, 'Private key of OSL_TLS_CERT.'),
  OSL_HTTP_TLS: setting(onOff, 'on', '`off`: REST and MCP stay plain HTTP, for a proxy that terminates TLS.'),
  OSL_HTTP_TLS_CERT: optional(pem, 'Certificate for REST and MCP, if not OSL_TLS_CERT.'),
  OSL_HTTP_TLS_KEY: optional(pem, 'Private key of OSL_HTTP_TLS_CERT.'),
  OSL_TLS_CLIENT_CA: optional(pem, 'Authorities that sign [client certificates](operations.md#client-certificates). If set, clients are asked for one.'),
  OSL_TLS_CLIENT_CRL: optional(pem, 'Revocation lists of these authorities, one per authority.'),
  OSL_TLS_CLIENTS: setting(oneOf('ask', 'require'), 'ask', '`require`: refuse clients without a certificate.'),
  OSL_TLS_WATCH_SECONDS: setting(seconds(0, 86_400), '10', 'Interval at which to look for new certificate files. 0: only at SIGHUP.'),
};

// biome-ignore format: one setting a line
const tokens = {
  OSL_PUBLIC_KEYS: setting(publicKeyFiles, '', "Public keys of issuers of actor tokens: RSA (RS256), P-256 (ES256) or Ed25519 (EdDSA). If set, tokens signed with the gateway's own key are refused unless OSL_LOCAL_TOKENS=on."),
  OSL_ISSUERS: optional(file, '[File](identity.md) of further issuers: key URLs, audiences, clock skew, and whether they sign actor or identity tokens. Read again on reload.'),
  OSL_TOKEN_ISSUERS: setting(names('names'), DEFAULT_ISSUER, 'Accepted values of the claim `iss`.'),
  OSL_TOKEN_AUDIENCES: setting(names('names'), '', 'Accepted values of the claim `aud`. Unset: any.'),
  OSL_LOCAL_TOKENS: optional(onOff, "Accept tokens signed with the gateway's own key (`osl token`). Unset: on, unless OSL_PUBLIC_KEYS or OSL_ISSUERS names issuers."),
  OSL_EXCHANGE_KEY: optional(file, 'Private key (Ed25519, PEM) that signs [exchanged](identity.md#exchange) tokens, for several gateways that accept each other’s. Unset: a key in memory.'),
};

// biome-ignore format: one setting a line
const policy = {
  OSL_POLICY_WATCH: setting(oneOf('off', 'on'), 'off', '`on`: load the policy file when it changes, without a signal.'),
  OSL_POLICY_KEEP_SECONDS: setting(seconds(0, 604_800), '3600', 'Time for which the last valid policy stays in force while the newest is missing or invalid. Afterwards every request is refused (503 E2001). 0: refuse at once.'),
  OSL_POLICY_FAILURE: optional(oneOf('refuse', 'keep'), 'When the control database has not answered for OSL_CONTROL_SILENCE_SECONDS: `refuse` every request (503 E2001), or `keep` the last valid policy for OSL_POLICY_KEEP_SECONDS. Unset: refuse; `refuse` written out also means OSL_POLICY_KEEP_SECONDS=0. [More](operations.md#the-policy-is-missing-or-invalid).'),
};

// biome-ignore format: one setting a line
const limits = {
  OSL_MAX_ROWS: setting(integer(1, Number.MAX_SAFE_INTEGER), '1000000', 'Maximum number of rows in one answer.'),
  OSL_MAX_RESULT_MIB: setting(mib(1, 1_048_576), '1024', 'Largest answer, in MiB as the database sends it.'),
  OSL_MAX_ROW_MIB: setting(mib(1, 1_024), '16', 'Largest row, in MiB as the database sends it; a larger one fails its statement (E0530, 54000).'),
  OSL_MAX_EVIDENCE: setting(integer(1, 1_000_000), '10000', 'Maximum number of `evidence` passages in one answer.'),
  OSL_SUBJECT_SESSIONS: setting(integer(1, 1_000_000), '1000', 'Maximum number of Postgres sessions of one subject.'),
  OSL_ADDRESS_SESSIONS: setting(integer(1, 1_000_000), '5000', 'Maximum number of Postgres sessions of one client address (IPv6: of its /64).'),
  OSL_SUBSCRIPTIONS: setting(integer(0, 1_000_000), '1000', 'Maximum number of [subscriptions](rest.md#subscriptions) of each worker. 0: none.'),
  OSL_SUBJECT_SUBSCRIPTIONS: setting(integer(1, 1_000_000), '20', 'Maximum number of subscriptions of one subject with each worker.'),
  OSL_SUBSCRIPTION_INTERVAL_SECONDS: setting(seconds(1, 300), '5', 'Shortest interval at which a subscription may run its query.'),
  OSL_ANSWER_MEMORY_MIB: optional(mib(1, 1_048_576), 'Memory for the [large rows](operations.md#large-values) of all answers in progress: half of it for one subject, and room for eight rows in any case. Unset: a quarter of what the process may use, at most 1024.'),
  OSL_SPOOL_MIB: setting(mib(0, 1_048_576), '1024', 'Disk space for rows that [slow readers](operations.md#slow-clients) have not taken yet; half of it for one subject. 0: none.'),
  OSL_LIMITS_URL: optional(secret('a redis://, rediss:// or postgres:// URL'), 'Redis or Postgres in which several gateways [count limits together](operations.md#limits). Redis needs the package `@redis/client`. Unset: OSL_CONTROL_URL; without that, each gateway counts alone.'),
  OSL_LIMITS_URL_FILE: optional(file, 'File that holds OSL_LIMITS_URL. Read at start for Redis, for each connection for Postgres.'),
};

// biome-ignore format: one setting a line
const caches = {
  OSL_PLAN_CACHE_MIB: setting(mib(0, 65_536), '64', 'Memory for compiled plans. 0: none.'),
  OSL_RESULT_CACHE_MIB: setting(mib(0, 65_536), '64', 'Memory for [cached answers](caching.md), of all workers together. 0: no cache.'),
  OSL_RESULT_CACHE_ENTRIES: setting(integer(1, 10_000_000), '10000', 'Maximum number of cached answers.'),
  OSL_RESULT_CACHE_ANSWER_KIB: setting(kib(1, 1_048_576), '1024', 'Largest answer that is cached.'),
  OSL_CATALOG_ENGINES: setting(integer(1, 1_000), '8', 'Maximum number of [catalog](operations.md#memory) engines at a time, one for each set of rights in use; [more](scale.md#the-catalog) for thousands of entities.'),
  OSL_CATALOG_TIMEOUT_MS: setting(milliseconds(1, 600_000), '5000', 'Longest time for a statement about the catalog; then it is canceled (57014).'),
};

// biome-ignore format: one setting a line
const audit = {
  OSL_AUDIT_FAILURE: setting(oneOf('reopen', 'exit'), 'reopen', 'When the disk of the log fails: `reopen` the log once it can be written, or `exit` with status 7. Every request is refused until then.'),
  OSL_AUDIT_SYNC: setting(oneOf('disk', 'kernel'), 'disk', 'When a record of a file counts as recorded, so that the answer may leave: `disk`, once it is synced; `kernel`, once it is written. [`kernel`](audit.md#disk-or-kernel) survives kill -9, but a power failure may lose the last 50 ms.'),
  OSL_AUDIT_SINK: setting(oneOf('files', 'postgres'), 'files', 'Storage of records: segment files in the data directory, or [tables of a Postgres](audit.md#store-the-log-in-postgres).'),
  OSL_AUDIT_URL: optional(postgresUrl, 'Database of these tables (schema `osl_audit`). Unset: OSL_CONTROL_URL.'),
  OSL_AUDIT_URL_FILE: optional(file, 'File that holds OSL_AUDIT_URL.'),
  OSL_AUDIT_RETENTION_DAYS: setting(days(0, 36_500), '0', 'Remove segments whose records are all older, and [sign for it](audit.md#delete-old-records). 0: keep everything.'),
  OSL_AUDIT_ARCHIVE: optional(directory, 'Directory, which must exist, for removed segment files. Unset: they are deleted.'),
  OSL_AUDIT_WITNESS: setting(places, '', '[Witnesses](audit.md#external-witnesses) that keep checkpoints of the log: directories, `s3://`, `postgres://` and `https://` URLs.'),
  OSL_AUDIT_WITNESS_SECRET: optional(secret('a secret'), 'Signs what a webhook witness receives (HMAC-SHA-256, header `osl-signature`).'),
  OSL_AUDIT_WITNESS_SECONDS: setting(seconds(1, 86_400), '60', 'Interval at which witnesses receive the newest checkpoint.'),
  OSL_AUDIT_SEGMENT_MIB: setting(mib(1, 1_024), '32', 'Size of a segment file. Its space is reserved in advance, and that of the next one once it is half full.'),
  OSL_AUDIT_PROBE_SECONDS: setting(seconds(1, 3_600), '60', 'Interval at which one record states the number of health checks.'),
};

// biome-ignore format: one setting a line
const observing = {
  OSL_LOG_LEVEL: setting(oneOf('error', 'warn', 'info'), 'warn', 'Minimum severity of the messages written to standard error.'),
  OSL_LOG_LEVEL_FILE: optional(file, 'File that holds the level instead; SIGHUP reads it again.'),
  OSL_LOG_FORMAT: setting(oneOf('auto', 'json', 'text'), 'auto', '`json`: one object for each line; `text`: for people; `auto`: `text` on a terminal, `json` otherwise.'),
  OSL_SLOW_QUESTION_MS: setting(milliseconds(0, 86_400_000), '0', 'Log queries that take longer, [without their literals](operations.md#server-log). 0: none.'),
  OSL_DEBUG: setting(flag('1'), '', '`1`: show where an error was raised, in commands and in the log.'),
  OSL_METRICS_FROM: setting(networks, '', 'Networks, besides this machine, that may read [`/metrics`](operations.md#metrics).'),
  OSL_ALARM_URL: optional(webUrl, 'URL that receives a JSON POST each time [break-glass access](policy.md#roles) is used. Unset: it is only logged.'),
  OSL_OWNER_WEBHOOK: optional(webUrl, 'URL that receives [requests for access](access.md#requesting-access). Needs OSL_OWNER_WEBHOOK_SECRET. Unset: they are only in the audit log.'),
  OSL_OWNER_WEBHOOK_SECRET: optional(secret('a secret'), 'Signs these requests as [Standard Webhooks](lineage.md): `whsec_` and the base64 of 24 to 64 bytes.'),
  OSL_OWNER_WEBHOOK_SECRET_FILE: optional(file, 'File that holds OSL_OWNER_WEBHOOK_SECRET.'),
  OSL_OWNER_WEBHOOK_NETWORKS: setting(names('networks'), '', 'Networks in which the receiver may be although they are private or without TLS.'),
  OSL_LINEAGE: optional(file, 'File of the [receivers of lineage events](lineage.md).'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(webUrl, 'Collector of OpenTelemetry, such as `http://127.0.0.1:4318`, for [traces and metrics](operations.md#traces).'),
  OTEL_EXPORTER_OTLP_HEADERS: setting(secret('`name=value`, separated by commas, values as in a URL'), '', 'Headers sent to the collector.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: setting(oneOf('http/json'), 'http/json', 'Protocol of the collector.'),
  OTEL_SERVICE_NAME: setting(text('a name'), 'osl-gateway', 'Name of this gateway in traces and metrics.'),
  OTEL_TRACES_SAMPLER_ARG: setting(decimal(0, 1), '1', 'Fraction of the requests without an incoming trace for which one is started.'),
  OTEL_METRIC_EXPORT_INTERVAL: setting(milliseconds(100, 86_400_000), '60000', 'Interval at which metrics are sent.'),
  OTEL_BSP_SCHEDULE_DELAY: setting(milliseconds(10, 3_600_000), '5000', 'Interval at which spans are sent.'),
  OTEL_SDK_DISABLED: setting(flag('true'), '', '`true`: send neither traces nor metrics.'),
};

// biome-ignore format: one setting a line
const administration = {
  OSL_ADMIN_PORT: optional(port, 'Port of the [admin listener](operations.md#the-admin-listener) over HTTP, such as 8643. 0: any free port. Unset: no listener.'),
  OSL_ADMIN_PG_PORT: optional(port, 'Port of the admin listener over the Postgres protocol (database `osl_admin`), such as 15433. Unset: none.'),
  OSL_ADMIN_HOST: setting(text('an address'), '127.0.0.1', 'Address of the admin listener. Other machines need OSL_TLS_CERT; HTTP then becomes HTTPS.'),
};

// biome-ignore format: one setting a line
const sharing = {
  OSL_CONTROL_URL: optional(postgresUrl, 'Database that gateways share (schema `osl_control`): policies, published versions.'),
  OSL_CONTROL_URL_FILE: optional(file, 'File that holds OSL_CONTROL_URL.'),
  OSL_CONTROL_SILENCE_SECONDS: setting(seconds(2, 86_400), '10', 'Time for which a gateway keeps serving while this database does not answer; then OSL_POLICY_FAILURE applies.'),
  OSL_POLICY_SOURCE: setting(oneOf('file', 'control'), 'file', 'Location of the policy: the file of OSL_POLICY, or the control database, where `osl policy` stores it.'),
  OSL_KEYS_DIR: optional(directory, 'Keys shared by all gateways, as made by `osl keys make`. Unset: each gateway makes its own in its data directory.'),
};

// biome-ignore format: one setting a line
const models = {
  OSL_EMBEDDINGS_URL: optional(webUrl, 'OpenAI-compatible server of the embedding models named by facets.'),
  OSL_EMBEDDINGS_KEY: optional(secret('a secret'), 'API key for this server.'),
  OSL_CHAT_URL: optional(webUrl, 'OpenAI-compatible server for decoder operators. Needs OSL_CHAT_MODEL. Unset: these operators are E0521.'),
  OSL_CHAT_MODEL: optional(text('a name'), 'Model of this server.'),
  OSL_CHAT_KEY: optional(secret('a secret'), 'API key for this server.'),
  OSL_CHAT_CONCURRENCY: setting(integer(1, 256), '4', 'Maximum number of concurrent requests to this server. Workers share them; each has at least one.'),
  OSL_CHAT_TIMEOUT_MS: setting(milliseconds(1, 3_600_000), '30000', 'Longest time for one request to this server.'),
  OSL_CHAT_MAX_TOKENS: setting(integer(1, 1_000_000), '1024', 'Maximum number of tokens in one of its answers.'),
  OSL_CHAT_PASSAGES_PER_DAY: setting(integer(0, 1_000_000_000), '0', 'Maximum number of passages that one subject may send to it per day (UTC). 0: no limit. [More](content.md#operators).'),
  OSL_CHAT_CACHE_MIB: setting(mib(0, 65_536), '16', 'Memory for its answers. 0: none.'),
  OSL_RETRIEVE_EXACT_UP_TO: setting(integer(0, 1_000_000_000), '30000', 'Maximum number of permitted passages that are compared one by one. Above it, candidates are selected first.'),
};

// biome-ignore format: one setting a line
const clients = {
  OSL_CORS_ORIGINS: setting(origins, '', 'Origins of [pages](rest.md#cors-calls-from-a-web-page) that may call REST from a browser.'),
  OSL_PUBLIC_URL: optional(webOrigin, 'URL by which clients reach this server.'),
  OSL_MCP_HOSTS: setting(names('host names'), '', 'Host names, besides that of OSL_PUBLIC_URL, under which `/mcp` may be called.'),
  OSL_MCP_ORIGINS: setting(names('origins'), '', 'Origins of pages that may call `/mcp`.'),
  OSL_AUTHORIZATION_SERVERS: setting(names('URLs'), '', 'Authorization servers to which MCP clients without a token are referred.'),
};

// biome-ignore format: one setting a line
const commands = {
  OSL_SERVER: optional(webUrl, 'Address of the server, if not that of the data directory.', '--server <url>'),
  OSL_SERVER_CA: optional(pem, 'Authorities that may sign the certificate of that server. Unset: those known to Node.'),
  OSL_ADMIN_URL: optional(webUrl, 'Address of the admin listener, if not that of the data directory, for `osl ps`, `kill` and `top`.', '--admin <url>'),
  OSL_TOKEN: optional(secret('a token'), 'Token to send with requests.', '--token <token>'),
  OSL_SUBJECT: optional(text('a subject of the policy'), "Create a token for this subject, with the data directory's key.", '--subject <name>'),
};

/** Settings by section of docs/configuration.md; `text` is Markdown. */
export const SECTIONS = Object.freeze([
  { title: 'Start', text: 'Relative paths start at the working directory.', settings: serving },
  {
    title: 'Databases',
    text: 'A connector of the manifest names a variable in `url_env`, such as `OSL_POSTGRES_URL`. With `url_env: NAME`, `NAME` holds the URL of the role that runs queries, `NAME_SYSTEM` that of the [system role](operations.md#system-credentials). `NAME_FILE` and `NAME_SYSTEM_FILE` name files that hold them; `NAME_COMMAND` and `NAME_SYSTEM_COMMAND` are commands that print them. A URL may [name several hosts](operations.md#several-hosts-failover-pools).',
    settings: databases,
  },
  { title: 'TLS', text: '', settings: tls },
  {
    title: 'Tokens',
    text: 'Accepted tokens: [operations.md](operations.md#which-tokens-are-accepted).',
    settings: tokens,
  },
  { title: 'Policy changes', text: '', settings: policy },
  { title: 'Limits', text: '', settings: limits },
  { title: 'Caches', text: '', settings: caches },
  { title: 'Audit log', text: 'Content and verification: [audit.md](audit.md).', settings: audit },
  { title: 'Logs, metrics, traces and webhooks', text: '', settings: observing },
  { title: 'Admin listener', text: '', settings: administration },
  {
    title: 'Several gateways',
    text: 'Shared state and setup: [operations.md](operations.md#several-gateways).',
    settings: sharing,
  },
  {
    title: 'Text and models',
    text: 'For [facets](content.md) and [retrieval](retrieval.md). Keys are read when they are sent, and are stored nowhere.',
    settings: models,
  },
  {
    title: 'Browsers and MCP',
    text: 'Unless set, [`/mcp`](mcp.md) serves this machine only.',
    settings: clients,
  },
  {
    title: 'Commands',
    text: 'For `osl query` and the other commands that call a server. Flags override them.',
    settings: commands,
  },
]);

export const SETTINGS = Object.freeze({
  ...serving,
  ...databases,
  ...tls,
  ...tokens,
  ...policy,
  ...limits,
  ...caches,
  ...audit,
  ...observing,
  ...administration,
  ...sharing,
  ...models,
  ...clients,
  ...commands,
});

export type SettingName = keyof typeof SETTINGS;
export type SettingValue<N extends SettingName> =
  (typeof SETTINGS)[N] extends SettingDefinition<infer T> ? T : never;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads settings by name. @throws StartProblem for a value that the setting's type does not accept */
export type ReadSetting = <N extends SettingName>(name: N) => SettingValue<N>;

/** @param folder base for relative paths */
export function settingsReader(env: Environment, folder: string): ReadSetting {
  // Cast: TypeScript loses the type through the index.
  return <N extends SettingName>(name: N) =>
    readValue<unknown>(SETTINGS[name], name, env, folder) as SettingValue<N>;
}

/** Reads a setting of this process. @throws StartProblem */
export const readSetting: ReadSetting = (name) => settingsReader(process.env, process.cwd())(name);

/** True if the variable is set and not empty. */
export function isSet(name: SettingName, env: Environment = process.env): boolean {
  return (env[name] ?? '') !== '';
}

/** Reads variable `name` as the type of setting `sample`; null if not set. @throws StartProblem */
export function readVariable<N extends SettingName>(name: string, sample: N): SettingValue<N> | null {
  const setting: SettingDefinition<unknown> = { ...SETTINGS[sample], default: null };
  return readValue(setting, name, process.env, process.cwd()) as SettingValue<N> | null;
}

function readValue<T>(
  { type, default: initial }: SettingDefinition<T>,
  name: string,
  env: Environment,
  folder: string,
): T | null {
  const envValue = env[name] ?? '';
  const source = envValue === '' ? initial : envValue;
  if (source === null) return null;
  return type.parse(source, folder, (part) => {
    const suffix = type.isSecret ? '' : `, not \`${part}\``;
    throw new StartProblem(`${name} must ${type.isList ? 'name' : 'be'} ${type.takes}${suffix}`);
  });
}
