import { parentPort } from 'node:worker_threads';
import { QueryError, queryError, ready } from 'osl-compiler';
import { compileSnapshot } from '../../../policy/index.js';
import { stackOf } from '../../base/thrown.js';
import {
  applyStep,
  judge,
  type ManifestDifference,
  type PublishStep,
  suggestRelation,
  suggestTerm,
} from '../authoring/index.js';
import { compilePublishable, fingerprintsOf } from '../manifest/index.js';
import type { Model } from '../served-model.js';
import {
  type BaselineMessage,
  type DraftReply,
  type DraftTask,
  type DraftTaskResults,
  type FromDrafter,
  Portions,
  portionsOf,
  type StepResult,
  type ToBaseline,
  type ToDrafter,
} from './drafting.js';

/** Worker thread that compiles and checks drafts. It holds the served model but answers no requests. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

const say = (message: FromDrafter): void => port.postMessage(message);

/** Maximum number of changes in one draft, including access changes for all roles: the author is shown all of them. */
const MOST_CHANGES = 20_000;

interface LoadedBaseline {
  readonly source: BaselineMessage;
  readonly model: Model;
}

let baseline: LoadedBaseline | null = null;
/** The model that resulted from the last step, which can become the next baseline; null if there is no such model. */
let worked: LoadedBaseline | null = null;
let incoming = new Portions();
let answer: Iterator<string> = [][Symbol.iterator]();
let next: IteratorResult<string> = answer.next();

await ready();
port.on('message', (message: ToDrafter) => {
  try {
    if (message.kind === 'portion') {
      incoming.add(message.portion);
      if (!message.last) return;
      const whole = incoming.whole<ToBaseline | DraftTask>();
      incoming = new Portions();
      answer = portionsOf(replyTo(whole));
      next = answer.next();
    }
    const { value: portion } = next;
    next = answer.next();
    say({ kind: 'portion', portion, last: next.done === true });
  } catch (error) {
    say({ kind: 'failed', reason: stackOf(error) });
  }
});
say({ kind: 'ready' });

function replyTo(asked: ToBaseline | DraftTask): DraftReply<DraftTaskResults[DraftTask['kind']]> {
  try {
    if (asked.kind !== 'baseline' && asked.kind !== 'adopt')
      return { result: runTask(asked, requireBaseline(baseline)) };
    baseline = asked.kind === 'adopt' ? requireBaseline(worked) : loadBaseline(asked);
    worked = null;
    return { result: null };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    const { entry, message, code, sqlstate, http, hint, position, retryAfterSeconds } = error;
    return { error: { entry, message, code, sqlstate, http, hint, position, retryAfterSeconds } };
  }
}

function requireBaseline(on: LoadedBaseline | null): LoadedBaseline {
  if (on === null) throw new TypeError('nothing is served that a draft could be judged against');
  return on;
}

function loadBaseline(source: BaselineMessage): LoadedBaseline {
  const { manifest } = compilePublishable(source.base, source.objects);
  if (manifest.version !== source.version) throw new TypeError('another manifest serves than what was sent');
  const snapshot =
    source.policy === null ? null : compileSnapshot(source.policy, manifest.catalog, manifest.tenant);
  return { source, model: { manifest, snapshot } };
}

function runTask(task: DraftTask, on: LoadedBaseline): DraftTaskResults[DraftTask['kind']] {
  switch (task.kind) {
    case 'judge': {
      const judgement = judge(task.proposal, on.model);
      if (judgement.diff !== null) checkChangeCount(judgement.diff);
      return judgement;
    }
    case 'step':
      return workOutStep(task.step, on);
    case 'relation':
      return suggestRelation(task.candidate, on.model);
    case 'term':
      return suggestTerm(task.term, on.model);
  }
}

function workOutStep(
  step: PublishStep,
  { source, model: { manifest, snapshot } }: LoadedBaseline,
): StepResult {
  if (snapshot === null) throw queryError('noSnapshot', {});
  const { base, objects } = source;
  worked = null;
  const outcome = applyStep(step, { base, objects, manifest, snapshot });
  if (!outcome.ok) return outcome;
  checkChangeCount(outcome.diff);
  const { snapshot: next, ...rest } = outcome;
  const { version } = outcome.manifest;
  worked = {
    source: { ...source, version, objects: outcome.objects },
    model: { manifest: outcome.manifest, snapshot: next },
  };
  const published = JSON.stringify(outcome.objects) === JSON.stringify(objects);
  return { ...rest, over: fingerprintsOf(base, outcome.objects), published };
}

/** Refuses a draft with more than `MOST_CHANGES` changes. @throws QueryError 54000 */
function checkChangeCount({ changes, access }: ManifestDifference): void {
  const all = access.reduce((sum, role) => sum + role.changes.length, changes.length);
  if (all > MOST_CHANGES)
    throw queryError('tooLarge', {
      what: 'the number of changes of a draft, those of what each role sees among them,',
      limit: MOST_CHANGES,
    });
}
