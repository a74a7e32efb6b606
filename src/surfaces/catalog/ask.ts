import { QueryError, queryError } from 'osl-compiler';
import { type Identity, isEmpty } from '../../../policy/index.js';
import { type Caller, consider, type DataQuestion, type RequestParts, respond } from '../../ask/index.js';
import type { Origin } from '../../ask/request/call.js';
import { Payment } from '../../ask/request/limit.js';
import { isDenial } from '../../ask/request/told.js';
import type { BoundValue, MemoryShare } from '../../engine/index.js';
import type { StatementLane } from './classify.js';
import type { CatalogCaller, CatalogDoor, CatalogSettings, StatementDescription } from './door.js';
import { CatalogFault } from './fault.js';
import { type CatalogModel, modelOf } from './model.js';
import { type BackendReply, MAX_CHANGES, MAX_SIGNALS } from './reply.js';

/** One statement about the catalog, by one identified caller. */
export interface CatalogQuestion {
  readonly requestId: string;
  readonly identity: Identity;
  readonly origin: Origin;
  readonly text: string;
  /** OIDs that the client declared for `$1 …`; 0 leaves the choice to the engine. */
  readonly parameterTypes: readonly number[];
  /** As whom the caller logged in: its subject, or the name of its service account. */
  readonly user: string;
  readonly session: CatalogSettings;
  /** Of a statement that was described just now. */
  readonly payment?: Payment;
}

export interface CatalogDelivery {
  readonly values: readonly BoundValue[];
  readonly formats: readonly (0 | 1)[];
  readonly signal: AbortSignal | null;
  /** The memory that the rows hold until they are delivered. */
  readonly memory: MemoryShare;
  /** Does what the statement asks of its session, once it is on record. @throws CatalogFault, QueryError */
  apply(reply: BackendReply): Promise<void>;
}

/** A catalog statement that was described; see `prepare` of the spine. */
export interface PreparedCatalog {
  readonly described: StatementDescription;
  readonly payment: Payment;
  record(): Promise<void>;
}

/**
 * Describes a catalog statement, as the wire's Parse asks for. It counts against the limit, and pays for a run that
 * follows at once; a refusal is recorded here, and where no run follows the caller has `record` called.
 *
 * @throws QueryError, CatalogFault
 */
export async function describeCatalog(
  parts: RequestParts,
  catalogs: CatalogDoor,
  question: CatalogQuestion,
  signal: AbortSignal | null,
): Promise<PreparedCatalog> {
  const { text, parameterTypes, identity } = question;
  const call = callOf(question);
  const considered = await consider<StatementDescription>(parts, call, {
    action: 'prepare',
    asked: call.body,
    bucket: 'catalog',
    decide: async (caller) => {
      const model = await visibleTo(caller);
      return (
        catalogs.knows(model, text, parameterTypes) ??
        (await catalogs.use(model, identity.subject, signal, (instance) =>
          instance.describe(callerIn(question), text, parameterTypes, signal),
        ))
      );
    },
  });
  considered.rest();
  const { decided: described } = considered;
  return Object.freeze({ described, payment: new Payment(), record: () => considered.settle() });
}

/**
 * Answers a catalog statement, by the one way of every request, under the policy of this moment. The engine holds no data
 * and knows what the caller may read of the catalog, so its refusal is the decision: the statement runs first, and its
 * answer waits for the record.
 *
 * @throws QueryError, CatalogFault
 */
export function askCatalog(
  parts: RequestParts,
  catalogs: CatalogDoor,
  question: CatalogQuestion,
  expected: StatementDescription,
  delivery: CatalogDelivery,
): Promise<BackendReply> {
  const call = callOf(question);
  return respond<Ran, BackendReply>(parts, call, {
    action: 'catalog',
    asked: call.body,
    bucket: 'catalog',
    payment: question.payment,
    decide: (caller) => ran(async () => run(catalogs, await visibleTo(caller), question, expected, delivery)),
    signal: delivery.signal,
    counts: ({ rowCount }) => ({ rows: rowCount, truncated: false }),
    answer: async (statement) => {
      const reply = statement.reply();
      await delivery.apply(reply);
      return reply;
    },
  });
}

/** A statement that ran, for a caller who may run it. */
interface Ran {
  /** @throws as the statement did */
  reply(): BackendReply;
}

/** @throws what denies the statement; any other failure is its reply */
async function ran(statement: () => Promise<BackendReply>): Promise<Ran> {
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

/** Refuses, and records, a statement that mixes catalog and data or wants to write. @throws QueryError */
export async function refuseLane(
  parts: RequestParts,
  question: CatalogQuestion,
  lane: Extract<StatementLane, { kind: 'mixed' | 'writes' }>,
): Promise<never> {
  const call = callOf(question);
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
    asked: call.body,
    bucket: 'catalog',
    decide: refuse,
    answer: (refused) => refused,
  });
}

async function run(
  catalogs: CatalogDoor,
  model: CatalogModel,
  question: CatalogQuestion,
  expected: StatementDescription,
  { values, formats, signal, memory }: CatalogDelivery,
): Promise<BackendReply> {
  const caller = callerIn(question);
  const { text, parameterTypes } = question;
  return catalogs.use(model, question.identity.subject, signal, async (instance) => {
    const now = await instance.describe(caller, text, parameterTypes, signal);
    if (JSON.stringify(now) !== JSON.stringify(expected)) throw queryError('planChanged', {});
    const rows = catalogs.maxRows;
    const reply = await instance.query(caller, text, parameterTypes, values, formats, rows + 1, signal);
    for (const part of reply.rows) memory.requireRows(part);
    if (reply.rowCount > rows) throw queryError('rowCap', { limit: rows });
    if (reply.changes.length > MAX_CHANGES)
      throw queryError('tooLarge', { what: 'the settings that one statement changes', limit: MAX_CHANGES });
    if (reply.signals.length > MAX_SIGNALS)
      throw queryError('tooLarge', { what: 'the sessions that one statement ends', limit: MAX_SIGNALS });
    return reply;
  });
}

/** The catalog that `caller` sees. @throws QueryError E2102 */
function visibleTo(caller: Caller): Promise<CatalogModel> {
  requireAccess(caller);
  return modelOf(caller.manifest, caller.access);
}

/** @throws QueryError E2102 */
function requireAccess({ access }: Caller): void {
  if (isEmpty(access)) throw queryError('noAccess', {});
}

function callOf({ requestId, identity, origin, text, parameterTypes }: CatalogQuestion): DataQuestion {
  return {
    requestId,
    surface: 'wire',
    credentials: { kind: 'session', identity },
    origin,
    body: { kind: 'osql', text },
    parameterOids: parameterTypes,
  };
}

function callerIn({ user, session }: CatalogQuestion): CatalogCaller {
  return { user, session };
}
