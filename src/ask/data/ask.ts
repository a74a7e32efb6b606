import { EVIDENCE, emit, type GovernedPlan, PASSAGE_COLUMNS, queryError } from 'osl-compiler';
import { tellOutcome } from '../../base/thrown.js';
import { type ExecuteResult, MemoryShare, type RowSink } from '../../engine/index.js';
import { type Caller, versionsOf } from '../request/caller.js';
import type { DecisionRecord } from '../request/ledger.js';
import { Payment } from '../request/limit.js';
import { type AnswerSteps, authorize, type Decision, respond } from '../request/respond.js';
import { answerFromCache, cacheKeyOf } from './answer-cache.js';
import { planOrNeedApproval } from './approval-refusal.js';
import { countedRun, type OpenSink, withinLimits } from './entity-counts.js';
import { IndexesRead, type IndexRead, ModelUsage, requireModelAccess, sendsToModel } from './model-usage.js';
import { isComparedWithEarlier } from './overlap/compare.js';
import type { AnswerParts } from './parts.js';
import { throwStepError, withPosition } from './planning.js';
import {
  type AnswerFreshness,
  CountedSink,
  type QueryAnswer,
  type QueryUses,
  rollupFreshness,
  type StandbyUse,
  standbyFreshness,
} from './query-answer.js';
import { costCharge, type QuestionTime, questionTime } from './query-limits.js';
import {
  type CompiledQuestion,
  type DataQuestion,
  formatsOf,
  type ResultDelivery,
  requireWhole,
} from './question.js';
import { engineOf, type RuntimeRows, runtimeRows, slotValues } from './runtime/index.js';
import { chargeUse, chargingSink, settingsFor, timeCharge } from './runtime/step.js';
import { mayCache, standbyUseFor } from './standby-choice.js';

/**
 * Runs a query. The decision is made by compiling it into a governed plan. The query may start while the decision
 * record is being synced, since it has no side effects, but no row is sent until then.
 *
 * @throws QueryError: the errors of `respond`
 */
export function ask(
  parts: AnswerParts,
  question: DataQuestion,
  delivery: ResultDelivery,
): Promise<QueryAnswer> {
  const answering = answerStepsOf(parts, question, delivery);
  const { prepared } = question;
  const mayRun = prepared?.plan.rollup === null || question.mayBeOld === true;
  if (prepared?.authorized.isContinuedBy(question) === true && mayRun && prepared.payment.take()) {
    return prepared.authorized.continueAs('query').answer(answering);
  }
  const decision = decisionOf(parts, question, 'query', prepared?.payment);
  return respond(parts, question, { ...decision, ...answering });
}

/**
 * Compiles a query that the client will run later, as Parse does in the Postgres protocol. Counts against the rate
 * limit and records refusals. An execution that follows immediately continues the same request; a later one is
 * authorized again. If the query is never run, the caller records that with `record`.
 *
 * @throws QueryError
 */
export async function prepare(parts: AnswerParts, question: DataQuestion): Promise<CompiledQuestion> {
  const authorized = await authorize(parts, question, decisionOf(parts, question, 'prepare'));
  authorized.suspend();
  const { body, parameterOids } = question;
  const { decided: plan } = authorized;
  const record = (): Promise<void> => authorized.finish();
  return Object.freeze({ body, parameterOids, plan, authorized, payment: new Payment(), record });
}

/** Builds the decision step of a query: plans it and checks model calls and, except for `explain`, limits. */
export function decisionOf(
  parts: AnswerParts,
  question: DataQuestion,
  action: string,
  payment?: Payment,
): Decision<GovernedPlan> {
  const decide = (caller: Caller, record: DecisionRecord): GovernedPlan | Promise<GovernedPlan> => {
    const check = (plan: GovernedPlan): GovernedPlan | Promise<GovernedPlan> => {
      recordAndCheck(plan, record);
      const runs = !action.startsWith('explain'); // EXPLAIN runs nothing, so no limit applies
      return (runs ? withinLimits(parts, caller, plan)?.then(() => plan) : undefined) ?? plan;
    };
    const planned = planOrNeedApproval(parts, caller, question, record);
    return planned instanceof Promise ? planned.then(check) : check(planned);
  };
  const observed: typeof decide = (caller, record) => {
    const report = (outcome: unknown) => parts.shadow.running?.onDecision(caller, question, outcome);
    return tellOutcome(() => decide(caller, record), report);
  };
  return { action, target: question.body, bucket: 'query', payment, decide: observed };
}

/** Records the objects that a plan reads, and checks that its model calls are allowed. @throws QueryError E2101 */
function recordAndCheck(plan: GovernedPlan, record: DecisionRecord): GovernedPlan {
  record.setObjects(plan);
  requireModelAccess(plan);
  return plan;
}

export function answerStepsOf(
  parts: AnswerParts,
  question: DataQuestion,
  delivery: ResultDelivery,
): AnswerSteps<GovernedPlan, QueryAnswer> {
  const usage = new ModelUsage();
  const { receipt = null, sink } = delivery;
  let countedSink: CountedSink | null = null;
  let standby: StandbyUse | null = null;
  return {
    rowsSent: () => countedSink?.rowsSent() ?? 0,
    detail: () => usage.detail(),
    standby: () => standby?.source ?? null,
    mayStartEarly: true,
    signal: delivery.signal,
    countRows: (answer) => answer,
    readPlan: (plan) => plan,
    receipt: receipt?.requestedFor(question.body, delivery.parameters) ?? null,
    answer: async (plan, caller, recorded, permits) => {
      // Passages sent to a model cannot be recalled, so the decision must be recorded first.
      if (sendsToModel(plan)) await recorded;
      const isCompared = await isComparedWithEarlier(parts, caller, plan, question, delivery);
      const versions = versionsOf(caller);
      const open: OpenSink = (runtime) => {
        const inner = typeof sink === 'function' ? sink(plan, versions, redactionOf(plan, runtime)) : sink;
        countedSink = new CountedSink(receipt?.digesting(plan, formatsOf(delivery, plan), inner) ?? inner);
        return countedSink;
      };
      standby = standbyUseFor(parts, caller, plan, delivery);
      const uses = { usage, standby };
      const result = await run(parts, caller, plan, delivery, recorded, open, uses).catch(
        (error: unknown) => {
          throw withPosition(error, question, caller, plan);
        },
      );
      if (result.truncated) requireWhole(delivery, result.rows);
      return Object.freeze({
        requestId: question.requestId,
        plan,
        caller,
        versions,
        rows: result.rows,
        truncated: result.truncated,
        clipped: result.runtime.some((r) => r.clip !== null),
        redactedFields: redactedIn(plan, result.runtime),
        indexes: result.indexes,
        errors: result.runtime.flatMap((r) => r.errors),
        permits: isCompared ? null : permits,
        freshness: result.freshness,
        receipt,
      });
    },
  };
}

/** Runs a plan; no row is sent before `recorded` resolves. @throws the errors of `GovernedEngine.execute` */
export function run(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  delivery: Omit<ResultDelivery, 'sink'>,
  recorded: Promise<void>,
  sink: OpenSink,
  { usage, standby }: QueryUses,
): Promise<QueryExecution> {
  const counted = countedRun(parts, caller, { plan, delivery, open: sink });
  const delayed: OpenSink = (runtime) => whenRecorded(recorded, counted.open(runtime));
  const running = parts.runningQueries.begin(caller, plan, delivery.signal, parts.model());
  const memory = new MemoryShare(parts.memory, caller.identity.subject);
  const runDelivery = { ...counted.delivery, signal: running.signal };
  const uses = { usage, standby, memory };
  const cleanUp = (): void => {
    memory.release();
    running.end();
  };
  if (plan.runtime.length === 0)
    return execute(parts, caller, counted.plan, runDelivery, delayed, NO_DEADLINE, uses).finally(cleanUp);
  const time = questionTime(parts.caps.timeoutMs, running.signal);
  const timed = { ...runDelivery, signal: time.signal };
  return execute(parts, caller, counted.plan, timed, delayed, time, uses).finally(() => {
    time.end();
    cleanUp();
  });
}

const NO_DEADLINE = Object.freeze({ until: Number.POSITIVE_INFINITY });

/** Returns the names of the redacted passage fields, excluding the columns that every passage has. */
function redactedIn({ passageFields }: GovernedPlan, runtime: readonly RuntimeRows[]): readonly string[] {
  const all = new Set(runtime.flatMap((r) => [...r.redacted]));
  const isField = (name: string): boolean => !PASSAGE_COLUMNS.has(name) && name !== EVIDENCE;
  return [...all].filter((name) => isField(name) && passageFields?.has(name) !== false).sort();
}

/** Flags outputs that are redacted in at least one row. @param runtime one entry per runtime relation of the plan */
export function redactionOf({ outputs }: GovernedPlan, runtime: readonly RuntimeRows[]): readonly boolean[] {
  return outputs.map(
    ({ redacted, redactable }) =>
      redacted || redactable.some(({ runtime: at, column }) => runtime[at]?.redacted.has(column)),
  );
}

async function execute(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  delivery: Omit<ResultDelivery, 'sink'>,
  open: OpenSink,
  { until }: Pick<QuestionTime, 'until'>,
  { usage, standby, memory }: QueryUses & { readonly memory: MemoryShare },
): Promise<QueryExecution> {
  const { parameters, signal, snapshots, whole = false, copies = 0 } = delivery;
  if (parameters.length !== plan.clientOids.length) {
    throw queryError('parameterCount', { given: parameters.length, needed: plan.clientOids.length });
  }
  const charge = timeCharge(parts, caller);
  const engine = engineOf(parts, plan);
  const indexes = new IndexesRead();
  const common = { parameters, signal, until, usage, standby, indexes, whole, memory };
  const input = { parts, caller, plan, snapshots: snapshots ?? null, ...common };
  const chargeTokens = (): void => chargeUse(parts, caller, 'tokens', usage.tokens);
  const runtime =
    plan.runtime.length === 0 ? [] : await runtimeRows(input).catch(throwStepError).finally(chargeTokens);
  const sink = chargingSink(open(runtime), parts, caller);
  const { rows, bytes, timeoutMs } = parts.caps;
  const snapshot = snapshots?.snapshotOn(engine, caller) ?? null;
  const maxRows = delivery.maxRows === 0 ? rows : Math.min(rows, delivery.maxRows);
  const values = slotValues(emit(plan).slots, new Map(), input, runtime);
  const settings = settingsFor(parts, caller, plan, delivery.settings);
  const resultFormats = formatsOf(delivery, plan);
  const options = {
    subject: caller.identity.subject,
    resultFormats,
    maxRows,
    maxBytes: bytes,
    timeoutMs,
    settings,
    snapshot,
    copies,
  };
  const statement = (into: RowSink, stopped: AbortSignal | null) =>
    engine.execute(plan, values, { ...options, ...charge, signal: stopped, ...standby.statement() }, into);
  const live = (into: RowSink, stopped: AbortSignal | null) =>
    costCharge(parts, caller, plan)?.then(() => statement(into, stopped)) ?? statement(into, stopped);
  const extras = { runtime, indexes: indexes.list() };
  const cacheKey = mayCache(parts, delivery)
    ? cacheKeyOf({ caller, plan, values, resultFormats, settings })
    : null;
  if (cacheKey === null) {
    // Read before the statement runs, since a rollup may be rebuilt in the meantime.
    const rollup = rollupFreshness(parts.rollups, caller, plan);
    const result = await live(sink, signal);
    return { ...result, ...extras, freshness: rollup ?? standbyFreshness(standby.source) };
  }
  const time = questionTime(timeoutMs, signal);
  const { answers, epochs } = parts;
  const result = await answerFromCache(
    {
      answers,
      epochs,
      memory,
      cacheKey,
      mayReuse: delivery.caching === 'reuse',
      usage,
      signal: time.signal,
      requireInService: () => engine.requireInService(plan),
      live: (into) => live(into, time.signal),
    },
    sink,
  ).finally(time.end);
  return { ...result, ...extras };
}

interface QueryExecution extends ExecuteResult {
  readonly runtime: readonly RuntimeRows[];
  readonly indexes: readonly IndexRead[];
  readonly freshness: AnswerFreshness | null;
}

/** Delays rows until the decision is durable; the query itself has no side effects. */
function whenRecorded(decided: Promise<void>, sink: RowSink): RowSink {
  let durable = false;
  const ready = decided.then(() => {
    durable = true;
  });
  ready.catch(() => undefined); // avoids an unhandled rejection: writers and `ask` handle the error
  return {
    write: (dataRows, rows) =>
      durable ? sink.write(dataRows, rows) : ready.then(() => sink.write(dataRows, rows)),
  };
}
