import { randomUUID } from 'node:crypto';
import { type Identity, isExpired } from '../../../policy/index.js';
import {
  createWireServer,
  error,
  type Handler,
  type SeriesEnd,
  type SessionHandler,
  type WireError,
  type WireServer,
  type WireStatement,
  type WireTls,
} from '../../../wire/index.js';
import type { RequestCall } from '../../ask/index.js';
import {
  adminLogin,
  command,
  drain,
  type OperatingParts,
  reload,
  serverStatus,
  shutDown,
} from '../../ask/operating/operate.js';
import type { ProcessView, SessionView } from '../../ask/operating/process-status.js';
import { login } from '../../ask/request/session.js';
import {
  bearerCall,
  type CommandResult,
  commandStatement,
  loginError,
  noDatabase,
  recordRefusedConnection,
  refusedLogin,
  SessionRecords,
  textColumn,
  tokenExpired,
  tokenRevoked,
} from '../pg/index.js';

const ADMIN_DATABASE = 'osl_admin';

const MAX_MESSAGE_BYTES = 65_536;
const MAX_UNAUTHENTICATED = 100;

/** Postgres endpoint for operators, with SHOW and a few other commands modelled on PgBouncer's. */
export function createAdminWire(
  parts: OperatingParts,
  configuration: ProcessConfiguration,
  tls: WireTls | null,
): WireServer {
  return createWireServer(
    {
      ...(tls !== null && { tls }),
      maxMessageBytes: MAX_MESSAGE_BYTES,
      maxUnauthenticated: MAX_UNAUTHENTICATED,
      onInternalError: (cause) =>
        parts.log.error('internal error on the admin wire', {
          error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
        }),
    },
    handlerOf(parts, configuration),
  );
}

function handlerOf(parts: OperatingParts, configuration: ProcessConfiguration): Handler {
  return {
    async authenticate({ user, database, password, remoteAddress }) {
      const call = bearerCall(remoteAddress, password);
      try {
        const identity = await login(parts, call, user);
        if (database !== ADMIN_DATABASE)
          throw await refusedLogin(parts, call, identity, noDatabase(database, ADMIN_DATABASE));
        await adminLogin(parts, { ...callOf(identity), requestId: call.requestId });
        return new AdminSession(parts, identity, configuration);
      } catch (cause) {
        throw loginError(cause, call.requestId);
      }
    },
    recordRefusal: (event) => recordRefusedConnection(parts, event),
  };
}

const IDLE: SeriesEnd = { status: 'I', changes: [], idleLimit: null };

class AdminSession implements SessionHandler {
  readonly parameters: ReadonlyMap<string, string> = new Map([
    ['server_version', '15.0'],
    ['server_encoding', 'UTF8'],
    ['client_encoding', 'UTF8'],
    ['DateStyle', 'ISO, MDY'],
    ['integer_datetimes', 'on'],
    ['standard_conforming_strings', 'on'],
    ['TimeZone', 'UTC'],
  ]);
  readonly #parts: OperatingParts;
  readonly #identity: Identity;
  readonly #configuration: ProcessConfiguration;
  readonly #records: SessionRecords;

  constructor(parts: OperatingParts, identity: Identity, configuration: ProcessConfiguration) {
    this.#parts = parts;
    this.#records = new SessionRecords(parts, () => callOf(identity));
    this.#identity = identity;
    this.#configuration = configuration;
  }

  endSeries(): SeriesEnd {
    return IDLE;
  }

  split(text: string) {
    const statements = [];
    let start = 0;
    for (const part of text.split(';')) {
      if (part.trim() !== '') statements.push({ text: part, start });
      start += part.length + 1;
    }
    return statements;
  }

  async prepare(text: string): Promise<WireStatement | null> {
    const [verb = '', object = '', ...rest] = text.trim().replace(/;\s*$/, '').split(/\s+/);
    if (verb === '') return null;
    const statement = rest.length === 0 ? this.#statement(verb.toLowerCase(), object) : null;
    if (statement !== null) return statement;
    throw error('42601', 'this is not a command of osl_admin', { hint: 'SHOW HELP lists them' });
  }

  /** Returns null for an unknown command. @throws WireError for an unsupported one */
  #statement(verb: string, object: string): WireStatement | null {
    const parts = this.#parts;
    if (verb === 'show') return this.#show(object.toLowerCase());
    if (verb === 'cancel' || verb === 'kill') {
      if (object === '') return null;
      const action = verb === 'cancel' ? 'cancel' : 'end';
      return this.#command(verb, (call) => command(parts, call, object, action));
    }
    if (object !== '') return null;
    switch (verb) {
      case 'drain':
        return this.#command(verb, (call) => drain(parts, call, true));
      case 'resume':
        return this.#command(verb, (call) => drain(parts, call, false));
      case 'shutdown':
        return this.#command(verb, (call) => shutDown(parts, call));
      case 'reload':
        return this.#reload();
      case 'pause':
      case 'suspend':
        throw error(
          '0A000',
          `${verb.toUpperCase()} is not supported: a question is answered, or refused in time`,
          {
            hint: 'DRAIN takes no new sessions until RESUME; a database that restarts is waited for by itself',
          },
        );
      default:
        return null;
    }
  }

  #show(name: string): WireStatement | null {
    if (name === 'help' || name === '') return this.#help();
    const tableName = TABLE_NAMES.find((candidate): candidate is AdminTableName => candidate === name);
    if (tableName === undefined) return null;
    const { columns } = buildTable(tableName, [], this.#configuration);
    return commandStatement(columns.map(textColumn), () =>
      this.#runRecorded(async (call) => {
        const { rows } = buildTable(tableName, await serverStatus(this.#parts, call), this.#configuration);
        return { tag: 'SHOW', rows };
      }),
    );
  }

  #help(): WireStatement {
    return commandStatement([textColumn('command')], () =>
      this.#runRecorded(async (call) => {
        await adminLogin(this.#parts, call);
        return { tag: 'SHOW', rows: HELP.map((line) => [line]) };
      }),
    );
  }

  #reload(): WireStatement {
    return commandStatement(null, () =>
      this.#runRecorded(async (call) => {
        const result = await reload(this.#parts, call);
        if (!result.reloaded) throw error('F0000', `not reloaded: ${result.why}`);
        const notices = [...result.now, ...result.kept.map((text) => `not reloaded: ${text}`)].map(
          (message) => ({
            severity: 'NOTICE' as const,
            sqlstate: '00000',
            message,
          }),
        );
        return { tag: 'RELOAD', notices };
      }),
    );
  }

  #command(tag: string, run: (call: RequestCall) => Promise<unknown>): WireStatement {
    return commandStatement(null, () =>
      this.#runRecorded(async (call) => {
        await run(call);
        return { tag: tag.toUpperCase() };
      }),
    );
  }

  async #runRecorded(run: (call: RequestCall) => Promise<CommandResult>): Promise<CommandResult> {
    const call = callOf(this.#identity);
    return this.#records.translate(call.requestId, '', () => run(call));
  }

  noteFailure(failure: WireError): void {
    this.#records.recordFailure(failure);
  }

  cancel(): void {
    // Nothing to cancel: every command finishes immediately.
  }

  expiry(): WireError | null {
    if (this.#parts.revoked.has(this.#identity)) return tokenRevoked();
    return isExpired(this.#identity, Date.now()) ? tokenExpired() : null;
  }

  close(): void {
    // Nothing to release.
  }
}

function callOf(identity: Identity): RequestCall {
  return { requestId: randomUUID(), surface: 'wire', credentials: { kind: 'session', identity } };
}

interface TextTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Tables available through SHOW; those that PgBouncer also has use its names. */
const TABLE_NAMES = [
  'clients',
  'servers',
  'pools',
  'stats',
  'databases',
  'users',
  'caches',
  'audit',
  'state',
  'config',
  'version',
] as const;
type AdminTableName = (typeof TABLE_NAMES)[number];

const HELP: readonly string[] = [
  ...TABLE_NAMES.map((name) => `SHOW ${name.toUpperCase()}`),
  'CANCEL <id>    cancel the statement of a session or request',
  'KILL <id>      a session, or a request',
  'DRAIN          accept no new sessions, and report not ready',
  'RESUME         accept new sessions again',
  'RELOAD         as SIGHUP',
  'SHUTDOWN       as SIGTERM',
];

/** Version of a process and the configuration it was started with. */
export interface ProcessConfiguration {
  readonly version: string;
  /** Configuration without secrets. */
  readonly settings: readonly (readonly [name: string, value: string])[];
}

function buildTable(
  name: AdminTableName,
  views: readonly ProcessView[],
  configuration: ProcessConfiguration,
): TextTable {
  switch (name) {
    case 'clients':
      return table(CLIENT_COLUMNS, views.flatMap(({ sessions }) => sessions).map(clientRow));
    case 'servers':
      return table(
        'process database purpose state open running',
        views.flatMap(({ pools }) =>
          pools.map((p) => [p.process, p.connector, p.purpose, p.reach, p.open, p.running]),
        ),
      );
    case 'pools':
      return table(
        'process database purpose cl_active cl_waiting sv_active sv_idle sv_max reach',
        views.flatMap(({ pools }) =>
          pools.map((p) => {
            const idle = Math.max(0, p.open - p.running);
            return [
              p.process,
              p.connector,
              p.purpose,
              p.running,
              p.waiting,
              p.running,
              idle,
              p.size,
              p.reach,
            ];
          }),
        ),
      );
    case 'stats':
      return table(
        'process sessions plan_hits plan_misses fast_questions audit_records',
        views.map(({ process, sessions, caches, audit }) => {
          const plans = caches.find(({ cache }) => cache === 'plans');
          const routes = caches.find(({ cache }) => cache === 'routes');
          return [process, sessions.length, plans?.hits, plans?.misses, routes?.hits, audit.records];
        }),
      );
    case 'databases':
      return table(
        'name process max_sessions open reach',
        views.flatMap(({ pools }) =>
          pools
            .filter(({ purpose }) => purpose === 'questions')
            .map((p) => [poolName(p), p.process, p.size, p.open, p.reach]),
        ),
      );
    case 'users':
      return table('name sessions', sessionsByUser(views));
    case 'caches':
      return table(
        'process cache entries bytes hits misses',
        views.flatMap(({ caches }) =>
          caches.map((c) => [c.process, c.cache, c.entries, c.bytes, c.hits, c.misses]),
        ),
      );
    case 'audit':
      return table(
        'process records waiting unanchored failing',
        views.map(({ process, audit: a }) => [process, a.records, a.waiting, a.unanchored, a.failing]),
      );
    case 'state':
      return table(
        'process pid since draining manifest policy policy_kept_until policy_fault out_of_service',
        views.map((v) => [
          v.process,
          v.pid,
          v.since,
          v.draining,
          v.manifest,
          v.policy,
          v.policy_kept_until,
          v.policy_fault,
          v.out_of_service.join(', '),
        ]),
      );
    case 'config':
      return table('key value', configuration.settings);
    case 'version':
      return table('version', [[`OSL Gateway ${configuration.version}`]]);
    default: {
      const unknown: never = name;
      return unknown;
    }
  }
}

const CLIENT_COLUMNS =
  'type user subject state connect_time state_since id process application_name fingerprint shape';

function clientRow(s: SessionView): readonly CellValue[] {
  return [
    s.surface,
    s.user,
    s.chain.join(' > '),
    s.state,
    s.since,
    s.state_since,
    s.id,
    s.process,
    s.application,
    s.fingerprint,
    s.shape ?? s.objects.join(', '),
  ];
}

/** The connector's name, followed by the standby's name if the pool belongs to a standby. */
function poolName({ connector, standby }: ProcessView['pools'][number]): string {
  return standby === null ? connector : `${connector}/${standby}`;
}

function sessionsByUser(views: readonly ProcessView[]): readonly (readonly CellValue[])[] {
  const counts = new Map<string, number>();
  for (const { sessions } of views)
    for (const { subject } of sessions) counts.set(subject ?? '', (counts.get(subject ?? '') ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
}

type CellValue = string | number | boolean | null | undefined;

/** Builds a table; `columns` lists the column names, separated by spaces. */
function table(columns: string, rows: readonly (readonly CellValue[])[]): TextTable {
  return { columns: columns.split(' '), rows: rows.map((row) => row.map((cell) => String(cell ?? ''))) };
}
