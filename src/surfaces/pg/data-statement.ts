import type { WireStatement } from '../../../wire/index.js';
import { engineOf } from '../../ask/data/runtime/step.js';
import type { Snapshots } from '../../ask/data/snapshots.js';
import { ask, type Delivery, prepare, type Question } from '../../ask/index.js';
import type { Body } from '../../ask/request/asked.js';
import { MemoryShare } from '../../engine/index.js';
import { DataPortal, type Run } from './data-portal.js';
import { Learned } from './learned.js';
import { audible } from './notices.js';
import type { SessionParts } from './session-parts.js';
import { columnsOf } from './told-of-plan.js';

/** A question about data, and the route that its runs have made. */
export interface DataStatement extends WireStatement {
  readonly learned: Learned;
}

export function isDataStatement(statement: WireStatement): statement is DataStatement {
  return 'learned' in statement && statement.learned instanceof Learned;
}

/** A question about data: the spine compiles it, whose plan describes it, and each run decides anew. @throws WireError */
export async function dataStatement(
  session: SessionParts,
  text: string,
  parameterOids: readonly number[],
): Promise<DataStatement> {
  const { service, caller, rights, records, settings, state, running } = session;
  const body: Body = { kind: 'wire', text };
  const mayBeOld = (): boolean => !state.inBlock && settings.again() === 'given before';
  const first: Question = { ...caller.newCall(), body, parameterOids, mayBeOld: mayBeOld() };
  const prepared = await records.translate(first.requestId, text, () => prepare(service, first));
  const { plan } = prepared;
  const unrun = records.hold(first, () => prepared.record());
  const learned = new Learned(session, text);
  const run: Run = {
    ask: (delivery) => {
      const call = records.unrun.release(unrun) ? first : caller.newCall();
      const question: Question = { ...call, body, parameterOids, prepared, mayBeOld: mayBeOld() };
      session.activity.asks(text);
      return records.translate(call.requestId, text, () =>
        ask(service, question, withSettings(session, delivery)).then((answer) => {
          session.settings.tellFreshness(answer.freshness);
          learned.from(question, answer);
          return answer;
        }),
      );
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
  const native = engineOf(service, plan).kind === 'postgres';
  return {
    parameterTypes: plan.clientOids,
    columns: columnsOf(plan.outputs),
    // What has the one session of a block must not hold it up for its client, who may ask for more meanwhile.
    open: (bind) => new DataPortal(plan, bind, run, snapshotsOf(session) === null && native),
    learned,
  };
}

function withSettings(session: SessionParts, delivery: Delivery): Delivery {
  const settings = session.settings.output();
  const snapshots = snapshotsOf(session);
  if (snapshots !== null) return { ...delivery, settings, snapshots };
  // A transaction of the client's own is told of what is there now, whatever its level.
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
