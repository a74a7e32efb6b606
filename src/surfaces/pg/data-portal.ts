import { type GovernedPlan, queryError } from 'osl-compiler';
import type { Bind, FetchResult, Portal, RowWriter, WireNotice } from '../../../wire/index.js';
import type { QueryAnswer, ResultDelivery } from '../../ask/index.js';
import type { MemoryShare, RowSink } from '../../engine/index.js';
import { giveRows, PacedRows } from './paced-rows.js';
import { rowSink, type WaitingRowRights } from './session-records.js';
import { NO_NOTICES, notice, planNotices } from './told-of-plan.js';

/** Parts of a data statement that its runs use. */
export interface StatementRun {
  /** Authorizes and runs the query. */
  ask(delivery: ResultDelivery): Promise<QueryAnswer>;
  /** Runs `work`; a cancel of the session aborts its signal. */
  cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Like `cancellable`, with a controller of the statement, which outlives `work`. */
  while<T>(stop: AbortController, work: () => Promise<T>): Promise<T>;
  readonly rights: WaitingRowRights;
  /** Memory for the buffered rows of one run. */
  memory(): MemoryShare;
  /** Filters notices by `client_min_messages`. */
  audible(notices: readonly WireNotice[]): readonly WireNotice[];
}

/** A query that runs independently of the client's fetches. */
interface BackgroundQuery {
  /** Rights under which it started. */
  readonly rights: string;
  readonly rows: PacedRows;
  /** Null if it failed: `rows` throws the cause. */
  readonly answer: Promise<QueryAnswer | null>;
  readonly stop: AbortController;
}

/** One run of a data statement. Rows are passed through if all are fetched at once, else buffered for the client. */
export class DataPortal implements Portal {
  readonly #described: GovernedPlan;
  /** Plan of the run; the described plan until it starts. */
  #plan: GovernedPlan;
  readonly #bind: Bind;
  readonly #run: StatementRun;
  readonly #mayPause: boolean;
  #paced: BackgroundQuery | null = null;

  constructor(described: GovernedPlan, bind: Bind, run: StatementRun, mayPause: boolean) {
    this.#described = described;
    this.#plan = described;
    this.#bind = bind;
    this.#run = run;
    this.#mayPause = mayPause;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#paced === null && maxRows === 0) {
      const answer = await this.#run.cancellable((signal) =>
        this.#answer(rowSink(rows), signal, rows.copies),
      );
      const notices = this.#run.audible([...planNotices(answer.plan), ...endNotices(answer)]);
      return { suspended: false, tag: `SELECT ${answer.rows}`, notices };
    }
    const first = this.#paced === null;
    if (this.#paced !== null) this.#run.rights.requireSame(this.#paced.rights);
    this.#paced ??= this.#start();
    const { rows: queue, answer, stop } = this.#paced;
    const given = await this.#run.while(stop, () => this.#portion(queue, answer, maxRows, rows));
    const masks = first ? planNotices(this.#plan) : NO_NOTICES;
    return { ...given, notices: this.#run.audible([...masks, ...given.notices]) };
  }

  close(): void {
    if (this.#paced === null) return;
    this.#paced.rows.drop();
    this.#paced.stop.abort();
  }

  async #portion(
    queue: PacedRows,
    answer: Promise<QueryAnswer | null>,
    maxRows: number,
    rows: RowWriter,
  ): Promise<FetchResult & { readonly notices: readonly WireNotice[] }> {
    let given = 0;
    for (;;) {
      const taken = await queue.take(maxRows === 0 ? 0 : maxRows - given);
      await giveRows(taken.rows, rows, (bytes) => queue.delivered(bytes));
      given += taken.rows.length;
      // Like Postgres, which does not look for the end either; otherwise the result would depend on timing.
      if (maxRows > 0 && given === maxRows)
        return { suspended: true, tag: `SELECT ${given}`, notices: NO_NOTICES };
      if (!taken.more) {
        const whole = await answer;
        const notices = whole === null ? NO_NOTICES : endNotices(whole);
        return { suspended: false, tag: `SELECT ${given}`, notices };
      }
    }
  }

  /** Runs until it ends or `close` aborts it. */
  #start(): BackgroundQuery {
    const rights = this.#run.rights.now;
    const rows = new PacedRows(this.#mayPause, this.#run.memory());
    const stop = new AbortController();
    const answer = this.#answer(rows, stop.signal).then(
      (whole) => {
        rows.end(null);
        return whole;
      },
      (cause: unknown) => {
        rows.end({ cause }); // thrown by the fetch that reaches it
        return null;
      },
    );
    return { rights, rows, answer, stop };
  }

  #answer(sink: RowSink, signal: AbortSignal, copies = 0): Promise<QueryAnswer> {
    const { parameterFormats, parameters, resultFormats } = this.#bind;
    const values = parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? (0 as const), bytes }));
    return this.#run.ask({
      parameters: values,
      resultFormats,
      maxRows: 0,
      copies,
      // Incomplete rows are an error: clients ignore notices, and the protocol cannot express it otherwise.
      whole: true,
      sink: (plan: GovernedPlan) => {
        requireSame(this.#described, plan);
        this.#plan = plan;
        return sink;
      },
      signal,
    });
  }
}

/** A reload between Parse and Execute may change the columns of `*`, which were already described to the client. */
function requireSame(described: GovernedPlan, plan: GovernedPlan): void {
  if (plan === described || shapeOf(plan) === shapeOf(described)) return;
  throw queryError('planChanged', {});
}

function shapeOf({ outputs, clientOids }: GovernedPlan): string {
  return JSON.stringify([clientOids, outputs.map((o) => [o.name, o.type])]);
}

function endNotices(answer: QueryAnswer): readonly WireNotice[] {
  if (answer.errors.length === 0) return NO_NOTICES;
  return answer.errors.map((e) => notice(`an operator failed for passage ${e.chunkId}: ${e.reason}`));
}
