import { setImmediate, setTimeout } from 'node:timers/promises';
import {
  type AskedWorld,
  type CompileOptions,
  compileMetrics,
  compileTemplate,
  compiling,
  emit,
  GovernedPlan,
  InternalError,
  type MetricsRequest,
  OPERATORS,
  oneStatement,
  parse,
  QueryError,
  queryError,
} from 'osl-compiler';
import { type AuditSurface, AuditUnavailable } from '../../policy/audit/index.js';
import {
  type EffectiveAccess,
  effectiveAccess,
  type Identity,
  isEmpty,
  type LimitBucket,
  type PolicySnapshot,
} from '../../policy/index.js';
import type { ExecuteResult, RowSink } from '../engine/index.js';
import type { Manifest } from '../model/manifest/index.js';
import type { Service } from '../service/service.js';
import { Ledger } from './ledger.js';
import { isShort } from './parsing/index.js';
import { Payment } from './payment.js';
import type { Body, Call, Credentials, Delivery, Prepared, Question, Versions } from './question.js';
import { settingsFor } from './row-rights.js';
import { engineOf, type RuntimeRows, runtimeRows, slotValues } from './runtime/index.js';
import { inTurns } from './slices.js';

export type { Body, Call, Credentials, Delivery, Question, Versions } from './question.js';

/** Who asks, what they may see, and under which versions: settled before anything is compiled. */
export interface Caller {
  readonly identity: Identity;
  readonly access: EffectiveAccess;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** What an answer says beside its rows. */
export interface Answer {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly caller: Caller;
  readonly versions: Versions;
  readonly rows: number;
  /** A cap on the answer held rows back. */
  readonly truncated: boolean;
  /** A cap on a step held rows back, and the rest are rows that stand for themselves. */
  readonly clipped: boolean;
  /** Fields of the answer that are redacted in passages which it rests on. */
  readonly redactedFields: readonly string[];
  /** Passages for which a decoder operator failed; their value is NULL. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

/**
 * Answers one question. This is the spine: every surface calls it, and none decides anything itself.
 *
 * identify → access → limit → compile → audit the decision → execute → audit the outcome
 *
 * @throws QueryError for what the caller may be told; anything else is ours, and is logged
 */
export async function ask(service: Service, question: Question, delivery: Delivery): Promise<Answer> {
  const ledger = new Ledger(service, question, 'query', question.body);
  const { caller, plan } = await decide(service, question, ledger, 'query');
  ledger.reads(plan);
  const decided = ledger.allow();
  try {
    // A decoder sends passages to a model, which cannot be undone: there the record comes first.
    if (asksModel(plan)) await decided;
    const versions = versionsOf(caller);
    const sink = typeof delivery.sink === 'function' ? delivery.sink(plan, versions) : delivery.sink;
    const result = await execute(service, caller, plan, delivery, afterwards(decided, sink));
    await decided;
    ledger.outcome(result.truncated ? 'truncated' : 'ok', result.rows);
    return Object.freeze({
      requestId: question.requestId,
      plan,
      caller,
      versions,
      rows: result.rows,
      truncated: result.truncated,
      clipped: result.runtime.some((r) => r.clip !== null),
      redactedFields: redactedIn(plan, result.runtime),
      errors: result.runtime.flatMap((r) => r.errors),
    });
  } catch (error) {
    const told = publicError(service, question.requestId, await failureOf(decided, error));
    ledger.outcome(delivery.signal?.aborted === true ? 'cancelled' : 'error', 0, told);
    throw told;
  }
}

function redactedIn({ passageFields }: GovernedPlan, runtime: readonly RuntimeRows[]): readonly string[] {
  const all = new Set(runtime.flatMap((r) => r.redactedFields));
  return [...all].filter((name) => passageFields?.has(name) !== false).sort();
}

/** What an answer to `caller` rests on. */
export function versionsOf({ manifest, snapshot }: Pick<Caller, 'manifest' | 'snapshot'>): Versions {
  return { manifest: manifest.version, policy: snapshot.version };
}

/**
 * Compiles a question for a client that will run it later, as the wire's Parse does. Compiling is work, so it counts
 * against the limit as a run does; a refusal is recorded here. The run itself decides again, under the policy of its own
 * time, and is what is recorded; where none comes, the caller has `record` called. Until then the plan only describes;
 * it is given back as `prepared` of the question that runs.
 *
 * @throws QueryError
 */
export async function prepare(service: Service, question: Question): Promise<Prepared> {
  const ledger = new Ledger(service, question, 'prepare', question.body);
  const { plan } = await decide(service, question, ledger, 'query');
  ledger.done();
  const { body, parameterOids } = question;
  const record = (): Promise<void> => settled(service, question, ledger);
  return Object.freeze({ body, parameterOids, plan, payment: new Payment(), record });
}

/**
 * Who asks, and the governed plan of what is asked; a refusal is recorded.
 *
 * @param permits refuses who may not ask in this way, before the question is looked at
 */
export async function decide(
  service: Service,
  question: Question,
  ledger: Ledger,
  bucket: LimitBucket,
  permits: (caller: Caller) => void = () => undefined,
): Promise<{ readonly caller: Caller; readonly plan: GovernedPlan }> {
  try {
    const caller = await counted(service, question, ledger, bucket, question.prepared?.payment);
    permits(caller);
    const planned = planOf(service, caller, question, ledger);
    const plan = planned instanceof Promise ? await planned : planned;
    ledger.touches(plan);
    mayAskModel(plan);
    return { caller, plan };
  } catch (error) {
    throw await refuse(service, question, ledger, error);
  }
}

/** Who calls, once the call is counted in `bucket` or was `paid` for. @throws QueryError as `callerOf` and `limit` */
export async function counted(
  service: Service,
  call: Call,
  ledger: Ledger,
  bucket: LimitBucket,
  paid?: Payment,
): Promise<Caller> {
  const found = callerOf(service, call.credentials, ledger);
  const caller = found instanceof Promise ? await found : found;
  if (paid?.take() !== true) await limit(service, caller.identity, bucket, call.surface);
  return caller;
}

/** Records that a call was let in and, as it reads no data, that it went well. @throws QueryError E5030 */
export async function settled(service: Service, call: Call, ledger: Ledger): Promise<void> {
  try {
    await ledger.allow();
  } catch (error) {
    throw publicError(service, call.requestId, error);
  }
  ledger.outcome('ok', 0);
}

/** Answers once the decision is recorded, and records how that went. @throws QueryError E5030, and for what `answer` throws */
export async function answered<T>(
  service: Service,
  call: Call,
  ledger: Ledger,
  answer: () => T | Promise<T>,
): Promise<T> {
  try {
    await ledger.allow();
    const told = await answer();
    ledger.outcome('ok', 0);
    return told;
  } catch (error) {
    const failure = publicError(service, call.requestId, error);
    ledger.outcome('error', 0, failure);
    throw failure;
  }
}

/** Identity and access: no token, bad token, no policy, in this order. */
export function callerOf(
  service: Service,
  credentials: Credentials,
  ledger: Ledger,
): Caller | Promise<Caller> {
  if (credentials.kind === 'session') return callerAs(service, credentials.identity, ledger);
  if (credentials.token === null) throw queryError('missingToken', {});
  return service.verifier.verify(credentials.token).then((identity) => callerAs(service, identity, ledger));
}

/** Who was identified, under what is served now. @throws QueryError E2001 */
export function callerAs(service: Service, identity: Identity, ledger: Ledger): Caller {
  const { manifest, snapshot } = service.model();
  ledger.knows(identity, { manifest, snapshot });
  if (snapshot === null) throw queryError('noSnapshot', {});
  return Object.freeze({
    identity,
    access: effectiveAccess(identity, snapshot, manifest.catalog),
    manifest,
    snapshot,
  });
}

/**
 * Counts the request. A wire client cannot be told to come back, and most would show the error to a person, so
 * there a request that is over the limit waits for the next window once.
 */
export async function limit(
  service: Service,
  identity: Identity,
  bucket: LimitBucket,
  surface: AuditSurface,
): Promise<void> {
  const first = await service.limiter.take(bucket, identity);
  if (first.ok) return;
  if (surface === 'wire' && first.retryAfterSeconds <= WIRE_PATIENCE_SECONDS) {
    await setTimeout(1_000 * first.retryAfterSeconds);
    const second = await service.limiter.take(bucket, identity);
    if (second.ok) return;
  }
  throw queryError('rateLimited', { retryAfterSeconds: first.retryAfterSeconds });
}

const WIRE_PATIENCE_SECONDS = 1;

/** The governed plan of a question, from the cache where the same, or its like, was asked under the same rights. */
function planOf(
  service: Service,
  caller: Caller,
  question: Question,
  ledger: Ledger,
): GovernedPlan | Promise<GovernedPlan> {
  if (question.body.kind === 'metrics') return metricsPlan(service, caller, question.body.request);
  const { access, manifest } = caller;
  const known = preparedPlan(question);
  // INVARIANT: equal versions and signature mean equal plans; under any others the question is compiled anew.
  if (known?.catalogVersion === manifest.catalog.version && known.accessSignature === access.signature)
    return known;
  const { text, world } = statementOf(question.body);
  const { parameterOids } = question;
  const rights = `${manifest.catalog.version} ${access.signature} ${world} ${parameterOids.join(',')}`;
  const { hasDecoder } = service.content;
  const options = { parameterOids, world, hasDecoder };
  if (!isShort(text))
    return longPlan(service, caller, rights, text, options, ledger).catch((error: unknown) => {
      throw emptySqlOr(error, question.body);
    });
  return service.plans.planOf(rights, text, (shaped) => {
    try {
      const compile = (): Compiled => compileTemplate(text, shaped, manifest.catalog, access, options);
      return isEmpty(access) ? facetsOnly(text, compile) : compile();
    } catch (error) {
      throw emptySqlOr(error, question.body);
    }
  });
}

/**
 * The same for a text that would hold up everybody else: another thread parses it, and what is left is done in steps.
 * That it is being compiled is on disk before, so that what a crash was about can be told.
 */
async function longPlan(
  service: Service,
  { access, manifest, identity }: Caller,
  rights: string,
  text: string,
  options: CompileOptions,
  ledger: Ledger,
): Promise<GovernedPlan> {
  const known = service.plans.look(rights, text);
  if (known instanceof GovernedPlan) return known;
  return service.marks.during(ledger.mark(text), async () => {
    const parsed = oneStatement(await service.parsing.parse(text, identity.subject));
    const steps = compiling(text, known.shaped, manifest.catalog, access, { ...options, parsed });
    const compiled = await inTurns(steps).catch((error: unknown) => {
      throw isEmpty(access) ? withoutAccess(error) : error;
    });
    if (isEmpty(access)) requireFacetsOnly(compiled);
    await setImmediate();
    service.plans.keep(rights, text, known.shaped, compiled);
    return compiled.plan;
  });
}

type Compiled = ReturnType<typeof compileTemplate>;

/**
 * What a caller without any grant is answered: zero passages of a declared facet, as the contract has it, and E2102 for
 * everything else, whatever else is wrong with it.
 *
 * @throws QueryError E0511 for what is no SQL, E0241, E0521, E2102
 */
function facetsOnly(text: string, compile: () => Compiled): Compiled {
  parse(text);
  try {
    return requireFacetsOnly(compile());
  } catch (error) {
    throw withoutAccess(error);
  }
}

/** What a caller without any grant is told of a fault in the question. */
function withoutAccess(error: unknown): unknown {
  const isTold =
    error instanceof QueryError && (error.entry === 'unknownFacet' || error.entry === 'noDecoder');
  return error instanceof QueryError && !isTold ? queryError('noAccess', {}) : error;
}

/** @throws QueryError E2102 */
function requireFacetsOnly(compiled: Compiled): Compiled {
  const { runtime, form } = compiled.plan;
  if (form !== 'retrieve' || !runtime.every((r) => r.kind === 'retrieval')) throw queryError('noAccess', {});
  return compiled;
}

/** Nothing but comments and semicolons is nothing: the contract's E0246 where `sql` was to hold a statement. */
function emptySqlOr(error: unknown, body: Body): unknown {
  const isEmptySql = body.kind === 'sql' && error instanceof QueryError && error.entry === 'noStatement';
  return isEmptySql ? queryError('emptySql', {}) : error;
}

/** The plan that was prepared for this very question, whatever the rights. */
function preparedPlan({ prepared, body, parameterOids }: Question): GovernedPlan | null {
  return prepared?.body === body && prepared.parameterOids === parameterOids ? prepared.plan : null;
}

/** The same for a metrics question. Its canonical text is no statement, so that it must share no key with one. */
function metricsPlan(service: Service, { access, manifest }: Caller, request: MetricsRequest): GovernedPlan {
  const rights = `${manifest.catalog.version} ${access.signature} metrics`;
  return service.plans.planOf(rights, JSON.stringify(request), () => {
    if (isEmpty(access)) throw queryError('noAccess', {});
    return { plan: compileMetrics(request, manifest.catalog, access), template: null };
  });
}

/** What is compiled, and what its names mean. */
function statementOf(body: Exclude<Body, { kind: 'metrics' }>): {
  readonly text: string;
  readonly world: AskedWorld;
} {
  switch (body.kind) {
    case 'osql':
      return { text: body.text, world: 'semantic' };
    case 'sql':
      return { text: body.text, world: 'physical' };
    case 'wire':
      return { text: body.text, world: 'either' };
    default: {
      const unknown: never = body;
      throw new InternalError(`unexpected body ${String(unknown)}`);
    }
  }
}

function asksModel(plan: GovernedPlan): boolean {
  return plan.runtime.length > 0 && decodersOf(plan).length > 0;
}

/** The decoder operators of a plan, each with what it reads: nothing where the caller has no passage. */
function decodersOf(plan: GovernedPlan) {
  return plan.runtime.flatMap((r) =>
    r.kind === 'retrieval'
      ? r.relation.operators
          .filter((o) => OPERATORS[o.operator].class === 'decoder')
          .map(() => ({ facet: r.relation.facet.name, store: r.store }))
      : [],
  );
}

/**
 * Refuses a question to a language model where policy does not let passages leave, before anything is retrieved. That
 * there is no model the compiler has said before: it is no secret, and true for everybody.
 *
 * @throws QueryError E2101
 */
function mayAskModel(plan: GovernedPlan): void {
  for (const { facet, store } of decodersOf(plan)) {
    if (store !== null && !store.mayDecode) throw queryError('decodeDenied', { facet });
  }
}

/** Runs the plan: first the steps that it rests on, then the statement itself. */
async function execute(
  service: Service,
  caller: Caller,
  plan: GovernedPlan,
  delivery: Delivery,
  sink: RowSink,
): Promise<Executed> {
  const { parameters, resultFormats, signal, snapshots, whole = false } = delivery;
  if (parameters.length !== plan.clientOids.length) {
    throw queryError('parameterCount', { given: parameters.length, needed: plan.clientOids.length });
  }
  const engine = engineOf(service, plan);
  const input = { service, caller, plan, parameters, signal, snapshots: snapshots ?? null, whole };
  const runtime = plan.runtime.length === 0 ? [] : await runtimeRows(input);
  const { rows, bytes, timeoutMs } = service.caps;
  const snapshot = snapshots?.of(engine) ?? null;
  const maxRows = delivery.maxRows === 0 ? rows : Math.min(rows, delivery.maxRows);
  const values = slotValues(emit(plan).slots, new Map(), input, runtime);
  const settings = settingsFor(service, caller, plan, delivery.settings);
  const { subject } = caller.identity;
  const options = { subject, resultFormats, maxRows, maxBytes: bytes, timeoutMs, signal, settings, snapshot };
  const result = await engine.governed.execute(plan, values, options, sink);
  return { ...result, runtime };
}

interface Executed extends ExecuteResult {
  readonly runtime: readonly RuntimeRows[];
}

/** Rows wait for the decision to be durable; the query itself need not, since it has no effect. */
function afterwards(decided: Promise<void>, sink: RowSink): RowSink {
  let durable = false;
  const settled = decided.then(() => {
    durable = true;
  });
  settled.catch(() => undefined); // awaited by whoever writes, and by `ask`
  return {
    write: (dataRows, rows) =>
      durable ? sink.write(dataRows, rows) : settled.then(() => sink.write(dataRows, rows)),
  };
}

/** If the decision could not be recorded, that is the reason, whatever else went wrong. */
async function failureOf(decided: Promise<void>, error: unknown): Promise<unknown> {
  try {
    await decided;
    return error;
  } catch (unrecorded) {
    return unrecorded;
  }
}

/** Records a refusal and gives what the caller is told. A refusal that cannot be recorded is still a refusal. */
export async function refuse(
  service: Service,
  call: Call,
  ledger: Ledger,
  error: unknown,
): Promise<QueryError> {
  const told = publicError(service, call.requestId, error);
  try {
    return await recordRefusal(service, call, ledger, told);
  } catch (unrecorded) {
    return publicError(service, call.requestId, unrecorded);
  }
}

/** Without a valid token a caller counts by its address, before it reaches the log. */
async function recordRefusal(
  service: Service,
  call: Call,
  ledger: Ledger,
  told: QueryError,
): Promise<QueryError> {
  const { credentials } = call;
  if (credentials.kind === 'bearer' && !ledger.identified) {
    const { address } = credentials;
    const taken = await service.limiter.takeAddress(address);
    if (!taken.ok) {
      const limited = queryError('rateLimited', { retryAfterSeconds: taken.retryAfterSeconds });
      if (service.strangers.isFirst(service, call, address)) await ledger.refuse(limited);
      return limited;
    }
  }
  await ledger.refuse(told);
  return told;
}

/** What the caller is told: a fault of its own as it is, anything of ours only as a request id. */
export function publicError(service: Service, requestId: string, error: unknown): QueryError {
  if (error instanceof QueryError) return error;
  if (error instanceof AuditUnavailable) return queryError('auditUnavailable', {});
  service.log.error('internal error', {
    request_id: requestId,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return queryError('internal', {});
}
