import { type QueryError, queryError } from 'osl-compiler';
import { type Identity, isEmpty } from '../../../policy/index.js';
import { callerOf, limit, publicError, type Question, refuse, settled } from '../../ask/index.js';
import { Ledger } from '../../ask/ledger.js';
import { Payment } from '../../ask/payment.js';
import type { BoundValue } from '../../engine/index.js';
import type { Service } from '../../service/service.js';
import type { Catalogs } from './catalogs.js';
import type { Lane } from './classify.js';
import { CatalogFault } from './fault.js';
import type { CatalogCaller, CatalogSettings, Described } from './instance.js';
import { type CatalogModel, modelOf } from './model.js';
import { MAX_CHANGES, type Reply } from './reply.js';

/** One statement about the catalog, by one identified caller. */
export interface CatalogQuestion {
  readonly requestId: string;
  readonly identity: Identity;
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
}

/** A catalog statement that was described; see `prepare` of the spine. */
export interface PreparedCatalog {
  readonly described: Described;
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
  service: Service,
  catalogs: Catalogs,
  question: CatalogQuestion,
  signal: AbortSignal | null,
): Promise<PreparedCatalog> {
  const call = callOf(question);
  const ledger = new Ledger(service, call, 'prepare', call.body);
  try {
    const model = await visibleTo(service, question, ledger);
    await limit(service, question.identity, 'catalog', 'wire');
    const payment = new Payment();
    const { text, parameterTypes } = question;
    const caller = callerIn(question);
    const described =
      catalogs.knows(model, text, parameterTypes) ??
      (await catalogs.use(model, question.identity.subject, signal, (instance) =>
        instance.describe(caller, text, parameterTypes, signal),
      ));
    ledger.done();
    return Object.freeze({ described, payment, record: () => settled(service, call, ledger) });
  } catch (error) {
    throw await refused(service, call, ledger, error);
  }
}

/**
 * Answers a catalog statement: identify → access → limit → audit the decision → execute → audit the outcome, under
 * the policy of this moment.
 *
 * @throws QueryError, CatalogFault
 */
export async function askCatalog(
  service: Service,
  catalogs: Catalogs,
  question: CatalogQuestion,
  expected: Described,
  delivery: CatalogDelivery,
): Promise<Reply> {
  const call = callOf(question);
  const ledger = new Ledger(service, call, 'catalog', call.body);
  let model: CatalogModel;
  try {
    model = await visibleTo(service, question, ledger);
    if (question.payment?.take() !== true) await limit(service, question.identity, 'catalog', 'wire');
  } catch (error) {
    throw await refused(service, call, ledger, error);
  }
  try {
    await ledger.allow();
    const reply = await run(catalogs, model, question, expected, delivery);
    ledger.outcome('ok', reply.rowCount);
    return reply;
  } catch (error) {
    const told = error instanceof CatalogFault ? error : publicError(service, call.requestId, error);
    ledger.outcome(delivery.signal?.aborted === true ? 'cancelled' : 'error', 0, auditable(told));
    throw told;
  }
}

/** Refuses, and records, a statement that mixes catalog and data or wants to write. Gives what the caller is told. */
export async function refuseLane(
  service: Service,
  question: CatalogQuestion,
  lane: Extract<Lane, { kind: 'mixed' | 'writes' }>,
): Promise<QueryError> {
  const call = callOf(question);
  const ledger = new Ledger(service, call, 'prepare', call.body);
  const reason =
    lane.kind === 'writes'
      ? queryError('readOnly', { command: lane.command })
      : queryError('unsupported', {
          construct: 'a statement that reads both the catalog and data',
          hint: 'catalog and data statements never mix: ask them apart',
        });
  try {
    await visibleTo(service, question, ledger);
    await limit(service, question.identity, 'catalog', 'wire');
  } catch (error) {
    return refuse(service, call, ledger, error);
  }
  return refuse(service, call, ledger, reason);
}

async function run(
  catalogs: Catalogs,
  model: CatalogModel,
  question: CatalogQuestion,
  expected: Described,
  { values, formats, signal }: CatalogDelivery,
): Promise<Reply> {
  const caller = callerIn(question);
  const { text, parameterTypes } = question;
  return catalogs.use(model, question.identity.subject, signal, async (instance) => {
    const now = await instance.describe(caller, text, parameterTypes, signal);
    if (JSON.stringify(now) !== JSON.stringify(expected)) throw queryError('planChanged', {});
    const rows = catalogs.maxRows;
    const reply = await instance.query(caller, text, parameterTypes, values, formats, rows + 1, signal);
    if (reply.rowCount > rows) throw queryError('rowCap', { limit: rows });
    if (reply.changes.length > MAX_CHANGES)
      throw queryError('tooLarge', { what: 'the settings that one statement changes', limit: MAX_CHANGES });
    return reply;
  });
}

/** The catalog of the question's caller, under the policy of this moment. */
async function visibleTo(
  service: Service,
  { identity }: CatalogQuestion,
  ledger: Ledger,
): Promise<CatalogModel> {
  const { access, manifest } = await callerOf(service, { kind: 'session', identity }, ledger);
  if (isEmpty(access)) throw queryError('noAccess', {});
  return modelOf(manifest, access);
}

function callOf({ requestId, identity, text, parameterTypes }: CatalogQuestion): Question {
  return {
    requestId,
    surface: 'wire',
    credentials: { kind: 'session', identity },
    body: { kind: 'osql', text },
    parameterOids: parameterTypes,
  };
}

function callerIn({ user, session }: CatalogQuestion): CatalogCaller {
  return { user, session };
}

async function refused(service: Service, call: Question, ledger: Ledger, error: unknown): Promise<Error> {
  if (!(error instanceof CatalogFault)) return refuse(service, call, ledger, error);
  try {
    await ledger.refuse(error.report.sqlstate);
    return error;
  } catch (unrecorded) {
    return publicError(service, call.requestId, unrecorded);
  }
}

/** The log has our codes, and no words of a statement, which an engine's message may quote. */
function auditable(error: CatalogFault | QueryError): QueryError {
  if (!(error instanceof CatalogFault)) return error;
  const { sqlstate } = error.report;
  return sqlstate === '57014' ? queryError('cancelled', {}) : queryError('execution', { sqlstate });
}
