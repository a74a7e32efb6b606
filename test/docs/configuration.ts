/** A variable of the environment. What it takes and its default are checked against the code wherever that has them. */
export interface Variable {
  readonly what: string;
  /** Left out where the code itself says so when it is given nonsense. */
  readonly takes?: string;
  /** The value that means the same as none; left out where none has no value that means the same. */
  readonly default?: string;
}

export interface Section {
  readonly title: string;
  readonly text: string;
  readonly variables: Readonly<Record<string, Variable>>;
}

/** Every variable that the program reads, by what it is about. */
export const SECTIONS: readonly Section[] = [
  {
    title: 'What is served, and where',
    text: 'Flags of `osl serve` and `osl demo` stand above these. Relative paths begin at the working directory.',
    variables: {
      OSL_MANIFEST: { what: '[What there is](manifest.md).', takes: 'a file', default: 'manifest.yaml' },
      OSL_POLICY: { what: '[Who may see it](policy.md).', takes: 'a file', default: 'policy.yaml' },
      OSL_POLICY_FAILURE: {
        what: 'What serves while the control database has not answered for OSL_CONTROL_SILENCE_SECONDS: nothing (503 E2001), or the last valid policy for OSL_POLICY_KEEP_SECONDS. `refuse` that is written out is OSL_POLICY_KEEP_SECONDS=0 as well. [More](operations.md#the-policy-is-missing-or-invalid).',
      },
      OSL_POLICY_WATCH: {
        what: 'Takes up the policy file when it changes, without a signal.',
        default: 'off',
      },
      OSL_POLICY_KEEP_SECONDS: {
        what: 'How long the last valid policy stays in force while the newest is missing or invalid; then every request is refused (503 E2001). 0: refused at once.',
        default: '3600',
      },
      OSL_DATA_DIR: {
        what: 'Keys, audit log, published versions, and the database of an embedded connector. One server at a time.',
        takes: 'a directory',
        default: '.osl',
      },
      OSL_HOST: {
        what: 'Where to listen. Other than loopback it needs a certificate, or REST a proxy that has one.',
        takes: 'an address',
        default: '127.0.0.1',
      },
      OSL_HTTP_PORT: { what: 'REST and MCP; 0 takes a free one.', default: '8642' },
      OSL_PG_PORT: { what: 'The Postgres wire; 0 takes a free one.', default: '15432' },
      OSL_DRIFT_SECONDS: {
        what: 'How often it is looked whether databases [still have what the manifest declares](operations.md#database-down-or-schema-changed); 0: at a start and a reload alone.',
        default: '30',
      },
      OSL_SLOW_QUESTION_MS: {
        what: 'Questions that take so long have [a line in the log](operations.md#server-log), by their shape; 0: none has.',
        default: '0',
      },
      OSL_ADMIN_PORT: {
        what: 'The [admin listener](operations.md#the-admin-listener), over HTTP; 0 takes a free one. Unset: there is none.',
        takes: 'a port, such as 8643',
      },
      OSL_ADMIN_PG_PORT: {
        what: 'The same as a wire database, `osl_admin`. Unset: there is none.',
        takes: 'a port, such as 15433',
      },
      OSL_ADMIN_HOST: {
        what: 'Where it listens. Other than loopback it takes a certificate, and HTTP becomes HTTPS.',
        takes: 'an address',
        default: '127.0.0.1',
      },
      OSL_CONSOLE: {
        what: 'Whether the [console](console.md) is at `/console`; `admin`: with what admins do. `osl demo`: admin.',
        default: 'off',
      },
      OSL_WORKERS: {
        what: 'Processes that share both ports; auto: one for each processor. [More](operations.md#several-workers).',
        default: '1',
      },
      OSL_TLS_CERT: {
        what: 'The certificate that the wire, REST and MCP show, with its chain. [More](operations.md#tls).',
        takes: 'a PEM file, with OSL_TLS_KEY',
      },
      OSL_TLS_KEY: { what: 'Its key.', takes: 'a PEM file, with OSL_TLS_CERT' },
      OSL_HTTP_TLS: {
        what: 'Off: REST and MCP stay plain HTTP, for a proxy that has TLS, whatever the wire has.',
        default: 'on',
      },
      OSL_HTTP_TLS_CERT: {
        what: 'Another certificate for REST and MCP.',
        takes: 'a PEM file, with OSL_HTTP_TLS_KEY',
      },
      OSL_HTTP_TLS_KEY: { what: 'Its key.', takes: 'a PEM file, with OSL_HTTP_TLS_CERT' },
      OSL_TLS_CLIENT_CA: {
        what: 'Authorities that vouch for [client certificates](operations.md#client-certificates); with them clients are asked for one.',
        takes: 'a PEM file',
        default: '',
      },
      OSL_TLS_CLIENT_CRL: {
        what: 'Certificates that they have revoked: a list of each.',
        takes: 'a PEM file, with OSL_TLS_CLIENT_CA',
        default: '',
      },
      OSL_TLS_CLIENTS: {
        what: 'Whether a client without a certificate is refused.',
        default: 'ask',
      },
      OSL_TLS_WATCH_SECONDS: {
        what: 'How often the files of certificates are looked at; 0: at SIGHUP alone.',
        default: '10',
      },
      OSL_CORS_ORIGINS: {
        what: 'Whose [pages](rest.md#cors-calls-from-a-web-page) may call REST from a browser.',
        takes: 'origins, with commas',
        default: '',
      },
      OSL_ALARM_URL: {
        what: 'Where a [broken glass](policy.md#roles) is told of, by POST of JSON with the reason. Without it the log has the alarm alone.',
        takes: 'a URL of http or https',
      },
      OSL_METRICS_FROM: {
        what: 'Who may read [`/metrics`](operations.md#metrics), beside this machine.',
        takes: 'addresses and networks, with commas',
        default: '',
      },
    },
  },
  {
    title: 'Databases',
    text: 'A connector of the manifest names a variable in `url_env`; that one has the URL of the governed role, `NAME_SYSTEM` the URL of the [system credentials](operations.md#system-credentials). `NAME_FILE` and `NAME_SYSTEM_FILE` name files that hold them, as secrets are mounted; `NAME_COMMAND` and `NAME_SYSTEM_COMMAND` are commands that print them. The URL may [name several hosts](operations.md#several-hosts-failover-pools).',
    variables: {
      OSL_POSTGRES_URL: {
        what: 'The same for connectors that name no variable.',
        takes: 'a `postgres://` URL',
      },
      OSL_POOL_SIZE: {
        what: 'Sessions for questions with each native Postgres; `NAME_POOL_SIZE` says it of one connector. [More](operations.md#several-hosts-failover-pools).',
        default: '10',
      },
      OSL_SYSTEM_POOL_SIZE: {
        what: "Sessions of the gateway's own role with each, and of each worker.",
        default: '2',
      },
      OSL_POOL_RESERVE_PERCENT: {
        what: 'Part of them that one subject leaves free for others.',
        default: '25',
      },
      OSL_STATEMENT_TIMEOUT_MS: {
        what: 'Milliseconds for one question, until its last row has left.',
        default: '30000',
      },
    },
  },
  {
    title: 'Several gateways',
    text: 'What they share, and how: [operations.md](operations.md#several-gateways).',
    variables: {
      OSL_CONTROL_URL: {
        what: 'The database whose schema `osl_control` this gateway shares with others: policies, published versions.',
        takes: 'a `postgres://` URL',
      },
      OSL_CONTROL_URL_FILE: { what: 'The same, in a file.', takes: 'a file' },
      OSL_KEYS_DIR: {
        what: 'The keys that all gateways have, as `osl keys make` made them; unset, each makes its own in its data directory.',
        takes: 'a directory',
      },
      OSL_POLICY_SOURCE: {
        what: 'Where the policy stands: the file of OSL_POLICY, or the control database, where `osl policy` puts it.',
        default: 'file',
      },
      OSL_CONTROL_SILENCE_SECONDS: {
        what: 'How long a gateway serves without an answer of the control database; then as OSL_POLICY_FAILURE says.',
        default: '10',
      },
    },
  },
  {
    title: 'Whose tokens',
    text: '[More of this](operations.md#which-tokens-are-accepted).',
    variables: {
      OSL_PUBLIC_KEYS: {
        what: "Public keys of issuers of actor tokens: RSA (RS256), P-256 (ES256) or Ed25519 (EdDSA). With it tokens of the gateway's own key, HS256, are refused, unless `OSL_LOCAL_TOKENS=on`.",
        takes: '`FILE` or `KID=FILE`, PEM or JWKS, with commas',
        default: '',
      },
      OSL_ISSUERS: {
        what: 'A [file](identity.md) with further issuers: their keys by URL, audiences, clocks, and whether they sign actor or identity tokens. Read again on reload.',
        takes: 'a file',
        default: '',
      },
      OSL_EXCHANGE_KEY: {
        what: 'The private key (Ed25519, PEM) that [exchanged](identity.md#exchange) tokens are signed with, where several gateways are to take each other’s. Unset, one that is in memory alone.',
        takes: 'a file',
        default: '',
      },
      OSL_LOCAL_TOKENS: {
        what: "Whether tokens of this gateway's own key (`osl token`) are good. On, unless there are issuers.",
        default: 'on',
      },
      OSL_TOKEN_ISSUERS: {
        what: 'The `iss` of which each token must name one.',
        takes: 'names, with commas',
        default: 'service',
      },
      OSL_TOKEN_AUDIENCES: {
        what: 'The `aud` of which each token must name one. Unset, an audience is not looked at.',
        takes: 'names, with commas',
        default: '',
      },
    },
  },
  {
    title: 'Caps',
    text: '',
    variables: {
      OSL_MAX_ROWS: { what: 'Rows of one answer.', default: '1000000' },
      OSL_MAX_RESULT_MIB: { what: 'MiB of one answer, as the database sends it.', default: '1024' },
      OSL_MAX_ROW_MIB: {
        what: 'MiB of one row of an answer, as the database sends it; a larger one ends its statement: E0530, 54000.',
        default: '16',
      },
      OSL_ANSWER_MEMORY_MIB: {
        what: 'MiB of memory for the [large rows](operations.md#large-values) of all answers under way; half of it for one subject, and room for eight rows in any case. Unset: a quarter of what the process may use, 1024 at most.',
      },
      OSL_MAX_EVIDENCE: { what: 'Passages of `evidence` in one answer.', default: '10000' },
      OSL_SUBJECT_SESSIONS: { what: 'Sessions of the wire that one subject may have open.', default: '1000' },
      OSL_ADDRESS_SESSIONS: {
        what: 'Sessions of the wire that one address (of IPv6 its /64) may have open.',
        default: '5000',
      },
      OSL_LIMITS_URL: {
        what: 'Where gateways [count limits together](operations.md#limits): another Postgres than that of OSL_CONTROL_URL, or Redis, which needs the package `@redis/client`. Unset: OSL_CONTROL_URL, and without that each gateway counts alone.',
        takes: 'a `postgres://`, `redis://` or `rediss://` URL',
      },
      OSL_LIMITS_URL_FILE: {
        what: 'The file that has it, as secrets are mounted. Redis is read at the start, Postgres with each connection.',
        takes: 'a file',
      },
      OSL_SPOOL_MIB: {
        what: 'MiB on disk of rows that [slow readers](operations.md#slow-clients) have not taken yet; half of it for one subject, 0 for none.',
        default: '1024',
      },
      OSL_CATALOG_ENGINES: {
        what: 'Engines of the [catalog](operations.md#memory) at a time: one for each set of rights that asks for it, and [more](scale.md#the-catalog) for thousands of entities.',
        default: '8',
      },
      OSL_CATALOG_TIMEOUT_MS: {
        what: 'Milliseconds that a statement about the catalog may run; then it is canceled (57014).',
        default: '5000',
      },
      OSL_PLAN_CACHE_MIB: {
        what: 'MiB of memory for compiled plans that are remembered; 0 for none.',
        default: '64',
      },
      OSL_RESULT_CACHE_MIB: {
        what: 'Memory for answers that may be [given again](caching.md), of all workers together; 0 keeps none.',
        default: '64',
      },
      OSL_RESULT_CACHE_ENTRIES: { what: 'How many of them, at most.', default: '10000' },
      OSL_RESULT_CACHE_ANSWER_KIB: { what: 'The largest answer that is kept.', default: '1024' },
    },
  },
  {
    title: 'The audit log and the operator’s',
    text: '[More of this](operations.md#audit-log-disk-full-failing-or-stalled).',
    variables: {
      OSL_AUDIT_FAILURE: {
        what: 'When the disk of the log fails: whether it goes on once it can, or the process ends with 7.',
        default: 'reopen',
      },
      OSL_AUDIT_SINK: {
        what: 'Where the records go: segment files in the data directory, or [tables of a Postgres](audit.md#store-the-log-in-postgres).',
        default: 'files',
      },
      OSL_AUDIT_URL: {
        what: 'The database whose schema `osl_audit` has those tables; default: that of OSL_CONTROL_URL.',
        takes: 'a `postgres://` URL',
        default: '',
      },
      OSL_AUDIT_URL_FILE: { what: 'The same, in a file.', takes: 'a file', default: '' },
      OSL_AUDIT_RETENTION_DAYS: {
        what: 'Segments whose records are all older go, [signed for](audit.md#delete-old-records); 0 keeps all.',
        default: '0',
      },
      OSL_AUDIT_ARCHIVE: {
        what: 'Where segment files go that are kept no more (OSL_AUDIT_RETENTION_DAYS); without it they are deleted. It must exist.',
        takes: 'a directory',
        default: '',
      },
      OSL_AUDIT_WITNESS: {
        what: '[Who keeps checkpoints](audit.md#external-witnesses) beside the log: directories, `s3://`, `postgres://` and `https://` URLs.',
        takes: 'names, with commas',
        default: '',
      },
      OSL_AUDIT_WITNESS_SECRET: {
        what: 'Signs what a webhook is sent (HMAC-SHA-256, header `osl-signature`).',
        takes: 'a secret',
        default: '',
      },
      OSL_AUDIT_WITNESS_SECONDS: { what: 'How often they are handed the newest one.', default: '60' },
      OSL_AUDIT_SEGMENT_MIB: { what: 'MiB of a segment; two are kept free.', default: '32' },
      OSL_AUDIT_PROBE_SECONDS: {
        what: 'Seconds for which requests for `/health` and its kind are counted before one record has their number.',
        default: '60',
      },
      OSL_LOG_FORMAT: {
        what: 'How: `json`, a line each; `text`, for people; `auto`, for people on a terminal.',
        default: 'auto',
      },
      OSL_LOG_LEVEL_FILE: {
        what: 'A file with the level, in the place of OSL_LOG_LEVEL; SIGHUP reads it anew.',
        takes: 'a file',
      },
      OSL_LOG_LEVEL: {
        what: 'What goes to standard error.',
        takes: '`error`, `warn` or `info`',
        default: 'warn',
      },
      OSL_OWNER_WEBHOOK: {
        what: 'Where [requests for access](access.md#requesting-access) are posted to; without it they are in the audit log alone.',
        takes: 'an http or https URL, with OSL_OWNER_WEBHOOK_SECRET',
        default: '',
      },
      OSL_OWNER_WEBHOOK_SECRET: {
        what: 'What they are signed with, as [Standard Webhooks](lineage.md) have it: `whsec_` and the base64 of 24 to 64 bytes.',
        takes: 'a secret',
      },
      OSL_OWNER_WEBHOOK_SECRET_FILE: { what: 'A file that holds it.', takes: 'a file' },
      OSL_OWNER_WEBHOOK_NETWORKS: {
        what: 'Networks that it may be reached in though they are private, or without TLS.',
        takes: 'networks, with commas',
        default: '',
      },
      OSL_LINEAGE: { what: '[Who is told of lineage](lineage.md).', takes: 'a file', default: '' },
    },
  },
  {
    title: 'Text and models',
    text: '[Facets](content.md) and [retrieval](retrieval.md). Keys are read when they are sent, and stand in no file.',
    variables: {
      OSL_EMBEDDINGS_URL: {
        what: 'An OpenAI-compatible server of the embedding models that facets name.',
        takes: 'a URL',
      },
      OSL_EMBEDDINGS_KEY: { what: 'Its key.', takes: 'a secret' },
      OSL_CHAT_URL: {
        what: 'An OpenAI-compatible server for decoder operators; without it they are E0521.',
        takes: 'a URL, with OSL_CHAT_MODEL',
      },
      OSL_CHAT_MODEL: { what: 'Its model.', takes: 'a name' },
      OSL_CHAT_KEY: { what: 'Its key.', takes: 'a secret' },
      OSL_CHAT_CONCURRENCY: {
        what: 'Requests to it at a time, of all questions; several workers share them, each has one at least.',
        default: '4',
      },
      OSL_CHAT_TIMEOUT_MS: { what: 'Milliseconds for one request to it.', default: '30000' },
      OSL_CHAT_MAX_TOKENS: { what: 'Tokens of one answer of it.', default: '1024' },
      OSL_CHAT_PASSAGES_PER_DAY: {
        what: 'Passages that one subject may have sent to it in a day (UTC); 0 for no bound. [More](content.md#operators).',
        default: '0',
      },
      OSL_CHAT_CACHE_MIB: { what: 'MiB of its answers that are remembered; 0 for none.', default: '16' },
      OSL_RETRIEVE_EXACT_UP_TO: {
        what: 'Permitted passages that are compared one by one; above, candidates are found first.',
        default: '30000',
      },
    },
  },
  {
    title: 'MCP',
    text: '[`/mcp`](mcp.md) serves this machine only, unless told.',
    variables: {
      OSL_PUBLIC_URL: { what: 'Under which clients reach this server.', default: '' },
      OSL_MCP_HOSTS: { what: 'Names by which it may be called.', takes: 'names, with commas', default: '' },
      OSL_MCP_ORIGINS: { what: 'Pages that may call it.', takes: 'origins, with commas', default: '' },
      OSL_AUTHORIZATION_SERVERS: {
        what: 'Where a client without a token is sent.',
        takes: 'URLs, with commas',
        default: '',
      },
    },
  },
  {
    title: 'Commands that ask a server',
    text: '`osl query` and its neighbours. Flags stand above these; `osl COMMAND --help` lists them.',
    variables: {
      OSL_ADMIN_URL: { what: 'The admin listener that `osl ps`, `kill` and `top` ask.', takes: 'a URL' },
      OSL_SERVER: { what: 'Another server than that of the data directory.', takes: 'a URL' },
      OSL_SERVER_CA: {
        what: 'Authorities whose certificates the server may have; unset, those that Node knows. The server of the data directory is known by its own certificate.',
        takes: 'a PEM file',
      },
      OSL_TOKEN: { what: 'The token to ask with.', takes: 'a token' },
      OSL_SUBJECT: {
        what: "Whom a token is minted for, with the data directory's key.",
        takes: 'a subject of the policy',
      },
      OSL_DEBUG: { what: 'Shows where an error came from; also in the log of a server.', takes: '`1`' },
    },
  },
];
