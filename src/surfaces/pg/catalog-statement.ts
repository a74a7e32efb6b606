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
  askCatalog,
  type BackendReply,
  type CatalogDelivery,
  CatalogFault,
  type CatalogProvider,
  type CatalogQuestion,
  type CatalogSettings,
  type CatalogStatement,
  describeCatalog,
  namesSessions,
  type ReplyReport,
  refuseLane,
  type StatementLane,
} from '../catalog/index.js';
import { writeRows } from './buffered-rows.js';
import { audible } from './data-statement.js';
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
  const question = async (requestId: string = randomUUID()): Promise<CatalogQuestion> => ({
    requestId,
    identity: caller.identity,
    origin: caller.origin,
    text,
    parameterTypes,
    user: caller.user,
    session: await settingsFor(session, text),
  });
  const first = await question();
  return translate(records, first, async () => {
    if (lane.kind !== 'catalog') return refuseLane(service, first, lane);
    const prepared = await running.cancellable((signal) => describeCatalog(service, catalogs, first, signal));
    const { described, payment } = prepared;
    const unrun = records.hold(first, () => prepared.record());
    const run = async (
      delivery: Pick<CatalogDelivery, 'values' | 'formats' | 'memory'>,
    ): Promise<ReplyWithNotices> => {
      session.state.block.requireUsable();
      const requestId = records.pending.release(unrun) ? first.requestId : undefined;
      session.activity.beginStatement(text);
      const next = { ...(await question(requestId)), payment };
      return running.cancellable((signal) =>
        translate(records, next, async () => {
          const reply = await askCatalog(service, catalogs, next, described, {
            ...delivery,
            signal,
            apply: async ({ changes, signals }) => {
              await changeSettings(session, changes).catch((cause: unknown) => {
                throw asCatalogFault(cause);
              });
              for (const wanted of signals) await session.own.signal(wanted);
              signal.throwIfAborted(); // the statement may have cancelled its own session
            },
          });
          return { ...reply, notices: audible(session.settings, reply.notices.map(notice)) };
        }),
      );
    };
    return {
      ...described,
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
  #begun = '';
  #reply: ReplyWithNotices | null = null;
  #rows: readonly Uint8Array[] = [];
  #taken = 0;

  constructor(rights: SuspendedRowRights, memory: MemoryShare, run: () => Promise<ReplyWithNotices>) {
    this.#rights = rights;
    this.#memory = memory;
    this.#run = run;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#reply === null) {
      this.#begun = this.#rights.now;
      const reply = await this.#run();
      this.#reply = reply;
      if (maxRows === 0) {
        for (const run of reply.rows) await rows.write(run);
        this.#memory.release();
        return { suspended: false, tag: reply.tag ?? '', notices: reply.notices };
      }
      this.#rows = reply.rows.flatMap((run) => [...eachDataRow(run)]);
    }
    this.#rights.requireSame(this.#begun);
    const end = maxRows === 0 ? this.#rows.length : Math.min(this.#rows.length, this.#taken + maxRows);
    const portion = this.#rows.slice(this.#taken, end);
    this.#taken = end;
    await writeRows(portion, rows);
    const { notices } = this.#reply;
    const first = end === portion.length;
    return {
      suspended: end < this.#rows.length,
      tag: `SELECT ${portion.length}`,
      ...(first ? { notices } : {}),
    };
  }

  close(): void {
    this.#rows = [];
    this.#memory.release();
  }
}

function notice({ severity, sqlstate, message, detail, hint }: ReplyReport): WireNotice {
  const known = SEVERITIES.find((s) => s === severity) ?? 'NOTICE';
  return { severity: known, sqlstate, message, detail: detail ?? undefined, hint: hint ?? undefined };
}

const SEVERITIES: readonly WireNotice['severity'][] = ['NOTICE', 'WARNING', 'INFO', 'LOG', 'DEBUG'];

function translate<T>(records: SessionRecords, question: CatalogQuestion, run: () => Promise<T>): Promise<T> {
  return records.translate(question.requestId, question.text, async () => {
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

const IN_FORCE = ['TimeZone', 'DateStyle', 'IntervalStyle', 'extra_float_digits', 'bytea_output'] as const;

const SETTINGS_CACHE = new WeakMap<object, CatalogSettings>();

function catalogSettings({ settings, processId }: SessionParts): CatalogSettings {
  let known = SETTINGS_CACHE.get(settings.version);
  if (known === undefined) {
    known = describe(settings, processId());
    SETTINGS_CACHE.set(settings.version, known);
  }
  return known;
}

/** Maximum length of a statement's text in `pg_cursors` and `pg_prepared_statements`, in UTF-16 code units. */
const LONGEST = 1_024;

/**
 * Returns the session's settings and, if the text can read them, the caller's sessions, cursors and prepared
 * statements.
 */
async function settingsFor(session: SessionParts, text: string): Promise<CatalogSettings> {
  const known = catalogSettings(session);
  if (!namesSessions(text)) return known;
  const cursors = session.cursors.list().map((c) => ({ ...c, text: c.text.slice(0, LONGEST) }));
  const state = { sessions: await session.own.all(), cursors, statements: statementsOf(session) };
  return { ...known, json: `${known.json.slice(0, -1)},${JSON.stringify(state).slice(1)}` };
}

function statementsOf({ statements }: SessionParts): readonly CatalogStatement[] {
  return statements.statements().map(({ name, text, preparedAt, fromSql, statement }) => ({
    name,
    text: text.slice(0, LONGEST),
    prepared: preparedAt,
    parameters: statement.parameterTypes,
    results: statement.columns?.map((c) => c.typeOid) ?? null,
    fromSql,
  }));
}

function describe(settings: SessionSettings, pid: number): CatalogSettings {
  const byName = settings
    .all()
    .map((s) => [s.name.toLowerCase(), [s.value, s.stored, s.atStart, s.byDefault]] as const);
  return Object.freeze({
    json: JSON.stringify({ pid, settings: Object.fromEntries(byName) }),
    inForce: IN_FORCE.map((name) => [name, settings.show(name).value] as const),
  });
}
