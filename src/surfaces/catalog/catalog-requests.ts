import { LRUCache } from 'lru-cache';
import { type ParsedText, QueryError, queryError } from 'osl-compiler';
import { type Identity, isEmpty } from '../../../policy/index.js';
import { authorize, type Caller, type DataQuestion, type RequestParts, respond } from '../../ask/index.js';
import type { Origin } from '../../ask/request/call.js';
import { Payment } from '../../ask/request/limit.js';
import { isDenial } from '../../ask/request/public-error.js';
import type { BoundValue, MemoryShare } from '../../engine/index.js';
import type { DescribedColumn } from '../../engine/protocol/backend-messages.js';
import type { StatementLane } from './classify.js';
import { type CatalogModel, modelOf } from './model.js';
import { type BackendReply, CatalogFault, MAX_CHANGES, MAX_SIGNALS } from './reply.js';

/** A statement as prepared by the client. */
export interface CatalogQuery {
  readonly text: string;
  /** OIDs that the client declared for `$1 …`; 0 lets the engine infer the type. */
  readonly parameterTypes: readonly number[];
}

export interface CatalogRequest extends CatalogQuery {
  readonly requestId: string;
  readonly identity: Identity;
  readonly origin: Origin;
  /** Login name: the subject, or the name of its service account. */
  readonly user: string;
  readonly session: CatalogSettings;
  readonly payment?: Payment;
}

export interface CatalogDelivery {
  readonly values: readonly BoundValue[];
  readonly formats: readonly (0 | 1)[];
  readonly signal: AbortSignal | null;
  readonly memory: MemoryShare;
  /**
   * Applies the setting changes and session signals in a statement's reply, once its decision is recorded.
   * @throws CatalogFault, QueryError
   */
  apply(reply: BackendReply): Promise<void>;
}

/** A described catalog statement. `record` writes its audit record if it is never executed. */
export interface PreparedCatalog {
  readonly description: StatementDescription;
  readonly payment: Payment;
  record(): Promise<void>;
}

/**
 * Describes a catalog statement for Parse. It counts against the rate limit, and an execution that follows immediately
 * is not counted again. A denial is recorded here; if the statement is not executed, the caller must call `record`.
 *
 * @throws QueryError, CatalogFault
 */
export async function describeCatalog(
  parts: RequestParts,
  catalogs: CatalogProvider,
  request: CatalogRequest,
  signal: AbortSignal | null,
): Promise<PreparedCatalog> {
  const { identity } = request;
  const call = callOf(request);
  const authorized = await authorize<StatementDescription>(parts, call, {
    action: 'prepare',
    target: call.body,
    bucket: 'catalog',
    readsNoRows: true,
    decide: async (caller) => {
      const model = await visibleModel(caller);
      return (
        catalogs.cachedDescription(model, request) ??
        (await catalogs.use(model, identity.subject, signal, (instance) =>
          instance.describe(callerOf(request), request, signal),
        ))
      );
    },
  });
  authorized.suspend();
  const { decided: description } = authorized;
  return Object.freeze({ description, payment: new Payment(), record: () => authorized.finish() });
}

/**
 * Runs a catalog statement through `respond`, under the current policy. The engine holds no data, only the part of the
 * catalog that the caller may see. Whether it answers or refuses the statement is therefore the decision to record: the
 * statement runs first, and its answer is held back until the audit record is written.
 *
 * @throws QueryError, CatalogFault
 */
export function queryCatalog(
  parts: RequestParts,
  catalogs: CatalogProvider,
  request: CatalogRequest,
  expected: StatementDescription,
  delivery: CatalogDelivery,
): Promise<BackendReply> {
  const call = callOf(request);
  return respond<CatalogOutcome, BackendReply>(parts, call, {
    action: 'catalog',
    target: call.body,
    bucket: 'catalog',
    readsNoRows: true,
    payment: request.payment,
    decide: (caller) =>
      outcomeOf(async () => run(catalogs, await visibleModel(caller), request, expected, delivery)),
    signal: delivery.signal,
    countRows: ({ rowCount }) => ({ rows: rowCount, truncated: false }),
    answer: async (statement) => {
      const reply = statement.reply();
      await delivery.apply(reply);
      return reply;
    },
  });
}

interface CatalogOutcome {
  reply(): BackendReply;
}

/** @throws denials and internal errors immediately; the result's `reply` throws any other QueryError or CatalogFault */
async function outcomeOf(statement: () => Promise<BackendReply>): Promise<CatalogOutcome> {
  try {
    const reply = await statement();
    return { reply: () => reply };
  } catch (error) {
    if (!(error instanceof QueryError || error instanceof CatalogFault) || isDenial(error)) throw error;
    return {
      reply: () => {
        throw error;
      },
    };
  }
}

/** Refuses and records a statement that mixes catalog and data, or writes. @throws QueryError */
export async function refuseLane(
  parts: RequestParts,
  request: CatalogRequest,
  lane: Extract<StatementLane, { kind: 'mixed' | 'writes' }>,
): Promise<never> {
  const call = callOf(request);
  const refuse = (caller: Caller): never => {
    requireAccess(caller);
    throw lane.kind === 'writes'
      ? queryError('readOnly', { command: lane.command })
      : queryError('unsupported', {
          construct: 'a statement that reads both the catalog and data',
          hint: 'catalog and data statements never mix: ask them apart',
        });
  };
  return respond<never, never>(parts, call, {
    action: 'prepare',
    target: call.body,
    bucket: 'catalog',
    readsNoRows: true,
    decide: refuse,
    answer: (never) => never,
  });
}

async function run(
  catalogs: CatalogProvider,
  model: CatalogModel,
  request: CatalogRequest,
  expected: StatementDescription,
  { values, formats, signal, memory }: CatalogDelivery,
): Promise<BackendReply> {
  const caller = callerOf(request);
  return catalogs.use(model, request.identity.subject, signal, async (instance) => {
    const current = await instance.describe(caller, request, signal);
    if (JSON.stringify(current) !== JSON.stringify(expected)) throw queryError('planChanged', {});
    const rows = catalogs.maxRows;
    const run = { values, formats, maxRows: rows + 1 };
    const reply = await instance.query(caller, request, run, signal);
    for (const part of reply.rows) memory.requireRows(part);
    if (reply.rowCount > rows) throw queryError('rowCap', { limit: rows });
    if (reply.changes.length > MAX_CHANGES)
      throw queryError('tooLarge', { what: 'the settings that one statement changes', limit: MAX_CHANGES });
    if (reply.signals.length > MAX_SIGNALS)
      throw queryError('tooLarge', { what: 'the sessions that one statement ends', limit: MAX_SIGNALS });
    return reply;
  });
}

function visibleModel(caller: Caller): Promise<CatalogModel> {
  requireAccess(caller);
  return modelOf(caller.manifest, caller.access);
}

function requireAccess({ access }: Caller): void {
  if (isEmpty(access)) throw queryError('noAccess', {});
}

function callOf({ requestId, identity, origin, text, parameterTypes }: CatalogRequest): DataQuestion {
  return {
    requestId,
    surface: 'wire',
    credentials: { kind: 'session', identity },
    origin,
    body: { kind: 'osql', text },
    parameterOids: parameterTypes,
  };
}

function callerOf({ user, session }: CatalogRequest): CatalogCaller {
  return { user, session };
}

export interface CatalogCaller {
  readonly user: string;
  readonly session: CatalogSettings;
}

/** Session state that a catalog statement reads. */
export interface CatalogSettings {
  /**
   * JSON for `current_setting`, `pg_settings`, `pg_backend_pid` and `pg_stat_activity`; `hardening.ts` documents its
   * shape.
   */
  readonly json: string;
  readonly inForce: readonly (readonly [name: string, value: string])[];
}

/** Parameters and columns of a statement. */
export interface StatementDescription {
  readonly parameterTypes: readonly number[];
  readonly columns: readonly DescribedColumn[] | null;
}

/** Runs catalog statements, either in this process or in one shared by several workers. */
export interface CatalogProvider {
  readonly maxRows: number;
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane>;
  /** Returns the cached description of a statement; null if an engine must describe it. */
  cachedDescription(model: CatalogModel, statement: CatalogQuery): StatementDescription | null;
  /**
   * Runs `work` with the engine of `model`, once the subject's earlier statements have finished.
   *
   * @throws CatalogFault if no engine becomes available in time
   */
  use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (engine: CatalogEngine) => Promise<T>,
  ): Promise<T>;
}

/** Values of `$1 …`, formats of the columns, and the row limit for one run of a statement. */
export interface CatalogRun extends Pick<CatalogDelivery, 'values' | 'formats'> {
  readonly maxRows: number;
}

export interface CatalogEngine {
  /** @throws CatalogFault */
  describe(
    caller: CatalogCaller,
    statement: CatalogQuery,
    signal: AbortSignal | null,
  ): Promise<StatementDescription>;
  /** Runs a statement, returning at most `maxRows` rows; `tag` is null if there were more. @throws CatalogFault */
  query(
    caller: CatalogCaller,
    statement: CatalogQuery,
    run: CatalogRun,
    signal: AbortSignal | null,
  ): Promise<BackendReply>;
}

/** Maximum length of texts whose descriptions are cached, in UTF-16 code units. */
const MAX_CACHED_LENGTH = 16_384;

/** Cache of statement descriptions. If it serves several models, `model` is the signature of the statement's model. */
export class DescriptionCache {
  readonly #descriptions: LRUCache<string, StatementDescription>;

  constructor(max: number) {
    this.#descriptions = new LRUCache({ max });
  }

  find(statement: CatalogQuery, model = ''): StatementDescription | null {
    return this.#descriptions.get(cacheKey(statement, model)) ?? null;
  }

  add(statement: CatalogQuery, description: StatementDescription, model = ''): void {
    if (statement.text.length <= MAX_CACHED_LENGTH)
      this.#descriptions.set(cacheKey(statement, model), description);
  }
}

function cacheKey({ text, parameterTypes }: CatalogQuery, model: string): string {
  return `${model} ${parameterTypes.join()} ${text}`;
}
