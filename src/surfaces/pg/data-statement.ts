import type { Bind, ColumnDescription, WireStatement } from '../../../wire/index.js';
import type { PreparedQuestion, ResultDelivery, Snapshots } from '../../ask/index.js';
import { MemoryShare } from '../../engine/index.js';
import { DataPortal, type StatementRun } from './data-portal.js';
import type { SessionParts } from './session-parts.js';
import { audible, columnsOf } from './told-of-plan.js';

/** Prepared query on data; each run is authorized anew. */
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
  const mayBeOld = (): boolean => !state.inBlock && settings.again() === 'given before';
  const body = { kind: 'wire', text } as const;
  const first = { ...caller.newCall(), body, parameterOids, mayBeOld: mayBeOld() };
  const prepared = await records.translate(first.requestId, text, () => questions.prepare(first));
  const unrun = records.hold(first, () => prepared.record());
  const run: StatementRun = {
    ask: (delivery) => {
      const call = records.unrun.release(unrun) ? first : caller.newCall();
      session.activity.asks(text);
      return records.translate(call.requestId, text, async () => {
        const answer = await prepared.run(call, mayBeOld(), withSettings(session, delivery));
        settings.tellFreshness(answer.freshness);
        return answer;
      });
    },
    cancellable: (work) => {
      state.block.requireUsable();
      return running.cancellable(work);
    },
    while: (stop, work) => {
      state.block.requireUsable();
      return running.while(stop, work);
    },
    rights,
    memory: () => new MemoryShare(service.memory, caller.identity.subject),
    audible: (notices) => audible(settings, notices),
  };
  const native = prepared.engineKind === 'postgres';
  // A snapshot has one upstream session, which must not wait for its client: the client may send other statements
  // meanwhile.
  return new DataStatement(prepared, run, () => native && snapshotsOf(session) === null);
}

function withSettings(session: SessionParts, delivery: ResultDelivery): ResultDelivery {
  const settings = session.settings.output();
  const snapshots = snapshotsOf(session);
  if (snapshots !== null) return { ...delivery, settings, snapshots };
  // Inside a transaction block answers always come from the database, not from the answer cache.
  const again = session.state.inBlock ? null : session.settings.again();
  return {
    ...delivery,
    ...(settings.length > 0 && { settings }),
    ...(again !== null && { again }),
  };
}

function snapshotsOf({ state, caller }: SessionParts): Snapshots | null {
  return state.isolation.snapshots(state.inBlock, caller.identity.subject);
}
