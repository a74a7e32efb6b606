import { type GovernedPlan, lengthOf, noticesOf, oidOf, queryError } from 'osl-compiler';
import type {
  Bind,
  ColumnDescription,
  FetchResult,
  Portal,
  RowWriter,
  WireNotice,
  WireStatement,
} from '../../../wire/index.js';
import type { PreparedQuestion, QueryAnswer, ResultDelivery, Snapshots } from '../../ask/index.js';
import { MemoryShare, type RowSink } from '../../engine/index.js';
import { BufferedRows, writeRows } from './buffered-rows.js';
import { rowSink, type SuspendedRowRights } from './session-requests.js';
import type { SessionParts } from './session-state.js';
import { MESSAGE_LEVELS } from './setting-list.js';
import type { SessionSettings } from './settings.js';

/** A prepared query on data, as opposed to catalog queries and session commands. Every run is authorized again. */
export class DataStatement implements WireStatement {
  readonly question: PreparedQuestion;
  readonly parameterTypes: readonly number[];
  readonly columns: readonly ColumnDescription[];
  readonly #run: StatementRun;
  readonly #mayPause: () => boolean;

  constructor(question: PreparedQuestion, run: StatementRun, mayPause: () => boolean) {
    this.question = question;
    this.parameterTypes = question.plan.clientOids;
    this.columns = columnsOf(question.plan.outputs);
    this.#run = run;
    this.#mayPause = mayPause;
  }

  open(bind: Bind): DataPortal {
    return new DataPortal(this.question.plan, bind, this.#run, this.#mayPause());
  }
}

/** Compiles a query on data. @throws WireError */
export async function dataStatement(
  session: SessionParts,
  text: string,
  parameterOids: readonly number[],
): Promise<DataStatement> {
  const { service, questions, caller, rights, records, settings, state, running } = session;
  const mayBeCached = (): boolean => !state.inBlock && settings.cacheMode() === 'reuse';
  const body = { kind: 'wire', text } as const;
  const firstCall = { ...caller.newCall(), body, parameterOids, mayBeOld: mayBeCached() };
  const prepared = await records.translate(firstCall.requestId, text, () => questions.prepare(firstCall));
  const pendingRecord = records.holdPrepared(firstCall, () => prepared.record());
  const run: StatementRun = {
    query: (delivery) => {
      // Must come before `release`: if the receipt is refused, the statement must still be recorded as prepared.
      const receipt = settings.beginReceipt();
      const call = records.pending.release(pendingRecord) ? firstCall : caller.newCall();
      session.activity.beginStatement(text);
      return records.translate(call.requestId, text, async () => {
        const answer = await prepared.run(call, mayBeCached(), {
          ...withSettings(session, delivery),
          receipt,
        });
        settings.setFreshness(answer.freshness);
        settings.endReceipt(receipt);
        return answer;
      });
    },
    cancellable: (work) => {
      state.block.requireUsable();
      return running.cancellable(work);
    },
    cancellableBy: (stop, work) => {
      state.block.requireUsable();
      return running.cancellableBy(stop, work);
    },
    rights,
    memory: () => new MemoryShare(service.memory, caller.identity.subject),
    visibleNotices: (notices) => visibleNotices(settings, notices),
  };
  const isNative = prepared.engineKind === 'postgres';
  // A query in a snapshot must not pause until its client reads: the snapshot has a single upstream session, which the
  // client's other statements need.
  return new DataStatement(prepared, run, () => isNative && snapshotsOf(session) === null);
}

function withSettings(session: SessionParts, delivery: ResultDelivery): ResultDelivery {
  const settings = session.settings.output();
  const snapshots = snapshotsOf(session);
  if (snapshots !== null) return { ...delivery, settings, snapshots };
  // Inside a transaction block, answers always come from the database, never from the answer cache.
  const again = session.state.inBlock ? null : session.settings.cacheMode();
  return {
    ...delivery,
    standby: session.settings.standbyReads(),
    ...(settings.length > 0 && { settings }),
    ...(again !== null && { caching: again }),
  };
}

function snapshotsOf({ state, caller }: SessionParts): Snapshots | null {
  return state.isolation.snapshots(state.inBlock, caller.identity.subject);
}

/** Services of the session that the runs of a data statement share. */
export interface StatementRun {
  query(delivery: ResultDelivery): Promise<QueryAnswer>;
  /** Runs `work` with a signal that is aborted when the session's statement is cancelled. */
  cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Like `cancellable`, but cancellation aborts `stop`, which the caller can continue to use after `work` has ended.
   */
  cancellableBy<T>(stop: AbortController, work: () => Promise<T>): Promise<T>;
  readonly rights: SuspendedRowRights;
  memory(): MemoryShare;
  visibleNotices(notices: readonly WireNotice[]): readonly WireNotice[];
}

/** A query that runs independently of the client's fetches. */
interface BackgroundQuery {
  readonly rights: string;
  readonly rows: BufferedRows;
  /** Resolves to null if the query failed, in which case `rows` throws the cause. */
  readonly answer: Promise<QueryAnswer | null>;
  readonly stop: AbortController;
}

/**
 * One run of a data statement. Rows are passed through if all are fetched in one go, otherwise buffered for the
 * client.
 */
export class DataPortal implements Portal {
  readonly #describedPlan: GovernedPlan;
  /** Plan of the run; until the run starts, the plan that was described. */
  #plan: GovernedPlan;
  readonly #bind: Bind;
  readonly #run: StatementRun;
  readonly #mayPause: boolean;
  #background: BackgroundQuery | null = null;

  constructor(describedPlan: GovernedPlan, bind: Bind, run: StatementRun, mayPause: boolean) {
    this.#describedPlan = describedPlan;
    this.#plan = describedPlan;
    this.#bind = bind;
    this.#run = run;
    this.#mayPause = mayPause;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#background === null && maxRows === 0) {
      const answer = await this.#run.cancellable((signal) =>
        this.#answer(rowSink(rows), signal, rows.copies),
      );
      const notices = this.#run.visibleNotices([...planNotices(answer.plan), ...endNotices(answer)]);
      return { suspended: false, tag: `SELECT ${answer.rows}`, notices };
    }
    const isFirst = this.#background === null;
    if (this.#background !== null) this.#run.rights.requireSame(this.#background.rights);
    this.#background ??= this.#start();
    const { rows: queue, answer, stop } = this.#background;
    const result = await this.#run.cancellableBy(stop, () =>
      this.#writePortion(queue, answer, maxRows, rows),
    );
    const firstNotices = isFirst ? planNotices(this.#plan) : NO_NOTICES;
    return { ...result, notices: this.#run.visibleNotices([...firstNotices, ...result.notices]) };
  }

  close(): void {
    if (this.#background === null) return;
    this.#background.rows.discard();
    this.#background.stop.abort();
  }

  async #writePortion(
    queue: BufferedRows,
    answer: Promise<QueryAnswer | null>,
    maxRows: number,
    rows: RowWriter,
  ): Promise<FetchResult & { readonly notices: readonly WireNotice[] }> {
    let count = 0;
    for (;;) {
      const batch = await queue.take(maxRows === 0 ? 0 : maxRows - count);
      await writeRows(batch.rows, rows, (bytes) => queue.releaseSent(bytes));
      count += batch.rows.length;
      // Like Postgres, do not check whether these were the last rows; otherwise the result would depend on timing.
      if (maxRows > 0 && count === maxRows)
        return { suspended: true, tag: `SELECT ${count}`, notices: NO_NOTICES };
      if (!batch.hasMore) {
        const completed = await answer;
        const notices = completed === null ? NO_NOTICES : endNotices(completed);
        return { suspended: false, tag: `SELECT ${count}`, notices };
      }
    }
  }

  /** Starts the query, which runs until it ends or `close` aborts it. */
  #start(): BackgroundQuery {
    const rights = this.#run.rights.current;
    const rows = new BufferedRows(this.#mayPause, this.#run.memory());
    const stop = new AbortController();
    const answer = this.#answer(rows, stop.signal).then(
      (completed) => {
        rows.end(null);
        return completed;
      },
      (cause: unknown) => {
        rows.end({ cause }); // thrown by the fetch that reaches the end of the rows
        return null;
      },
    );
    return { rights, rows, answer, stop };
  }

  #answer(sink: RowSink, signal: AbortSignal, copies = 0): Promise<QueryAnswer> {
    const { parameterFormats, parameters, resultFormats } = this.#bind;
    const values = parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? (0 as const), bytes }));
    return this.#run.query({
      parameters: values,
      resultFormats,
      maxRows: 0,
      copies,
      // An incomplete answer is an error: clients ignore notices, and the protocol has no other way to report it.
      whole: true,
      sink: (plan: GovernedPlan) => {
        requireSame(this.#describedPlan, plan);
        this.#plan = plan;
        return sink;
      },
      signal,
    });
  }
}

/**
 * Refuses a run whose columns differ from those described: a reload between Parse and Execute may change the columns
 * of `*`.
 */
function requireSame(describedPlan: GovernedPlan, plan: GovernedPlan): void {
  if (plan === describedPlan || shapeOf(plan) === shapeOf(describedPlan)) return;
  throw queryError('planChanged', {});
}

function shapeOf({ outputs, clientOids }: GovernedPlan): string {
  return JSON.stringify([clientOids, outputs.map((o) => [o.name, o.type])]);
}

function endNotices({ errors, receipt, requestId }: QueryAnswer): readonly WireNotice[] {
  if (errors.length === 0 && receipt === null) return NO_NOTICES;
  return [
    ...errors.map((e) => notice(`an operator failed for passage ${e.chunkId}: ${e.reason}`)),
    ...(receipt === null ? [] : [notice(`receipt of request ${requestId}: SHOW osl.receipt`)]),
  ];
}

const NO_NOTICES: readonly WireNotice[] = Object.freeze([]);

/** Returns the notices about a plan, such as its masked columns. They are sent at the end of the first fetch. */
export function planNotices(plan: GovernedPlan): readonly WireNotice[] {
  const { maskedColumns, partialColumns } = plan;
  const otherNotices = noticesOf(plan);
  if (maskedColumns.length === 0 && partialColumns.length === 0 && otherNotices.length === 0)
    return NO_NOTICES;
  return [
    ...(maskedColumns.length === 0 ? [] : [`masked for you: ${maskedColumns.join(', ')}`]),
    ...(partialColumns.length === 0
      ? []
      : [`${partialColumns.join(', ')}: computed over values of which some are masked for you`]),
    ...otherNotices,
  ].map(notice);
}

function notice(message: string): WireNotice {
  return { severity: 'NOTICE', sqlstate: '01000', message };
}

/** Cache of column descriptions by `outputs`, which plans of the same shape share. */
const COLUMNS = new WeakMap<GovernedPlan['outputs'], readonly ColumnDescription[]>();

export function columnsOf(outputs: GovernedPlan['outputs']): readonly ColumnDescription[] {
  let columns = COLUMNS.get(outputs);
  if (columns === undefined) {
    columns = Object.freeze(outputs.map(columnOf));
    COLUMNS.set(outputs, columns);
  }
  return columns;
}

function columnOf({ name, type, form }: GovernedPlan['outputs'][number]): ColumnDescription {
  return {
    name,
    typeOid: form?.oid ?? oidOf(type),
    typeLength: form?.length ?? lengthOf(type),
    typeModifier: form?.modifier ?? -1,
  };
}

const SEVERITY_RANKS: Readonly<Record<WireNotice['severity'], number>> = {
  DEBUG: MESSAGE_LEVELS.indexOf('debug1'),
  LOG: MESSAGE_LEVELS.indexOf('log'),
  NOTICE: MESSAGE_LEVELS.indexOf('notice'),
  WARNING: MESSAGE_LEVELS.indexOf('warning'),
  INFO: MESSAGE_LEVELS.length, // always sent
};

/** Filters `notices` by the session's `client_min_messages` setting. */
export function visibleNotices(
  settings: SessionSettings,
  notices: readonly WireNotice[],
): readonly WireNotice[] {
  if (notices.length === 0) return notices;
  const minRank = MESSAGE_LEVELS.indexOf(settings.show('client_min_messages').value);
  return notices.filter((n) => SEVERITY_RANKS[n.severity] >= minRank);
}
