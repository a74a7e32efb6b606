import { randomUUID } from 'node:crypto';
import {
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  WireError,
  type WireNotice,
  type WireStatement,
} from '../../../wire/index.js';
import { eachDataRow, MemoryShare } from '../../engine/index.js';
import {
  type BackendReply,
  type CatalogDelivery,
  CatalogFault,
  type CatalogProvider,
  type CatalogRequest,
  type CatalogSettings,
  type CatalogStatement,
  describeCatalog,
  mentionsSessions,
  queryCatalog,
  type ReplyReport,
  refuseLane,
  type StatementLane,
} from '../catalog/index.js';
import { writeRows } from './buffered-rows.js';
import { visibleNotices } from './data-statement.js';
import { changeSettings } from './session-command.js';
import type { SessionRecords, SuspendedRowRights } from './session-requests.js';
import type { SessionParts } from './session-state.js';
import type { SessionSettings } from './settings.js';

/**
 * Prepares a statement for the catalog. Refuses a statement that writes, or that reads both catalog and data. @throws
 * WireError
 */
export async function catalogStatement(
  session: SessionParts,
  catalogs: CatalogProvider,
  lane: Exclude<StatementLane, { readonly kind: 'data' }>,
  text: string,
  parameterTypes: readonly number[],
): Promise<WireStatement> {
  const { service, caller, records, running } = session;
  const createRequest = async (requestId: string = randomUUID()): Promise<CatalogRequest> => ({
    requestId,
    identity: caller.identity,
    origin: caller.origin,
    text,
    parameterTypes,
    user: caller.user,
    session: await settingsFor(session, text),
  });
  const firstRequest = await createRequest();
  return translate(records, firstRequest, async () => {
    if (lane.kind !== 'catalog') return refuseLane(service, firstRequest, lane);
    const prepared = await running.cancellable((signal) =>
      describeCatalog(service, catalogs, firstRequest, signal),
    );
    const { description, payment } = prepared;
    const pendingRecord = records.holdPrepared(firstRequest, () => prepared.record());
    const run = async (
      delivery: Pick<CatalogDelivery, 'values' | 'formats' | 'memory'>,
    ): Promise<ReplyWithNotices> => {
      session.state.block.requireUsable();
      const requestId = records.pending.release(pendingRecord) ? firstRequest.requestId : undefined;
      session.activity.beginStatement(text);
      const request = { ...(await createRequest(requestId)), payment };
      return running.cancellable((signal) =>
        translate(records, request, async () => {
          const reply = await queryCatalog(service, catalogs, request, description, {
            ...delivery,
            signal,
            apply: async ({ changes, signals }) => {
              await changeSettings(session, changes).catch((cause: unknown) => {
                throw asCatalogFault(cause);
              });
              for (const sessionSignal of signals) await session.sameCaller.signal(sessionSignal);
              signal.throwIfAborted(); // the statement may have cancelled its own session
            },
          });
          return { ...reply, notices: visibleNotices(session.settings, reply.notices.map(notice)) };
        }),
      );
    };
    return {
      ...description,
      open: ({ parameterFormats, parameters, resultFormats: formats }) => {
        const values = parameters.map((bytes, i) => ({
          format: parameterFormats[i] ?? (0 as const),
          bytes: bytes === null ? null : Buffer.from(bytes), // copied, since the portal may run later
        }));
        const memory = new MemoryShare(service.memory, caller.identity.subject);
        return new CatalogPortal(session.rights, memory, () => run({ values, formats, memory }));
      },
    };
  });
}

type ReplyWithNotices = Omit<BackendReply, 'notices'> & { readonly notices: readonly WireNotice[] };

class CatalogPortal implements Portal {
  readonly #rights: SuspendedRowRights;
  readonly #memory: MemoryShare;
  readonly #run: () => Promise<ReplyWithNotices>;
  #initialRights = '';
  #reply: ReplyWithNotices | null = null;
  #rows: readonly Uint8Array[] = [];
  #sentRows = 0;

  constructor(rights: SuspendedRowRights, memory: MemoryShare, run: () => Promise<ReplyWithNotices>) {
    this.#rights = rights;
    this.#memory = memory;
    this.#run = run;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#reply === null) {
      this.#initialRights = this.#rights.current;
      const reply = await this.#run();
      this.#reply = reply;
      if (maxRows === 0) {
        for (const run of reply.rows) await rows.write(run);
        this.#memory.release();
        return { suspended: false, tag: reply.tag ?? '', notices: reply.notices };
      }
      this.#rows = reply.rows.flatMap((run) => [...eachDataRow(run)]);
    }
    this.#rights.requireSame(this.#initialRights);
    const end = maxRows === 0 ? this.#rows.length : Math.min(this.#rows.length, this.#sentRows + maxRows);
    const portion = this.#rows.slice(this.#sentRows, end);
    this.#sentRows = end;
    await writeRows(portion, rows);
    const { notices } = this.#reply;
    const firstRequest = end === portion.length;
    return {
      suspended: end < this.#rows.length,
      tag: `SELECT ${portion.length}`,
      ...(firstRequest ? { notices } : {}),
    };
  }

  close(): void {
    this.#rows = [];
    this.#memory.release();
  }
}

function notice({ severity, sqlstate, message, detail, hint }: ReplyReport): WireNotice {
  const wireSeverity = SEVERITIES.find((s) => s === severity) ?? 'NOTICE';
  return { severity: wireSeverity, sqlstate, message, detail: detail ?? undefined, hint: hint ?? undefined };
}

const SEVERITIES: readonly WireNotice['severity'][] = ['NOTICE', 'WARNING', 'INFO', 'LOG', 'DEBUG'];

function translate<T>(
  records: SessionRecords,
  createRequest: CatalogRequest,
  run: () => Promise<T>,
): Promise<T> {
  return records.translate(createRequest.requestId, createRequest.text, async () => {
    try {
      return await run();
    } catch (failure) {
      throw failure instanceof CatalogFault ? asWireError(failure) : failure;
    }
  });
}

/**
 * Converts an error of a session change to an error of the catalog statement that requested the change, so that it is
 * recorded as that statement's failure.
 */
function asCatalogFault(cause: unknown): unknown {
  if (!(cause instanceof WireError)) return cause;
  const { severity, sqlstate, message, detail = null, hint = null, position = null } = cause;
  return new CatalogFault({ severity, sqlstate, message, detail, hint, position });
}

function asWireError({ report }: CatalogFault): WireError {
  const { sqlstate, message, detail, hint, position } = report;
  return error(sqlstate, message, {
    detail: detail ?? undefined,
    hint: hint ?? undefined,
    position: position ?? undefined,
  });
}

const ENGINE_SETTINGS = [
  'TimeZone',
  'DateStyle',
  'IntervalStyle',
  'extra_float_digits',
  'bytea_output',
] as const;

const SETTINGS_CACHE = new WeakMap<object, CatalogSettings>();

function catalogSettings({ settings, processId }: SessionParts): CatalogSettings {
  let cached = SETTINGS_CACHE.get(settings.version);
  if (cached === undefined) {
    cached = describeSettings(settings, processId());
    SETTINGS_CACHE.set(settings.version, cached);
  }
  return cached;
}

/** Maximum length of a statement's text in `pg_cursors` and `pg_prepared_statements`, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 1_024;

/**
 * Returns the session's settings and, if the text can read them, the caller's sessions, cursors and prepared
 * statements.
 */
async function settingsFor(session: SessionParts, text: string): Promise<CatalogSettings> {
  const settings = catalogSettings(session);
  if (!mentionsSessions(text)) return settings;
  const cursors = session.cursors.list().map((c) => ({ ...c, text: c.text.slice(0, MAX_TEXT_LENGTH) }));
  const state = { sessions: await session.sameCaller.all(), cursors, statements: statementsOf(session) };
  return { ...settings, json: `${settings.json.slice(0, -1)},${JSON.stringify(state).slice(1)}` };
}

function statementsOf({ statements }: SessionParts): readonly CatalogStatement[] {
  return statements.statements().map(({ name, text, preparedAt, fromSql, statement }) => ({
    name,
    text: text.slice(0, MAX_TEXT_LENGTH),
    prepared: preparedAt,
    parameters: statement.parameterTypes,
    results: statement.columns?.map((c) => c.typeOid) ?? null,
    fromSql,
  }));
}

function describeSettings(settings: SessionSettings, pid: number): CatalogSettings {
  const byName = settings
    .all()
    .map((s) => [s.name.toLowerCase(), [s.value, s.rawValue, s.initialValue, s.defaultValue]] as const);
  return Object.freeze({
    json: JSON.stringify({ pid, settings: Object.fromEntries(byName) }),
    inForce: ENGINE_SETTINGS.map((name) => [name, settings.show(name).value] as const),
  });
}
